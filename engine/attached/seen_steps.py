"""The steps of the user's loop, as the session in its process sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from torch import Tensor
from torch.optim import Optimizer

from ..loops.hooks import Gate, Steps
from ..loops.loop_looks import LoopLooks
from ..loops.own_loop import OwnLoop
from ..loops.updates import Updates
from ..system.control import Control
from .figures import LoggedFigures
from .modules import SeenModules


class SeenSteps(Steps):
    """Of many short steps a few are looked at: `is_awake` says which. Until one is due, `gate` is
    shut: whoever has something for the user's thread, as `is_asked()` says, opens it."""

    def __init__(
        self,
        loop: OwnLoop,
        updates: Updates,
        modules: SeenModules,
        logged: LoggedFigures,
        control: Control,
        gate: Gate,
        is_asked: Callable[[], object],
        looks: LoopLooks,
    ) -> None:
        self._loop, self._updates, self._modules = loop, updates, modules
        self._control, self._gate, self._is_asked = control, gate, is_asked
        self.logged = logged
        self._looks, self.looks_are_wanted = looks, False
        """Whether a window has asked how the parameters move: then some steps are looked at for
        that, too."""
        self._spent_s = 0.0  # for the step that is looked at
        self._is_awake = True

    def reach(self) -> None:
        """The process has done as many steps as the gate has counted."""
        self._loop.step = self._gate.steps

    def reach_with_figures(self) -> None:
        """And what was logged until now is drawn."""
        self.reach()
        self.logged.catch_up()

    def catch_up(self) -> None:
        """Tell the figures up to the last step."""
        self.reach_with_figures()
        self._loop.catch_up()

    def spend(self, seconds: float) -> None:
        """What is logged has taken so long."""
        self._spent_s += seconds

    def saw_loss(self, loss: Tensor, root: Tensor) -> None:
        self._loop.saw_loss(loss, root)

    def before_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        began_s = self._loop.clock()
        self._updates.before_step(optimizer, has_closure)
        if self.looks_are_wanted:
            self._looks.before_step(optimizer, has_closure)
        self._loop.before_step(optimizer, has_closure)
        self._spent_s += self._loop.clock() - began_s

    def after_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        """Show this step, which is not counted yet, and hold the code if wanted."""
        began_s = self._loop.clock()
        self._updates.after_step(optimizer, has_closure)
        if self.looks_are_wanted:
            self._looks.after_step(optimizer, has_closure)
        self._control.reach(self._gate.steps + 1)
        self.reach()
        self._loop.after_step(optimizer, has_closure)
        self._spent_s += self._loop.clock() - began_s

    def after_log(self) -> None:
        """As `after_step`, but the step is counted."""
        self._loop.step = self._gate.steps - 1
        self._loop.after_log()

    def is_awake(self) -> bool:
        """Whether the step that begins now is looked at."""
        loop, control, gate = self._loop, self._control, self._gate
        began_s = perf_counter()
        if self._is_awake:  # the step that has just ended was looked at
            loop.spend(self._spent_s)
        self.reach()
        loop.end_unseen()
        self._modules.begin_step(gate.steps + 1)
        gate.is_shut = True  # before anything is asked: who comes later opens it
        self._is_awake = bool(
            loop.is_due
            or control.pauses_by(gate.steps + 1)
            or self._is_asked()
            or self._updates.is_asked
            or loop.watch is not None
            or loop.looks
        )
        if self._is_awake:
            gate.open()
            loop.begin_step()
            self._spent_s = perf_counter() - began_s
            return True
        gate.due_s = loop.due_s
        if control.pause_at or control.steps_backward or self._modules.are_wanted:
            gate.open()  # the next steps are counted and recorded
        return False

    @property
    def steps_backward(self) -> bool:
        """Whether a backward pass that begins now is to be stepped."""
        return self._control.steps_backward

    @contextmanager
    def stepping_backward(self, is_steered: bool) -> Iterator[None]:
        """In this context the backward passes of the user's code are stepped, if a window steers
        it."""
        control, self._modules.are_wanted = self._control, True
        before, control.steps_backward = control.steps_backward, is_steered
        self._gate.open()
        try:
            yield
        finally:
            control.steps_backward = before
