"""Code of the user's that is held: shown in the console and beside the variables, and let go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QObject, Signal

from app.presenters.questions import in_words
from app.workbench import Workbench
from engine.protocol import (
    CellSnapshot,
    Command,
    ContinueTrainingCommand,
    ErrorReport,
    HeldSnapshot,
    OutputSnapshot,
    OutputTailSnapshot,
    RunHeldCommand,
    Snapshot,
    StepBackwardSignal,
    StepLineCommand,
    StepTrainingCommand,
)

if TYPE_CHECKING:
    from app.presenters.tensors.workspace import TensorsPresenter

GoOn = Literal["on", "line", "step"]
_COMMANDS: dict[GoOn, type[Command]] = {
    "on": ContinueTrainingCommand,
    "line": StepLineCommand,
    "step": StepTrainingCommand,
}


class HeldPresenter(QObject):
    """`tensors` makes the presenter of the Tensors workspace at its first use: its console shows
    the code, and its variables are those of the frame.

    `backward_held(held)`: code is held in a backward() of its own; None if it goes on.
    `backward_switched(on)`: whether each backward() of the user's code is to be held.
    """

    backward_held = Signal(object)
    backward_switched = Signal(bool)

    def __init__(
        self, bench: Workbench, tensors: Callable[[], TensorsPresenter], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._bench, self._make = bench, tensors
        self._tensors: TensorsPresenter | None = None
        bench.store.on(HeldSnapshot, lambda _: self._show())
        bench.link.ended.connect(self._show)
        bench.link.became_ready.connect(self._send_switch)
        self._steps_backward = False

    @property
    def in_backward(self) -> HeldSnapshot | None:
        """Where code is held in a backward() of its own; None if none is."""
        held = self._bench.store.held
        return held if held is not None and held.at == "backward" else None

    def go_on(self, how: GoOn) -> None:
        """Let the code that is held go on."""
        if self._bench.store.held is None:
            self._bench.say("No code is held: breakpoint() in it holds it there.")
        else:
            self._bench.send(_COMMANDS[how]())

    def step_backward(self, on: bool) -> None:
        """From now on hold the user's code in each backward() that it calls, or no longer."""
        if on != self._steps_backward:
            self._steps_backward = on
            self._send_switch()
            self._bench.actions["autograd.own_backward"].setChecked(on)
            self.backward_switched.emit(on)

    def _send_switch(self) -> None:
        self._bench.link.signal(StepBackwardSignal(on=self._steps_backward))

    def _show(self) -> None:
        held = self._bench.store.held
        self.backward_held.emit(self.in_backward)
        if self._tensors is None:
            if held is None:
                return
            self._connect(self._make())
        assert self._tensors is not None
        page = self._tensors.page
        page.console.show_held(held)
        # A script of the user's is never stopped from here.
        page.console.held.stop.setVisible(self._bench.link.script is None)
        page.variables.show_held("" if held is None else held.where)
        if held is not None and held.at == "line":
            self._lead_there(held)

    def _lead_there(self, held: HeldSnapshot) -> None:
        """A page that does not show the code gives place to one that does."""
        window = self._bench.window
        if window.workspace in ("tensors", "train"):
            return
        if window.workspace == "autograd":
            self._bench.say(f"{held.where}: Tensors shows it.")
        else:
            window.show_workspace("tensors")

    def _connect(self, tensors: TensorsPresenter) -> None:
        self._tensors = tensors
        view, pane = tensors.page.console, tensors.page.console.held
        view.held_run_requested.connect(self._run)
        pane.continue_requested.connect(lambda: self.go_on("on"))
        pane.line_requested.connect(lambda: self.go_on("line"))
        pane.step_requested.connect(lambda: self.go_on("step"))
        pane.stop_requested.connect(self._bench.link.stop_held)

    def _run(self, source: str) -> None:
        def take(snapshot: Snapshot) -> None:
            if self._tensors is None:
                return
            console = self._tensors.page.console
            match snapshot:
                case OutputSnapshot() | OutputTailSnapshot():  # of a script: no cell has printed it
                    console.add_output(snapshot)
                case CellSnapshot(error=error):
                    console.finish_held(error)

        def fail(error: ErrorReport) -> None:
            self._bench.say(in_words(error))

        if not self._bench.ask(RunHeldCommand(source=source), take, fail):
            self._bench.say(self._bench.link.unsent)
