"""What one engine holds: every tensor, model, graph and run that the window can ask about.

The contract between `session` and the handlers
------------------------------------------------
A handler is `def name(lab: Lab, command: XxxCommand) -> Iterable[Snapshot | None]`, usually a
generator. It yields its snapshots as they arise; the session fills in `reply_to` and `revision`.
It raises a `LabError` for what the user can correct; any other exception is a fault of the
program. The session runs a handler to its end at once; where it yields None, a stop signal may
end it.

Only training goes on while other commands are answered:

* `train(lab, command)` builds the run, sets `lab.run`, and yields a first snapshot *before* the
  first step. Each further `next()` does one optimizer step and yields: a TrainingSnapshot if
  1/30 s has passed since the last one, else None. It may yield None more often, for example
  during a validation pass.
* After every step it looks at `lab.control.stop`. If that is set, it yields a last snapshot with
  state "stopped" and returns. At the end of the run it yields one with state "finished" and
  returns. If the user's model or data raises, the last snapshot has state "failed" and an `error`.
* The run does not know of pausing, unless other processes train it (`Run.pass_on`). While
  `lab.control.pause` is set, the session does not call `next()`; it shows
  `lab.run.snapshot("paused")`, and again after each single step.
* When a new run starts, the session closes the old one between two steps (`GeneratorExit`).
* `lab.run` stays after the end. It is a `Run`.

The session itself answers `StepTrainingCommand` and `ContinueTrainingCommand`.

Code of the user's that is held calls `lab.attend` meanwhile (`handlers/holding.py`): it answers
what comes then, by `Session.handle_held`. So does a step of Train that is held inside of a phase;
it calls `lab.show_pause` first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from ..project.document import TrainingSetup
from ..protocol import (
    Command,
    Hold,
    Snapshot,
    StepUnit,
    TrainingSnapshot,
    TrainingState,
)
from ..system.control import Control

if TYPE_CHECKING:
    from torch import nn

    from ..artifacts.state import ArtifactState
    from ..autograd.backward.state import BackwardState
    from ..autograd.derivatives.state import DerivativeState
    from ..autograd.trace.state import TraceState
    from ..console.output import Output
    from ..console.state import ConsoleState
    from ..importing.folder_modules import FolderModules
    from ..models.state import ModelState
    from ..subjects.canvas import Canvas
    from ..subjects.state import SubjectState
    from ..tensors.values.state import ValuesState
    from ..training.distributed.ranks import Ranks


class Run(Protocol):
    """What the session uses of a training run."""

    @property
    def id(self) -> str:
        """Another one for a run that has gone back to a step."""
        ...

    @property
    def step(self) -> int:
        """The number of optimizer steps done."""
        ...

    @property
    def is_in_step(self) -> bool:
        """Whether some phases of the newest step are still to come."""
        ...

    @property
    def hold(self) -> Hold | None:
        """Why the run is held where it stands, if a watchpoint did it."""
        ...

    @property
    def is_on_way(self) -> bool:
        """Whether the run repeats steps."""
        ...

    @property
    def pass_on(self) -> Callable[[Command], None] | None:
        """Gives a command to step or to go on to the other processes that train the run; None if
        this one trains it. Such a run tells itself when it pauses; the session always calls
        `next()`."""
        ...

    @property
    def epoch(self) -> int:
        """The number of epochs done."""
        ...

    @property
    def stops_in_step(self) -> bool:
        """Whether it goes on by less than a step."""
        ...

    def by_hand(self, by: StepUnit) -> AbstractContextManager[None]:
        """In this context steps are run one by one, or by less: then the run also stops between
        the phases of a step, and inside of them. Raises LabError."""
        ...

    def check_way(self) -> None:
        """Raise LabError if the run cannot go to one of its steps."""
        ...

    def snapshot(self, state: TrainingState) -> TrainingSnapshot:
        """The state of the run, with the steps that no snapshot has had yet."""
        ...

    def tell_again(self) -> None:
        """Let the next snapshot have the steps of the whole run: for a window that has none."""
        ...

    def adjust(self, setup: TrainingSetup) -> None:
        """Take the optimizer's parameters of another set-up from the next step on."""
        ...

    def between_steps(self) -> AbstractContextManager[None]:
        """The engine does its other work between two steps in this context. Its random numbers then
        come from another stream, so that the run is not changed."""
        ...


