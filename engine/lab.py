"""What one engine holds: every tensor, model, graph and run that the window can ask about.

The contract between `session` and the handlers
------------------------------------------------
A handler is `def name(lab: Lab, command: XxxCommand) -> Iterable[Snapshot | None]`, as a rule a
generator. It yields snapshots as they arise (the session fills in `reply_to` and
`revision`) and may raise: a `LabError` for what the user can put right, anything else for a fault.
Every handler but `train` is run to its end at once; where it yields None it may be stopped.

Training is the one job that lives on while other commands are answered:

* `train(lab, command)` builds the run, sets `lab.run`, and yields a first snapshot *before* the
  first step. Each further `next()` does one optimizer step and yields: a TrainingSnapshot when
  1/30 s has passed since the last one, else None. It may yield None more often (in the middle of
  a validation pass, say).
* After every step it looks at `lab.control.stop`: when set it yields a last snapshot with state
  "stopped" and returns. At the end it yields one with state "finished" and returns. An error in
  the user's model or data is a last snapshot with state "failed" and its `error`.
* It does not know of pausing. The session does not call `next()` while `lab.control.pause` is
  set; it asks `lab.run.snapshot("paused")` for what to show, and again after a single step.
* It may be closed between two steps (`GeneratorExit`) when a new run replaces it.
* `lab.run` stays after the end. It is a `Run`.

`StepTrainingCommand` and `ContinueTrainingCommand` are the session's own: they have no handler.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from .control import Control
from .protocol import Snapshot, TrainingSnapshot, TrainingState

if TYPE_CHECKING:
    from .autograd.backward.state import BackwardState
    from .autograd.derivatives.state import DerivativeState
    from .autograd.trace.state import TraceState
    from .console.state import ConsoleState
    from .models.state import ModelState
    from .tensors.values.state import ValuesState


class Run(Protocol):
    """What the session needs to know of a training run."""

    @property
    def step(self) -> int:
        """Optimizer steps done so far."""
        ...

    def snapshot(self, state: TrainingState) -> TrainingSnapshot:
        """The run as it stands, with the steps that no snapshot has held yet."""
        ...

    def aside(self) -> AbstractContextManager[None]:
        """Whatever the engine does between two steps is done in this, so that it cannot disturb
        the run: its random numbers come from another stream."""
        ...


class Lab:
    """All torch state of one engine: what the session needs, and the state of each room.

    A room's state is imported and made at its first use. `emit` sends a snapshot in the midst of
    a handler, for output that cannot be yielded; it may be called from any thread.
    """

    def __init__(self, emit: Callable[[Snapshot], None]) -> None:
        self.emit = emit
        self.control = Control()
        self.run: Run | None = None

    @cached_property
    def console(self) -> ConsoleState:
        from .console.state import ConsoleState

        return ConsoleState()

    @cached_property
    def models(self) -> ModelState:
        from .models.state import ModelState

        return ModelState()

    @cached_property
    def backward(self) -> BackwardState:
        from .autograd.backward.state import BackwardState

        return BackwardState()

    @cached_property
    def trace(self) -> TraceState:
        from .autograd.trace.state import TraceState

        return TraceState()

    @cached_property
    def derivatives(self) -> DerivativeState:
        from .autograd.derivatives.state import DerivativeState

        return DerivativeState()

    @cached_property
    def values(self) -> ValuesState:
        from .tensors.values.state import ValuesState

        return ValuesState()

    def close(self) -> None:
        """End the backward pass under way, if any."""
        if "backward" in vars(self):
            self.backward.close()
