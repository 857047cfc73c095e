"""One session: a lab that answers commands one by one, and trains between them.

The session runs in one thread. Its owner (`serve` or an in-process link) calls `handle` for each
command. Between commands it calls `advance`, as long as that returns True. `lab` says what the
session expects of a handler.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext

import msgspec

from ..datasets.console_values import values_of
from ..lab import Lab, Run
from ..protocol import (
    Command,
    ContinueTrainingCommand,
    ErrorSnapshot,
    Snapshot,
    StepLineCommand,
    StepTrainingCommand,
    StepUnit,
    TrainCommand,
    TrainingSnapshot,
    TrainingState,
)
from ..system.errors import LabError, error_report
from ..system.user_files import is_user_file
from ..tensors.error_help import explain_error

Handler = Callable[[Lab, Command], Iterable[Snapshot | None]]


@functools.cache
def handler_of(command: type[Command]) -> Handler:
    """The function that `command.handler` names, imported at its first use."""
    module, function = command.handler.split(":")
    return getattr(importlib.import_module(f"..handlers.{module}", __package__), function)


class Session:
    """Answers commands by `emit(snapshot)`; each snapshot carries the id of its command.
    `done(command)` is called when a command is answered. Tests give their own `find_handler`.
    `apart(work)` calls `work` at once or on a thread, from which `emit` and `done` are called too.
    """

    def __init__(
        self,
        emit: Callable[[Snapshot], None],
        find_handler: Callable[[type[Command]], Handler] = handler_of,
        done: Callable[[Command], None] = lambda command: None,
        apart: Callable[[Callable[[], None]], object] = lambda work: work(),
    ) -> None:
        self._emit = emit
        self._done = done
        self._apart = apart
        self._find_handler = find_handler
        self._foreground = Command()  # the command that `emit` answers
        self._training = Command()
        self._job: Iterator[Snapshot | None] | None = None
        self._showed_pause = False
        self._until_epoch: int | None = None  # the run pauses when so many are done
        self.lab = Lab(emit=lambda snapshot: self._answer(self._foreground, snapshot))
        self.lab.show_pause = self._show_pause

    def handle(self, command: Command) -> None:
        """Answer one command. An error becomes an ErrorSnapshot, and the session goes on."""
        if not self.refuse(command):
            with self.answering(command):
                self._handle(command)

    def refuse(self, command: Command) -> bool:
        """Whether the command is not to begin: it was stopped while it waited."""
        control = self.lab.control
        if not control.stops(command.id):
            return False
        self._fail(command, KeyboardInterrupt("It was stopped before it began."))
        self._finish(command)
        return True

    def _finish(self, command: Command) -> None:
        self.lab.control.stopped.discard(command.id)
        self._done(command)

    def _handle(self, command: Command) -> None:
        if type(command).apart:
            self._apart(functools.partial(self._answer_all, command))
            return
        self._foreground = command
        if isinstance(command, TrainCommand):
            self._start_training(command)
            return
        try:
            if isinstance(command, StepTrainingCommand | ContinueTrainingCommand):
                self._go_on(command)
            elif isinstance(command, StepLineCommand):
                raise LabError("No code is held.", hint="breakpoint() in it holds it there.")
            else:
                self._run_to_end(command)
        except BaseException as error:  # the user's code may raise anything
            self._fail(command, error)
        self._finish(command)

    def handle_held(self, command: Command) -> bool:
        """Answer one command inside code that is held. False, and nothing is done, if it must wait
        for the end of the code: it is not about the code, nor does it only read."""
        control = self.lab.control
        if self.refuse(command):
            return True
        if type(command).apart:
            self.handle(command)
            return True
        try:
            if isinstance(command, StepTrainingCommand):
                self._showed_pause = False  # it is shown again where the run pauses next
                if command.by != "epoch":
                    control.pause.set()
                    control.goes_on = command.by
                else:
                    control.pause.clear()
                    control.goes_on = "on"
                    self._until_epoch = self._run().epoch + 1 if control.holds_run else None
            elif isinstance(command, StepLineCommand):
                control.goes_on = "line"
            elif isinstance(command, ContinueTrainingCommand):
                control.pause.clear()
                control.goes_on = "on"
            elif type(command).while_held or type(command).while_running:
                with self.answering(command):
                    self._answer_all(command)
                return True
            else:
                if isinstance(command, TrainCommand) and control.holds_run:
                    control.goes_on = "phase"  # it ends this run, or takes it back
                return False
        except BaseException as error:  # the user's code may raise anything
            self._fail(command, error)
        self._finish(command)
        return True

    def _answer_all(self, command: Command) -> None:
        """Run the handler of a command that only reads to its end."""
        try:
            for snapshot in self._find_handler(type(command))(self.lab, command):
                if snapshot is not None:
                    self._answer(command, snapshot)
        except BaseException as error:  # the user's code may raise anything
            self._fail(command, error)
        self._finish(command)

    def answer_inside(self, command: Command) -> bool:
        """Answer one command in the middle of the user's code that runs. False, and nothing is
        done, unless it only reads."""
        return type(command).while_running and self.handle_held(command)

    def advance(self) -> bool:
        """Train one step, if a run is going. False if there is nothing to do until a command or
        signal comes."""
        if self._job is None:
            return False
        control = self.lab.control
        is_elsewhere = self.lab.run is not None and self.lab.run.pass_on is not None
        if control.pause.is_set() and not control.stop.is_set() and not is_elsewhere:
            if not self._showed_pause:
                self._show_pause()
            return False
        self._showed_pause = False
        with self.answering(self._training):
            self._next()
        end = self._until_epoch
        if self._job is not None and end is not None and self._run().epoch >= end:
            control.pause.set()
        return self._job is not None

    @contextmanager
    def answering(self, command: Command) -> Iterator[None]:
        """In this context data sets of the console are found, and nothing of a document that the
        user has not agreed to."""

        def find(expression: str) -> object:
            from ..handlers.subjects.find import console_value

            return console_value(self.lab, expression)

        def stamp() -> object:
            namespace = self.lab.console.namespace
            return id(namespace), namespace.cells_run

        before, self.lab.unagreed = self.lab.unagreed, command.unagreed
        try:
            with values_of(find, stamp), self.lab.control.runs(command.id):
                yield
        finally:
            self.lab.unagreed = before

    def close(self) -> None:
        """End the run and the backward pass. No command is answered afterwards."""
        self._end_training()
        self.lab.close()

    # -- commands that are answered at once ------------------------------------------------------

    def _run_to_end(self, command: Command) -> None:
        control = self.lab.control
        if self._job is None:  # else the flags are meant for the training run
            control.clear_before(command.id)
        results = iter(self._find_handler(type(command))(self.lab, command))
        with self._run().between_steps() if self._job is not None else nullcontext():
            for snapshot in results:
                if snapshot is not None:
                    self._answer(command, snapshot)
                elif control.stops(command.id) or (self._job is None and control.stop.is_set()):
                    _close(results)
                    return

    # -- the training run ------------------------------------------------------------------------

    def _start_training(self, command: TrainCommand) -> None:
        if self._job is not None and command.to_step is not None:
            try:
                self._run().check_way()
            except LabError as error:  # the run goes on as it is
                self._fail(command, error)
                self._finish(command)
                return
        if self._job is not None and self.lab.run is not None:
            self._answer(self._training, self.lab.run.snapshot("stopped"))
        self._end_training()
        self.lab.control.clear_before(command.id)
        try:
            self._job = iter(self._find_handler(type(command))(self.lab, command))
        except BaseException as error:
            self._fail(command, error)
            self._finish(command)
            return
        self._training, self._until_epoch = command, None
        self.lab.control.training = command.id
        if self.lab.control.stops(command.id):  # it was stopped a moment ago
            self.lab.control.stop.set()
        self.lab.is_training = True
        if command.paused:
            self.lab.control.pause.set()
        self._next()  # the run is built; no step is done yet

    def _go_on(self, command: StepTrainingCommand | ContinueTrainingCommand) -> None:
        if self._job is None:
            raise LabError("There is no paused run.", hint="Start training first.")
        pause, run = self.lab.control.pause, self._run()
        by = command.by if isinstance(command, StepTrainingCommand) else ""
        self._until_epoch = None
        if by in ("", "epoch"):
            pause.clear()
        else:
            pause.set()
        if run.pass_on is not None:
            run.pass_on(command)
        elif by == "epoch":
            self._until_epoch = run.epoch + 1
        elif by:
            self._step(by)

    def _step(self, by: StepUnit) -> None:
        """Run to the end of the step, or less far. Where it is held inside of a phase, the user may
        change how far."""
        run = self._run()
        before = run.step
        while self._job is not None and (run.step == before or run.is_on_way):
            with run.by_hand(by):
                self._next()
                run = self._run()
                if run.hold is not None or (run.stops_in_step and run.is_in_step):
                    break
        if self._job is not None and self.lab.control.pause.is_set():
            self._show_pause()

    def _show_pause(self) -> None:
        self._showed_pause, self._until_epoch = True, None
        self._answer(self._training, self._run().snapshot("paused"))

    def _run(self) -> Run:
        assert self.lab.run is not None  # the job has set it before its first snapshot
        return self.lab.run

    def _next(self) -> None:
        """Advance the run by one `next`, and drop it at its end."""
        assert self._job is not None
        try:
            with self.lab.control.runs(self._training.id):
                snapshot = next(self._job)
        except StopIteration:
            self._end_training()
        except BaseException as error:
            self._fail(self._training, error)
            self._end_training()
        else:
            if snapshot is not None:
                if isinstance(snapshot, TrainingSnapshot) and snapshot.state != "running":
                    self._until_epoch = None  # it is held, or over
                self._answer(self._training, self._truthful(snapshot))

    def _truthful(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot, with the state "paused" if the run is paused: a run only knows "running",
        because the session pauses it."""
        paused = self.lab.control.pause.is_set() and self._run().pass_on is None
        if paused and isinstance(snapshot, TrainingSnapshot) and snapshot.state == "running":
            return msgspec.structs.replace(snapshot, state="paused")
        return snapshot

    def _end_training(self) -> None:
        job, self._job = self._job, None
        self.lab.is_training, self.lab.control.training = False, 0
        self._showed_pause = False
        if job is not None:
            _close(job)
            self._finish(self._training)

    def tell_run_again(self, state: TrainingState) -> None:
        """Tell all steps of the newest run to a window that has come meanwhile."""
        run = self.lab.run
        if run is not None:
            run.tell_again()
            self._answer(self._training, run.snapshot(state))

    # -- answers ---------------------------------------------------------------------------------

    def _answer(self, command: Command, snapshot: Snapshot) -> None:
        self._emit(
            msgspec.structs.replace(snapshot, reply_to=command.id, revision=command.revision)
        )

    def _fail(self, command: Command, error: BaseException) -> None:
        problems = error.problems if isinstance(error, LabError) else ()
        report = error_report(error, is_user_file)
        report = msgspec.structs.replace(report, hint=report.hint or explain_error(error))
        self._answer(
            command,
            ErrorSnapshot(command=type(command).__name__, error=report, problems=problems),
        )


def _close(results: Iterator[Snapshot | None]) -> None:
    """Close a generator; other iterators need no closing."""
    if isinstance(results, Generator):
        results.close()