class Lab:
    """All torch state of one engine: the flags and the run for the session, and a state for each
    room.

    A room's state is imported and made at its first use. A handler yields its snapshots; for output
    that it cannot yield it calls `emit`, which any thread may do.
    """

    def __init__(self, emit: Callable[[Snapshot], None]) -> None:
        self.emit = emit
        self.control = Control()
        self.run: Run | None = None
        self.unagreed = False
        """`Command.unagreed` of the command that is answered: `handlers.subjects` minds it."""
        self.is_training = False
        """Whether a run is going or paused: then the flags are meant for it."""
        self.ranks: Ranks | None = None
        """The ranks of a run in several processes, if this process is one of them."""
        self.show_pause: Callable[[], None] = lambda: None
        """Tells where the run is held."""
        self.attend: Callable[[], None] | None = None
        """Waits a moment for a command, and answers it inside the cell that runs. None where
        commands come only between cells."""
        self.inside: Callable[[Callable[[], None]], None] | None = None
        """Calls a function, which only reads, in the middle of the user's code that runs in the
        main thread, if it may be called there. None while no cell or file runs."""
        self.standard_files: tuple[int, int] | None = None
        """Descriptors of the files that are this process's standard output and error, if they are
        files of the engine's own."""

    @cached_property
    def console(self) -> ConsoleState:
        from ..console.state import ConsoleState
        from ..importing.console_modules import ConsoleModules
        from ..subjects.canvas import UsersCanvas

        def of_files() -> list[FolderModules]:
            return [file.modules for file in self.subjects.files.values()]

        return ConsoleState(
            UsersCanvas(self.canvas),
            self.canvas.named,
            self._module_shown,
            ConsoleModules(of_files),
        )

    def _module_shown(self) -> nn.Module:
        shown = self.subjects.shown
        return self.canvas.take() if shown is None else shown()

    @cached_property
    def canvas(self) -> Canvas:
        from ..subjects.canvas import Canvas

        @contextmanager
        def sheltered() -> Iterator[None]:
            with self.control.own_code(), self.console.namespace.suspended():
                yield

        return Canvas(self.models, sheltered)

    @cached_property
    def models(self) -> ModelState:
        from ..models.state import ModelState

        return ModelState()

    @cached_property
    def subjects(self) -> SubjectState:
        from ..loops.updates import Updates
        from ..subjects.state import SubjectState

        return SubjectState(updates=Updates(self.control.own_code))

    @cached_property
    def backward(self) -> BackwardState:
        from ..autograd.backward.state import BackwardState

        return BackwardState()

    @cached_property
    def trace(self) -> TraceState:
        from ..autograd.trace.state import TraceState

        return TraceState()

    @cached_property
    def derivatives(self) -> DerivativeState:
        from ..autograd.derivatives.state import DerivativeState

        return DerivativeState()

    @cached_property
    def values(self) -> ValuesState:
        from ..tensors.values.state import ValuesState

        return ValuesState()

    @cached_property
    def artifacts(self) -> ArtifactState:
        from ..artifacts.state import ArtifactState

        return ArtifactState()

    def output(self, all_output: bool = False) -> Output:
        """Where the user's code that runs next prints."""
        from ..console.output import Output
        from ..console.process_output import ProcessOutput

        files = self.standard_files
        return Output(
            self.emit,
            all_output=all_output,
            process=None if files is None else ProcessOutput(*files),
            shield=self.control.own_code,
        )

    @contextmanager
    def users_code(self) -> Iterator[None]:
        """In this context the user's code runs: what it prints is told, an interrupt stops it, and
        `breakpoint()` does not wait."""
        from ..console.breakpoint_calls import breakpoints_told

        with self.output().redirected(), breakpoints_told(), self.control.user_code():
            yield

    def close(self) -> None:
        """End the backward pass, if there is one."""
        if "backward" in vars(self):
            self.backward.close()
