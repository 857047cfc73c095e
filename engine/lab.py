"""What one engine holds: every tensor, model, graph and run that the window can ask about.

The contract between `session` and the rooms
---------------------------------------------
A room's handler is `def name(lab: Lab, command: XxxCommand) -> Iterable[Snapshot | None]`, as a
rule a generator. It yields snapshots as they arise (the session fills in `reply_to` and
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
* `lab.run` stays after the end. It is any object with the attributes of `Run` below.

`StepTrainingCommand` and `ContinueTrainingCommand` are the session's own: rooms need no handler.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from .protocol import Initialisation, Snapshot, TrainingSnapshot, TrainingState

if TYPE_CHECKING:
    from .autograd.derivatives.gradient_flow import FlowRun
    from .console.namespace import Namespace
    from .handlers.derivatives import Derived
    from .handlers.values import UnderWay
    from .models.live import LiveModel


class Run(Protocol):
    """What the session needs to know of a training run."""

    step: int
    """Optimizer steps done so far."""

    def snapshot(self, state: TrainingState) -> TrainingSnapshot:
        """The run as it stands, with the steps that no snapshot has held yet."""
        ...

    def aside(self) -> AbstractContextManager[None]:
        """Whatever the engine does between two steps is done in this, so that it cannot disturb
        the run: its random numbers come from another stream."""
        ...


@dataclass
class Control:
    """Flags set from outside the engine's thread while it works.

    `mark` is the id of the newest command that was sent before the last signal: a signal is
    meant for that job and older ones, so a job with a higher id starts with clear flags.
    """

    stop: threading.Event = field(default_factory=threading.Event)
    pause: threading.Event = field(default_factory=threading.Event)
    mark: int = 0
    in_user_code: bool = False

    def clear_before(self, command_id: int) -> None:
        """Forget signals that were sent before the command `command_id` was."""
        if self.mark < command_id:
            self.stop.clear()
            self.pause.clear()

    @contextmanager
    def user_code(self) -> Iterator[None]:
        """Code of the user's runs here, and an InterruptSignal raises KeyboardInterrupt in it."""
        self.in_user_code = True
        try:
            yield
        finally:
            self.in_user_code = False

    @contextmanager
    def own_code(self) -> Iterator[None]:
        """Inside of `user_code`: this is the lab's own after all, and is not to be cut in two."""
        outside, self.in_user_code = self.in_user_code, False
        try:
            yield
        finally:
            self.in_user_code = outside


@dataclass
class Lab:
    """All torch state of one engine. Rooms fill in their own fields.

    `emit` sends a snapshot in the midst of a handler, for output that cannot be yielded; it may
    be called from any thread.
    """

    emit: Callable[[Snapshot], None]
    control: Control = field(default_factory=Control)
    live: LiveModel | None = None
    namespace: Namespace | None = None
    forward: Any = None
    backward: Any = None
    breakpoints: Any = None  # of the backward pass
    trace: Any = None  # what torch ran, call by call
    run: Any = None  # a Run, see above
    counting: UnderWay | None = None  # statistics
    tracing: UnderWay | None = None  # lines
    derived: Derived | None = None  # the last matrix of derivatives
    flow: dict[Initialisation, FlowRun] | None = None  # the last gradient flow

    def end_backward(self) -> None:
        """Close the backward pass under way, if any: the real engine may be held in it."""
        backward, self.backward = self.backward, None
        if backward is not None:
            backward.close()
