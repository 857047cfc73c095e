"""The Train workspace: the set-up comes from the document, the run from the engine."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.presenters.questions import in_words
from app.presenters.train.resuming import Resuming
from app.presenters.train.script_end import ScriptEnd
from app.processes.link import LinkState
from app.selection.references import Module
from app.workbench import Workbench
from engine.connecting.greeting import About
from engine.project import edits
from engine.project.document import ADJUSTABLE, Model, Project, TrainingSetup, replace
from engine.project.problems import located
from engine.project.subject import Subject, title
from engine.project.sweeps.sweep import Sweep
from engine.protocol import (
    CODE_CHANGED,
    OTHER_BATCHES,
    UNORDERED,
    AdjustTrainingCommand,
    ChooseWeightsCommand,
    Command,
    ContinueTrainingCommand,
    ErrorSnapshot,
    HeldSnapshot,
    LoopSnapshot,
    ModelSnapshot,
    PauseSignal,
    ReadySnapshot,
    RunSnapshot,
    StepColumns,
    StepLineCommand,
    StepTrainingCommand,
    StepUnit,
    SweepCommand,
    TrainCommand,
    TrainingSnapshot,
)
from widgets.training.plots.figure_plots import watched_module
from widgets.training.train_view import TrainView

TRAIN = "train"
_AT_ONCE = (*ADJUSTABLE, "hold")
"""Settings that a run takes over at once."""
_SHOWN = (TrainCommand.__name__, SweepCommand.__name__, ChooseWeightsCommand.__name__)
"""Commands whose errors are shown beside the buttons."""
_STAYING = (CODE_CHANGED, OTHER_BATCHES, UNORDERED)
"""Warnings of a run that stay in sight until they are read: the next snapshot has none."""
_NO_DATA = (
    "There is no data to train on. Name a Dataset, a DataLoader or tensors of your code under Data,"
    " or choose a data set there."
)


class TrainPresenter(QObject):
    """`export_requested()`: the user wants the trained weights in a file."""

    export_requested = Signal()

    def __init__(self, bench: Workbench, view: TrainView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self.view = bench, view
        self._end = ScriptEnd(bench, view, self)
        self._shown: RunSnapshot | None = None  # the run of the plots: Train's, or a cell's loop
        self._script: About | None = None  # the process whose loop was shown last
        self._trained: Subject | None = None  # by the last run of Train
        self._resuming = Resuming(bench, view, self._run, self.train, self)
        self.resume, self.restore = self._resuming.resume, self._resuming.restore
        view.form.setup_edited.connect(self._edit_setup)
        view.form.loss.loss_edited.connect(self._edit_loss)
        view.bar.train_requested.connect(self.train)
        view.bar.pause_requested.connect(self._pause)
        view.bar.continue_requested.connect(lambda: self._send(ContinueTrainingCommand()))
        view.bar.step_requested.connect(self.step)
        view.bar.step_asked.connect(self.go_to)
        view.bar.line_requested.connect(lambda: self._send(StepLineCommand()))
        view.bar.stop_requested.connect(self.stop)
        view.bar.weights_requested.connect(
            lambda which: self._send(ChooseWeightsCommand(which=which))
        )
        view.bar.export_requested.connect(self.export_requested)
        view.board.figure_asked.connect(self._choose_module)
        bench.store.project_changed.connect(self._on_project_changed)
        bench.store.on(RunSnapshot, self._show_run)
        bench.store.on(HeldSnapshot, lambda _: self.view.bar.show_held(bench.store.held))
        bench.store.on(ErrorSnapshot, self._show_error)
        bench.link.state_changed.connect(self._on_engine_state)
        bench.files.opened.connect(self._clear)
        self._show_setup()
        self._on_engine_state(bench.link.state)
        run = bench.newest(LoopSnapshot) or bench.newest(TrainingSnapshot)
        if run is not None:
            self._show_run(run)
        view.bar.show_held(bench.store.held)

    # -- what the reader wants -------------------------------------------------------------------

    def train(
        self,
        paused: bool = False,
        checkpoint: str = "",
        to_step: int | None = None,
        find_divergence: bool = False,
    ) -> None:
        """Start a run. With `checkpoint` (a path), go on from that file; with `to_step`, let the
        last run go to that step, with `find_divergence` to where it diverged."""
        project = self._bench.project
        if problem := self._problem():
            self.view.show_problem(problem)
            return
        self.view.show_problem("")
        self._trained = project.subject
        self._send(
            TrainCommand(
                model=project.model,
                training=project.training,
                paused=paused,
                checkpoint=checkpoint,
                fresh=self.view.bar.weights.fresh and not checkpoint,
                to_step=to_step,
                find_divergence=find_divergence,
                runs=self._bench.files.runs_folder,
                subject=project.subject,
                objective=project.objective,
            )
        )

    def sweep(self, wanted: Sweep) -> bool:
        """Train the trials of a sweep, each from fresh weights. False if it was refused."""
        project = self._bench.project
        if problem := self._problem():
            self.view.show_problem(problem)
            return False
        self.view.show_problem("")
        self._trained = project.subject
        self._send(
            SweepCommand(
                model=project.model,
                training=project.training,
                runs=self._bench.files.runs_folder,
                subject=project.subject,
                objective=project.objective,
                sweep=wanted,
            )
        )
        return True

    def _problem(self) -> str:
        """Why the subject cannot be trained, as far as the window knows; empty if it can."""
        project = self._bench.project
        if project.subject.is_code:
            return "" if project.objective.has_data else _NO_DATA
        report = self._bench.newest(ModelSnapshot)
        current = report is not None and report.revision == self._bench.store.revision
        if report is not None and current and not report.runnable:
            return _why_not(report, project.model)
        return ""

    def pause_or_continue(self) -> None:
        run = self._shown
        is_held = self._bench.store.held is not None
        if is_held or (run is not None and run.state == "paused"):
            self._send(ContinueTrainingCommand())
        else:
            self._pause()

    def step(self, by: StepUnit = "step") -> None:
        """Run one optimizer step of the paused run, or the first one of a new run; of a run of
        Train also a part of it, or the rest of an epoch."""
        run = self._shown
        is_held = self._bench.store.held is not None
        if not is_held and (run is None or run.state != "paused"):
            self.train(paused=True)
        self._send(StepTrainingCommand(by=by))

    def go_to(self, step: int) -> None:
        """Let the run that is paused or has ended go to a step of it. From there on it has the
        settings of now."""
        run = self._run()
        if run is not None and run.state != "running":
            self.train(to_step=step)

    def back(self) -> None:
        """Go back one optimizer step, or to the start of the one that is under way."""
        run = self._run()
        if run is not None and (run.step or run.is_in_step):
            self.go_to(run.step if run.is_in_step else run.step - 1)

    def stop(self) -> None:
        """Stop the run; an engine that does not answer is killed."""
        self._bench.link.stop_run()

    def _pause(self) -> None:
        script = self._bench.link.script
        if script is not None and script.role == "watch":
            self._bench.say("Another window steers the script. Detach it there to pause it here.")
            return
        self._bench.link.signal(PauseSignal())

    def _choose_module(self, figure: str) -> None:
        """Choose the module that a plot watches."""
        path = watched_module(figure)
        if path is not None:
            self._bench.selection.views[self.view.board.figures[figure]] = TRAIN
            self._bench.selection.choose(Module(path), TRAIN)

    def _edit_setup(self, setup: TrainingSetup, text: str) -> None:
        self._bench.edit(text, lambda project: edits.set_training(project, setup), field=text)
        self._show_setup()  # if the value was refused, show the old one again

    def _edit_loss(self, loss: str) -> None:
        self._bench.edit("Choose the loss", lambda project: edits.set_loss(project, loss))

    def _send(self, command: Command) -> None:
        if not self._bench.send(command):
            self.view.show_problem(self._bench.link.unsent)

    # -- what is to be shown ---------------------------------------------------------------------

    def _run(self) -> TrainingSnapshot | None:
        """The newest run, unless it is over and was of another subject."""
        run = self._bench.newest(TrainingSnapshot)
        return None if run is not None and self._is_of_other(run) else run

    def _is_of_other(self, run: RunSnapshot) -> bool:
        return (
            isinstance(run, TrainingSnapshot)
            and run.state not in ("running", "paused")
            and self._trained not in (None, self._bench.project.subject)
        )

    def _on_project_changed(self, old: Project, new: Project) -> None:
        if old.subject != new.subject:
            self._tell_other()
            self._resuming.offer()
        if old.training is not new.training or edits.loss_of(old) != edits.loss_of(new):
            self._show_setup()
        if (old.subject, old.objective) != (new.subject, new.objective):
            self.view.show_problem("")  # it was about what was there before
        run = self._run()
        if (
            run is not None
            and run.state in ("running", "paused")
            and old.training.optimizer == new.training.optimizer
            and any(getattr(old.training, n) != getattr(new.training, n) for n in _AT_ONCE)
        ):
            self._send(AdjustTrainingCommand(training=new.training))

    def _show_error(self, told: ErrorSnapshot) -> None:
        if told.command in _SHOWN:
            self.view.show_problem(in_words(told.error))
        elif told.command == AdjustTrainingCommand.__name__:
            self._bench.say(in_words(told.error))  # the run goes on

    def _on_engine_state(self, state: LinkState) -> None:
        run, link = self._shown, self._bench.link
        if state != "ready" and run is not None and run.state in ("running", "paused"):
            # The engine has ended, and the run with it, but not its checkpoint.
            is_script = isinstance(run, LoopSnapshot) and self._end.script is not None
            ended = replace(run, state="stopped" if is_script else "failed", remaining_s=None)
            if isinstance(ended, LoopSnapshot):
                ended = replace(ended, logged={})
            self._bench.store.take(replace(ended, steps=StepColumns(), epoch_rows=()))
            if is_script:
                self._end.tell_left(run.step)
        if state == "ready" and link.is_served:
            self._clear()  # it tells all steps of its run
        attached = link.script
        if attached is not None and attached.about != self._script:
            # The loop of another run of a script has the same name. The curves of the process that
            # was lost stay until then, and go on if it is the same one again.
            self._script = attached.about
            self._bench.store.forget(LoopSnapshot)
            self._clear()
        self.view.bar.show_held(self._bench.store.held)
        self.view.show_attached(attached.role if attached else "")
        self.view.show_engine_state(state)
        self._resuming.offer()
        ready = self._bench.newest(ReadySnapshot)
        if ready is not None:
            self.view.show_devices(ready.devices)

    def _show_run(self, run: RunSnapshot) -> None:
        self._shown = run
        self.view.show_training(run)
        self._tell_other()
        error = run.error if isinstance(run, TrainingSnapshot) else None
        if error is not None and error.type in _STAYING:
            self._bench.window.banners.show_banner(
                error.type, "warning", error.message.rstrip("."), error.hint
            )

    def _tell_other(self) -> None:
        """Say whose run is shown, if it is of another subject."""
        text = ""
        if self._shown is not None and self._trained and self._is_of_other(self._shown):
            now = title(self._bench.project.subject)
            text = f"This was a run of {title(self._trained)}. Train starts one of {now}."
        self.view.bar.show_other(text)

    def _clear(self) -> None:
        self._shown = None
        self.view.clear()

    def _show_setup(self) -> None:
        project = self._bench.project
        block = edits.loss_block(project.model)
        self.view.show_setup(project.training, block.kind if block else None)


def _why_not(report: ModelSnapshot, model: Model) -> str:
    """The first error that prevents the model from running, with the block's name."""
    problems = [*report.problems, *(p for block in report.blocks for p in block.problems)]
    first = next((p for p in problems if p.severity == "error"), None)
    if first is None:
        return "The model cannot run: it is empty."
    return f"The model cannot run. {located([first], model)[0].message}"
