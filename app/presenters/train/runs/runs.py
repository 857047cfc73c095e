"""The list of runs: kept beside the project, or in the data folder until it is saved."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from app.presenters.questions import Questions, in_words
from app.presenters.train.runs.curves import Curves
from app.presenters.train.runs.event_files import EventFilesPresenter
from app.presenters.train.runs.run_copies import RunCopies
from app.presenters.train.runs.sweeps import SweepsPresenter
from app.presenters.train.train import TrainPresenter
from app.workbench import Workbench
from engine.project.cells import expressions_of, python_digest
from engine.project.document import replace
from engine.protocol import (
    Command,
    CompareRunsCommand,
    DeleteRunsCommand,
    ErrorReport,
    KeptRunSnapshot,
    ListRunsCommand,
    MovedRunsSnapshot,
    MoveRunsCommand,
    NoteRunCommand,
    ReadRunCommand,
    RestoreRunsCommand,
    RunRow,
    RunsSnapshot,
    Snapshot,
    StepColumns,
    TrainingSnapshot,
)

EVERY_MS = 2_000
"""How often the list is read again while a run goes on, here or elsewhere."""
MAX_TICKED = 5
"""The most running runs of another folder that are drawn without being ticked."""


GROWS_S = 600.0
"""Event files that were written to within this time are read again."""


def _may_grow(row: RunRow, found: RunsSnapshot) -> bool:
    return row.state == "event files" and found.read_s - row.told_s < GROWS_S


class RunsPresenter(QObject):
    """`agreement_wanted(title, then)`: ask the user to agree to the Python that the project names
    now, and do what comes then."""

    agreement_wanted = Signal(str, object)

    def __init__(self, bench: Workbench, train: TrainPresenter, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._train, self._pane = bench, train, train.view.runs
        self._questions = Questions(bench)
        self._curves = Curves(bench, train.view, self)
        SweepsPresenter(bench, train, self)
        RunCopies(bench, self._pane, self)
        EventFilesPresenter(bench, self._pane, self)
        self._unsaved: list[str] = []
        """The folders of the runs of this document while it has no file."""
        self._place = ""
        """Another folder whose runs are shown."""
        self._is_new_place = False
        self._seen: tuple[str, str] = ("", "")
        self._again = QTimer(self, interval=EVERY_MS, singleShot=True)
        self._again.timeout.connect(self.list)
        pane = self._pane
        pane.came_in_sight.connect(self.list)
        pane.open_requested.connect(lambda folder: self._open(folder, going=False))
        pane.resume_requested.connect(lambda folder: self._open(folder, going=True))
        pane.settings_requested.connect(
            lambda folder: self._ask(ReadRunCommand(folder=folder), self._use_settings)
        )
        pane.folder_requested.connect(self._ask_folder)
        pane.home_requested.connect(lambda: self.show_folder(""))
        pane.compare_requested.connect(
            lambda first, second: self._ask(
                CompareRunsCommand(first=first, second=second), pane.show_difference
            )
        )
        pane.delete_requested.connect(
            lambda folders: self._ask(DeleteRunsCommand(folders=folders), self._show)
        )
        pane.restore_requested.connect(
            lambda: self._ask(RestoreRunsCommand(runs=self._folder), self._show)
        )
        pane.table.noted.connect(
            lambda folder, note: self._ask(NoteRunCommand(folder=folder, note=note), self._show)
        )
        pane.table.ticked_changed.connect(lambda: self._curves.show(pane.table.ticked, pane.runs))
        self._curves.failed.connect(pane.show_problem)
        bench.store.on(TrainingSnapshot, self._on_training)
        bench.files.saved.connect(self._on_saved)
        bench.files.opened.connect(self._on_opened)
        bench.link.became_ready.connect(self.list)
        switch = train.view.bar.runs
        switch.setChecked(bench.settings.train_runs)
        switch.toggled.connect(lambda on: setattr(bench.settings, "train_runs", on))

    @property
    def _runs_folder(self) -> str:
        return self._bench.files.runs_folder

    @property
    def _folder(self) -> str:
        return self._place or self._runs_folder

    def _ask_folder(self) -> None:
        """Let the user choose another folder of runs."""
        bench = self._bench
        folder = bench.dialogs.open_folder(bench.window, "Runs of a folder", self._folder)
        if folder:
            self.show_folder(folder)

    def show_folder(self, folder: str) -> None:
        """Show the runs of a folder, or one run; those of the project if it is empty. One that goes
        on is drawn at once."""
        self._place, self._is_new_place = folder, bool(folder)
        self._pane.clear()
        self._pane.show_place(folder)
        self._curves.show((), ())
        self.list()

    def list(self) -> None:
        """Read the list, if it is seen."""
        if self._pane.isVisible() and self._bench.link.state == "ready":
            command = ListRunsCommand(runs=self._folder, events=bool(self._place))
            self._questions.ask(command, self._show, self._fail)

    def _show(self, found: Snapshot) -> None:
        if isinstance(found, RunsSnapshot):
            if self._place and found.folder != self._place:
                self.list()  # the answer to a deletion is about the folder around the run
                return
            if self._is_new_place:
                self._is_new_place = False
                going = [row.folder for row in found.runs if row.elsewhere or _may_grow(row, found)]
                self._pane.table.ticked = tuple(going[:MAX_TICKED])
            self._pane.show_runs(found)
            if any(row.elsewhere or _may_grow(row, found) for row in found.runs):
                self._again.start()
            self._curves.show(self._pane.table.ticked, self._pane.runs)

    def _ask(self, command: Command, answered) -> None:
        self._pane.show_problem("")
        if not self._questions.ask(command, answered, self._fail):
            self._pane.show_problem(self._bench.link.unsent)

    def _fail(self, error: ErrorReport) -> None:
        self._pane.show_problem(in_words(error))

    # -- a run again -----------------------------------------------------------------------------

    def _open(self, folder: str, going: bool) -> None:
        row = next((row for row in self._pane.table.rows if row.folder == folder), None)
        if row is None:
            return
        run = self._bench.newest(TrainingSnapshot)
        if run is not None and run.state in ("running", "paused"):
            self._pane.show_problem("Another run is under way. Stop it first.")
            return
        if row.state == "silent" and not self._may_take(row):
            return
        if not row.checkpoint:
            text = "This run has no checkpoint, so its weights are lost. Tick it to see its curves."
            self._pane.show_problem(text)
            return
        self._ask(ReadRunCommand(folder=folder), partial(self._open_read, row, going))

    def _may_take(self, row: RunRow) -> bool:
        """Ask before a run is taken from a machine that gives no sign."""
        question = (
            f"{row.elsewhere} has trained this run and gives no sign any more. Go on with it here?"
            " If it still lives, it stops writing the run."
        )
        return self._bench.dialogs.confirm(self._bench.window, question, "Go on here")

    def _open_read(self, row: RunRow, going: bool, kept: KeptRunSnapshot) -> None:
        """Take over the settings of the run, and go on from its last checkpoint: at once if
        `going`, else held there."""
        is_held = not going and row.state != "finished"
        train = partial(self._train.train, paused=is_held, checkpoint=row.checkpoint)
        self._use_settings(kept, train)

    def _use_settings(
        self, kept: KeptRunSnapshot, then: Callable[[], object] = lambda: None
    ) -> None:
        """Take over the settings of a run, as a step that can be undone, and do what comes then:
        once the user has agreed to the Python that the run names and the project does not."""
        bench, of_run = self._bench, kept.project
        if not bench.settings.has_agreed(kept.folder, python_digest(of_run)):
            bench.store.unagreed |= {*expressions_of(of_run)} - {*expressions_of(bench.project)}
        project = replace(
            bench.project,
            model=of_run.model,
            training=of_run.training,
            subject=of_run.subject,
            objective=of_run.objective,
        )
        if project != bench.project:
            bench.history.edit(project, "Take over the settings of a run")
        if bench.store.is_unagreed:
            title = "This run names Python that your project did not"
            self.agreement_wanted.emit(title, partial(self._agree, kept, then))
        else:
            then()

    def _agree(self, kept: KeptRunSnapshot, then: Callable[[], object]) -> None:
        self._bench.settings.agree(kept.folder, python_digest(kept.project))
        self._use_settings(kept, then)

    # -- runs as they come -----------------------------------------------------------------------

    def _on_training(self, snapshot: TrainingSnapshot) -> None:
        if not self._bench.files.path and snapshot.folder and snapshot.folder not in self._unsaved:
            self._unsaved.append(snapshot.folder)
        self._curves.leave_out(snapshot.folder)
        seen = snapshot.folder, snapshot.state
        if seen != self._seen:
            self._seen = seen
            self.list()
        elif snapshot.state == "running" and not self._again.isActive():
            self._again.start()

    def _on_opened(self) -> None:
        self._unsaved.clear()
        self._questions.drop()
        self._place = ""
        self._pane.show_place("")
        self._pane.clear()
        self._curves.show((), ())
        self.list()

    def _on_saved(self) -> None:
        """The project has a file now: its runs move beside it."""
        unsaved, self._unsaved = self._unsaved, []
        if unsaved and self._runs_folder:
            command = MoveRunsCommand(folders=tuple(unsaved), runs=self._runs_folder)
            self._ask(command, self._take_move)
        else:
            self.list()

    def _take_move(self, answer: MovedRunsSnapshot) -> None:
        """The run that is shown has its checkpoint there now."""
        run = self._bench.newest(TrainingSnapshot)
        places = dict(answer.moved)
        if run is not None and run.folder in places:
            there = places[run.folder]
            checkpoint = run.checkpoint
            if checkpoint.startswith(run.folder):
                checkpoint = there + checkpoint.removeprefix(run.folder)
            empty = replace(run, steps=StepColumns(), epoch_rows=())
            self._bench.store.take(replace(empty, folder=there, checkpoint=checkpoint))
        self.list()
