"""The structure of a subject of code: read again when what it tells may have changed."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace
from PySide6.QtCore import QObject, QTimer, Signal

from app.presenters.live_reading import LiveReading
from app.presenters.model.calls import CallsPresenter
from app.presenters.model.comparing import ComparingPresenter
from app.presenters.questions import Questions, in_words
from app.selection.finding import module_of, parameter_of
from app.selection.known import LAB_SUBJECT
from app.selection.references import Module, Parameter, Reference
from app.store import STEP_SNAPSHOTS
from app.workbench import Workbench
from engine.project.document import Project
from engine.project.subject import CanvasSubject, CodeSubject, needs_cells, python_file
from engine.protocol import (
    BackwardSnapshot,
    ErrorReport,
    ExampleSnapshot,
    FileSnapshot,
    InitPreviewSnapshot,
    PreviewInitCommand,
    ReadParametersCommand,
    ReadStructureCommand,
    Snapshot,
    StructureSnapshot,
    TrainingSnapshot,
    VariablesSnapshot,
    WatchCommand,
    WatchedSnapshot,
)
from engine.protocol.subject_commands import WeightRow, join_structure
from widgets.structure.view import StructureView
from widgets.structure.words import raised_words

STRUCTURE = "structure"
DELAY_MS = 150
"""Several changes in this time cost one reading, several typed letters one preview."""
_ENDED = ("finished", "stopped", "failed")
_CELL = "Run the line in the console: it stands in its history, and in the project's cells."
_ON_LAB_SUBJECT = (
    f"{_CELL} {LAB_SUBJECT} is the module that is shown here, while it is the subject."
)


class StructurePresenter(QObject):
    """Asks only while the view is seen.

    `cell_requested(source)`: run Python in the console. `cells_requested()`: run the project's
    cells again. `file_requested(path)`: run the subject's file. `data_requested()`: the user wants
    to name data.
    """

    cell_requested = Signal(str)
    cells_requested = Signal()
    file_requested = Signal(str)
    data_requested = Signal()

    def __init__(self, bench: Workbench, view: StructureView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self.view = bench, view
        self._questions = Questions(bench)
        self._is_stale = True
        self._parts: StructureSnapshot | None = None
        self._sent_cells: list[str] = []
        self._preview: tuple[tuple[str, ...], str, str] | None = None
        self.calls = CallsPresenter(bench, view.calls, self)
        self.comparing = ComparingPresenter(bench, view, self)
        view.tree.module_chosen.connect(lambda row: self.calls.show_module(row.path))
        self.calls.module_chosen.connect(view.show_chosen)
        self.calls.module_chosen.connect(lambda path: self._choose(Module(path)))
        self._reading = self._timer(self._read)
        self._rows: list[StructureSnapshot] = []  # the parts of an answer of `_numbers`
        # Made before the presenter listens to the state of the link, of which it has more to say.
        self._numbers = LiveReading(
            bench, view, self._numbers_command, self._take_numbers, self, after=STEP_SNAPSHOTS
        )
        self._trying = self._timer(self._try_values)
        self._followed: Reference | None = None  # what the view was last told to select
        view.module_chosen.connect(lambda path: self._choose(Module(path)))
        view.weight_chosen.connect(lambda name: self._choose(Parameter(name)))
        bench.selection.changed.connect(lambda _: self._follow())
        bench.selection.views[view] = STRUCTURE
        view.came_in_sight.connect(self._read_if_stale)
        view.remedy_requested.connect(self._help)
        view.data_requested.connect(self.data_requested)
        view.tree.watch_wanted.connect(self._watch)
        view.bar.run_requested.connect(self._run)
        view.bar.preview_requested.connect(self._want_preview)
        view.bar.preview_ended.connect(self._end_preview)
        bench.store.project_changed.connect(self._on_project_changed)
        bench.store.on((VariablesSnapshot, FileSnapshot, TrainingSnapshot), self._on_news)
        bench.store.agreed.connect(self._let_read)
        bench.link.state_changed.connect(self._on_engine_state)
        self._on_engine_state(bench.link.state)

    def _timer(self, call: object) -> QTimer:
        timer = QTimer(self, interval=DELAY_MS, singleShot=True)
        timer.timeout.connect(call)
        return timer

    @property
    def _subject(self) -> CodeSubject | None:
        subject = self._bench.project.subject
        return None if isinstance(subject, CanvasSubject) else subject

    def take_cell_end(self, source: str, error: ErrorReport | None) -> None:
        """A cell of the console has ended; if it was a line of ours, tell its error beside it."""
        if source in self._sent_cells:
            self._sent_cells.remove(source)
            if error is not None:
                self.view.bar.tell(raised_words(error), "error")

    # -- when to read ----------------------------------------------------------------------------

    def _on_project_changed(self, old: Project, new: Project) -> None:
        if old.subject != new.subject:
            self._forget()
            self.view.show_trouble("")
        if (old.subject, old.objective, old.training) != (
            new.subject,
            new.objective,
            new.training,
        ):
            self._let_read()

    def _on_news(self, news: VariablesSnapshot | FileSnapshot | TrainingSnapshot) -> None:
        """The module may be another one, or have other values."""
        match news:
            case ExampleSnapshot():
                return
            case TrainingSnapshot(state=state) if state not in _ENDED:
                return
        self._let_read()

    def _on_engine_state(self, state: str) -> None:
        if state == "ready":
            self._let_read()
        else:
            self._forget()
            self._sent_cells.clear()
            self._is_stale = True
            words = "The engine starts." if state == "starting" else self._bench.link.unsent
            self.view.show_trouble(words)

    def _let_read(self) -> None:
        self._is_stale = True
        self._read_if_stale()

    def _forget(self) -> None:
        """Pass on no more answers about the subject."""
        self._parts = None
        self._questions.drop()
        self._numbers.forget()
        self.calls.drop()

    def _read_if_stale(self) -> None:
        if self._is_stale and self.view.isVisible() and self._bench.link.state == "ready":
            self._reading.start()

    def _read(self) -> None:
        subject, project = self._subject, self._bench.project
        if subject is None or not self.view.isVisible() or self._bench.link.state != "ready":
            return
        self._is_stale, self._parts = False, None
        self._numbers.forget()
        command = ReadStructureCommand(
            subject=subject, objective=project.objective, training=project.training
        )
        if not self._questions.ask(command, self._take, self._fail):
            self.view.show_trouble(self._bench.link.unsent)

    # -- answers ---------------------------------------------------------------------------------

    def _take(self, part: Snapshot) -> None:
        if not isinstance(part, StructureSnapshot) or self._subject is None:
            return
        self._parts = part if self._parts is None else join_structure((self._parts, part))
        part = self._parts
        if part.left == 0:
            written = self._bench.known.expression
            where = _ON_LAB_SUBJECT if written == LAB_SUBJECT else _CELL
            self.view.bar.show_subject(written, where)
            self._show(part)
            self.comparing.compare_again()
            self.calls.show_structure(self._subject, part)
            self._follow()

    def _numbers_command(self) -> ReadParametersCommand | None:
        """Read what steps change; the user's step does not run for it. None while there is no
        structure that the numbers belong to."""
        subject, parts = self._subject, self._parts
        if subject is None or parts is None or parts.left or self._is_stale:
            return None
        self._rows.clear()
        return ReadParametersCommand(subject=subject, training=self._bench.project.training)

    def _take_numbers(self, part: Snapshot) -> bool:
        if not isinstance(part, StructureSnapshot) or self._parts is None:
            return True
        self._rows.append(part)
        if part.left:
            return False
        now = {row.name: row for row in join_structure(self._rows).weights}
        before = self._parts.weights
        rows = tuple(_with_numbers(row, now.get(row.name, row)) for row in before)
        self._parts = replace(self._parts, weights=rows)
        self._show(self._parts)
        if any((a.mean, a.std) != (b.mean, b.std) for a, b in zip(before, rows, strict=True)):
            self.comparing.tell_outdated()
        return True

    def _show(self, whole: StructureSnapshot) -> None:
        assert self._subject is not None
        stepped = self._bench.newest(BackwardSnapshot)
        self.view.weights.model.is_in_pass = stepped is not None and stepped.next is not None
        self.view.show_structure(whole, self._subject.expression.strip())

    def _fail(self, error: ErrorReport) -> None:
        self.view.show_trouble(raised_words(error), *self._remedy())

    def _remedy(self) -> tuple[str, str]:
        """The button, and its tooltip, that may help where there is no structure."""
        project = self._bench.project
        file = python_file(project.subject)
        if file:
            return f"Run {Path(file).name}", f"Run {file} in the engine, as import would."
        if needs_cells(project.subject) and project.cells:
            return "Run its cells", "Run the cells that the project keeps, in order."
        return "", ""

    # -- what the reader does --------------------------------------------------------------------

    def _help(self) -> None:
        file = python_file(self._bench.project.subject)
        if file:
            self.file_requested.emit(str(Path(file).absolute()))
        else:
            self.cells_requested.emit()

    def _run(self, source: str) -> None:
        self._sent_cells.append(source)
        self.cell_requested.emit(source)

    # -- selection -------------------------------------------------------------------------------

    def _choose(self, reference: Reference) -> None:
        self._followed = reference
        self._bench.selection.choose(reference, STRUCTURE)

    def _follow(self) -> None:
        """Select what was chosen elsewhere. After another reading, what the reader has selected
        since stays."""
        reference, known = self._bench.selection.current, self._bench.known
        module = module_of(reference, known)
        if reference != self._followed and module is not None and self._parts is not None:
            self._followed = reference
            self.view.show_chosen(module, parameter_of(reference, known) or "")
            self.calls.show_module(module)

    # -- watching --------------------------------------------------------------------------------

    def _watch(self, paths: tuple[str, ...]) -> None:
        if self._subject is None:
            return
        command = WatchCommand(
            subject=self._subject, paths=paths, training=self._bench.project.training
        )
        if not self._questions.ask(command, self._watched, self._not_watched):
            self.view.bar.tell(self._bench.link.unsent, "error")

    def _watched(self, answer: Snapshot) -> None:
        if isinstance(answer, WatchedSnapshot):
            self.view.tree.model.show_watched(answer.paths)

    def _not_watched(self, error: ErrorReport) -> None:
        self.view.bar.tell(raised_words(error), "error")

    def show_chosen(self) -> None:
        """Select what is chosen, also if the reader has selected something else since; a structure
        that is not read yet does so when it is."""
        self._followed = None
        self._follow()

    # -- initial values --------------------------------------------------------------------------

    def _want_preview(self, names: tuple[str, ...], function: str, arguments: str) -> None:
        self._preview = names, function, arguments
        self._trying.start()

    def _end_preview(self) -> None:
        self._preview = None
        self._trying.stop()
        self.view.show_preview(None)

    def _try_values(self) -> None:
        subject, preview = self._subject, self._preview
        if subject is None or preview is None:
            return
        names, function, arguments = preview
        command = PreviewInitCommand(
            subject=subject,
            names=names,
            function=function,
            arguments=arguments,
            training=self._bench.project.training,
        )

        def tried(answer: Snapshot) -> None:
            if isinstance(answer, InitPreviewSnapshot) and self._preview == preview:
                self.view.show_preview(answer)

        def refused(error: ErrorReport) -> None:
            if self._preview == preview:
                self.view.bar.refuse(in_words(error))

        self._questions.ask(command, tried, refused)


def _with_numbers(row: WeightRow, now: WeightRow) -> WeightRow:
    """The row with the numbers that it has now."""
    return replace(row, mean=now.mean, std=now.std, histogram=now.histogram, gradient=now.gradient)
