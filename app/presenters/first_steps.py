"""The first steps: a banner leads a newcomer from a template to its trained model."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from app import templates
from app.presenters.questions import in_words
from app.window.banners import Choice
from app.workbench import Workbench
from engine.project import files
from engine.protocol import (
    Command,
    ErrorSnapshot,
    ForwardSnapshot,
    MoveForwardCommand,
    StartForwardCommand,
    TrainCommand,
    TrainingSnapshot,
)
from widgets.text import format_number, format_percent

TEMPLATE = "mlp"
_KEY = "first_steps"
_TITLES = ("open", "step", "train", "look")
_SENT = (StartForwardCommand, MoveForwardCommand, TrainCommand)
_COMMANDS = frozenset(kind.__name__ for kind in _SENT)


class FirstStepsPresenter(QObject):
    """`begin` opens the template. The banner then follows what the engine does; closing it, or
    opening another project, ends the first steps. Signals ask for workspaces."""

    steps_wanted = Signal()
    """Show the tab Step through of the Autograd workspace."""
    training_wanted = Signal()
    """Show the Train workspace and start a run."""

    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._stage = 0  # 1 to 4; 0: no first steps are under way
        self._first_loss: float | None = None
        self._accuracy: float | None = None
        bench.store.on(ForwardSnapshot, self._on_forward)
        bench.store.on(TrainingSnapshot, self._on_training)
        bench.store.on(ErrorSnapshot, self._on_error)
        bench.files.opened.connect(self._end)

    def begin(self) -> None:
        try:
            project = templates.load_template(TEMPLATE)
        except files.FileProblem as problem:
            self._bench.files.failed.emit(f"The template was not opened. {problem}")
            return
        if not self._bench.files.new(project):
            return
        self._first_loss = self._accuracy = None
        self._bench.window.show_workspace("model")
        self._show(
            1,
            "Each block is one layer, and each wire carries its output to the next. Click a block"
            " to see its parameters, and its line in the code.",
            ("Next: step", "Bring a batch of digits to the first block.", self._step),
        )

    # -- the stages ------------------------------------------------------------------------------

    def _step(self) -> None:
        self._stage = 2
        self.steps_wanted.emit()
        self._show(2, "The batch is on its way to the first block.")
        self._send(self._step, self._batch())

    def _train(self) -> None:
        self._stage = 3
        self._show(3, "The run starts.")
        self.training_wanted.emit()

    def _look(self) -> None:
        self._stage = 4
        self.steps_wanted.emit()
        self._show(4, "The same batch goes through the trained model.")
        self._send(self._look, self._batch(), MoveForwardCommand(move="end"))

    def _batch(self) -> StartForwardCommand:
        project = self._bench.project
        return StartForwardCommand(model=project.model, training=project.training)

    def _run_one(self) -> None:
        self._show(2, "The next block runs.")
        self._send(self._step, MoveForwardCommand(move="step"))

    def _run_to_loss(self) -> None:
        self._show(2, "The blocks run, up to the loss.")
        self._send(self._step, MoveForwardCommand(move="end"))

    def _end(self) -> None:
        self._stage = 0
        self._bench.window.banners.dismiss(_KEY)

    # -- what is to be shown ---------------------------------------------------------------------

    @property
    def _shown_stage(self) -> int:
        """0: there are no first steps, or the reader has closed the banner."""
        if self._bench.window.banners.banner(_KEY) is None:
            self._stage = 0
        return self._stage

    def _on_forward(self, forward: ForwardSnapshot) -> None:
        match self._shown_stage, forward.loss:
            case 2, _:
                self._show_steps(forward)
            case 4, float(loss):
                self._show_change(loss)

    def _on_training(self, training: TrainingSnapshot) -> None:
        if self._shown_stage == 3:
            self._show_training(training)

    def _on_error(self, told: ErrorSnapshot) -> None:
        retry = {2: self._step, 3: self._train, 4: self._look}.get(self._shown_stage)
        if retry is not None and told.command in _COMMANDS:
            self._show_problem(in_words(told.error), retry)

    def _show_steps(self, forward: ForwardSnapshot) -> None:
        run, blocks = forward.position, len(forward.order)
        if run < blocks or forward.loss is None:
            self._show(
                2,
                f"{run} of {blocks} blocks have run. Each block shows what came out of it; the last"
                " one is the loss.",
                ("Run one block", "Run the next block (F10).", self._run_one),
                ("Run to the loss", "Run all blocks that are left.", self._run_to_loss),
            )
            return
        self._first_loss = forward.loss
        epochs = self._bench.project.training.epochs
        self._show(
            2,
            f"The loss of this batch is {format_number(forward.loss, 3)}. The weights are random"
            " still: ln 10 = 2.303 is the loss of a guess among ten digits.",
            ("Next: train", f"Train the model for {epochs} epochs.", self._train),
        )

    def _show_training(self, run: TrainingSnapshot) -> None:
        for row in run.epoch_rows:
            self._accuracy = row.validation_accuracy
        done = f"epoch {run.epoch} of {run.epochs}"
        if self._accuracy is not None:
            done += f", validation accuracy {format_percent(self._accuracy)}"
        if run.state in ("running", "paused"):
            words = f"Each step: forward, backward, update of the weights. {done.capitalize()}."
            if self._banner_text() != words:
                self._show(3, words)
            return
        words = {"finished": "The run has finished", "stopped": "The run was stopped"}
        self._show(
            3,
            f"{words.get(run.state, 'The run has failed')}: {done}.",
            ("Next: look", "Run the same batch through the trained model.", self._look),
            ("Train again", "Train from the present weights.", self._train),
        )

    def _show_change(self, loss: float) -> None:
        before = (
            "" if self._first_loss is None else f"was {format_number(self._first_loss, 3)} and "
        )
        self._show(
            4,
            f"The loss of the same batch {before}is now {format_number(loss, 3)}. Click a block to"
            " see its output. Step goes on to the backward pass.",
            ("Finish", "Close this message. Start has templates and examples.", self._end),
        )

    def _banner_text(self) -> str:
        banner = self._bench.window.banners.banner(_KEY)
        return banner.text if banner is not None else ""

    def _show(self, stage: int, text: str, *choices: Choice) -> None:
        self._stage = stage
        title = f"First steps, {stage} of {len(_TITLES)}: {_TITLES[stage - 1]}"
        self._bench.window.banners.show_banner(_KEY, "accent", title, text, choices)

    def _send(self, retry: Callable[[], None], *commands: Command) -> None:
        if not all(self._bench.send(command) for command in commands):
            self._show_problem(self._bench.link.unsent, retry)

    def _show_problem(self, text: str, retry: Callable[[], None]) -> None:
        self._show(self._stage, text, ("Try again", "Do the same once more.", retry))
