"""The session in the user's process, from the first window that attaches to the last that leaves.

Commands are answered in the user's thread after an optimizer step and while it is held: there torch
is in the state of the user's code. Those that only read are answered by a thread of the session's
when the user's does not come by, and between the cells of a notebook all are. Never do two threads
work in the session at once.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

import msgspec
from torch.optim import Optimizer

from ..connecting.greeting import Role
from ..connecting.peer import Peer
from ..console.breakpoint_calls import breakpoints_held
from ..console.output import Output
from ..console.variables import list_variables
from ..lab.holding import loop_looks, watching_of
from ..loops.hooks import Gate
from ..loops.step_losses import StepLosses
from ..protocol import (
    AnySignal,
    Command,
    FarewellSnapshot,
    HeldSnapshot,
    HoldWhenSignal,
    InterruptSignal,
    PauseSignal,
    ReadHistogramsCommand,
    ReadModuleNormsCommand,
    RunHeldCommand,
    Snapshot,
    StepBackwardSignal,
    StopSignal,
    WatchCommand,
)
from ..server.serve import Worker
from ..server.session import Session
from ..system.devices import ready
from ..system.errors import LabError, error_report
from ..system.user_files import is_user_file
from .allowed import refusal
from .answering import Answering
from .figures import LoggedFigures
from .holder import AttachedHolder
from .modules import SeenModules, parameter_names
from .seen_steps import SeenSteps
from .windows import Seat, Windows

PASSING_S = 0.1
"""How long the user's thread is waited for, before another answers what only reads."""
FLUSH_S = 1.0
"""The time that windows have to read the last figures when the process ends."""
ATTEND_S = 0.05
"""How often code that is held looks whether it may go on."""


class AttachedSession:
    """`watched` gives the objects that the user has named for the lab; `main` is the module that
    the user's code is in. `ended()` is called when the last window has left; `early` as in
    `OwnLoop`. To be made on any thread; `after_step`, `hold` and `step_backward` are for the user's
    thread `thread`. `gate` as in SeenSteps, `losses` as in OwnLoop."""

    def __init__(
        self,
        title: str,
        main: Mapping[str, Any],
        watched: Callable[[], Mapping[str, Any]],
        thread: int,
        gate: Gate,
        ended: Callable[[AttachedSession], None],
        early: set[str],
        seat: Seat,
        losses: StepLosses,
    ) -> None:
        self._main, self._watched, self._thread, self._ended = main, watched, thread, ended
        self._gate = gate
        self._seat = seat
        self._turn = threading.RLock()
        self._windows = Windows()
        self.has_steering = self._windows.has_steering
        self._waiting: deque[Command] = deque()
        self._came = threading.Condition()
        self._postponed: list[Command] = []
        self._now = Answering()
        self._is_over = self._is_finished = self._is_idle = False
        self._held: HeldSnapshot | None = None
        windows = self._windows
        self._session = Session(windows.tell, done=windows.done, apart=Worker().put)
        lab = self._lab = self._session.lab
        lab.emit = self._tell
        lab.attend = self._attend
        lab.control.interrupt = self._interrupt
        lab.control.mark = sys.maxsize  # no command ends a pause: it is meant for the user's loop
        self._namespace = lab.console.namespace
        self._namespace.records = False
        self._output = Output(lab.emit)
        self._holder = AttachedHolder(lab, self._namespace, title, self._output, losses)
        self._holder.entered = self._alone
        self._loop = self._holder.loop
        self._loop.early = early
        self._is_entered = False
        lab.inside = self._holder.inside  # the user's code runs
        modules = SeenModules(self._namespace, lab.control, watched, lambda: self.is_working)
        self.steps = SeenSteps(
            self._loop,
            lab.subjects.updates,
            modules,
            LoggedFigures(self._namespace.lab),
            lab.control,
            gate,
            lambda: self._waiting or self._postponed,
            loop_looks(lab, lambda: parameter_names(watched(), self._holder.names), self._loop),
        )
        self._stack = ExitStack()
        self._stack.callback(modules.end)
        self._stack.enter_context(breakpoints_held(self.hold, thread))
        self._stack.enter_context(self._namespace.lab.counted(self._loop.step_of))
        threading.Thread(target=self._attend_aside, name="tensorlab-session", daemon=True).start()

    # -- windows ---------------------------------------------------------------------------------

    def add(self, connection: Connection, role: Role) -> bool:
        """Another window: it is told what the others know. False if the last one has just left.
        `role` is what the seat has given it."""
        with self._turn:
            if self._is_over:
                return False
            peer = Peer(connection, role, self._take, self._remove)
            peer.tell(ready())
            if self._held is not None:
                peer.tell(self._held)
            with self._seeing():
                peer.tell(list_variables(self._lab.console.namespace))
            self._windows.add(peer)
        peer.start()
        return True

    def _take(self, peer: Peer, message: Command | AnySignal) -> None:
        """A message from a window; on a thread of the peer's."""
        if not isinstance(message, Command):
            if peer.role == "steer":
                self._act(message)
                self._gate.open()
            return
        command = self._windows.numbered(peer, message)
        if peer.role == "watch" and not type(command).while_running:
            self._windows.refuse(
                command,
                LabError("Another window steers this process.", hint="Detach it there first."),
            )
        elif (error := refusal(command)) is not None:
            self._windows.refuse(command, error)
        else:
            if isinstance(command, ReadModuleNormsCommand | ReadHistogramsCommand):
                self.steps.looks_are_wanted = True
            with self._came:
                self._waiting.append(command)
                self._came.notify_all()
            self._gate.open()

    def _remove(self, peer: Peer) -> None:
        """A window has left. Nobody is there to let held code go on, so it goes on."""
        with self._turn:
            self._windows.remove(peer)
            self._is_over = not self._windows.peers
        self._seat.leave(peer.role)
        if not self.has_steering():
            self._lab.control.let_go()
            self._gate.open()
        if self._is_over:
            self._leave()

    def close(self, error: BaseException | None, code: int | None) -> None:
        """The process ends, by `error` or as it should: tell the windows the last figures and the
        exit code, if it is known, and hang up."""
        with self._turn:
            self._is_over = True
        report = None if error is None else error_report(error, is_user_file)
        self.steps.reach_with_figures()
        last = self._loop.last(error, report)
        if last is not None:
            self._tell(last)
        self._tell(FarewellSnapshot(code=code))
        for peer in self._windows.peers:
            peer.close(FLUSH_S)
        self._leave()

    def _leave(self) -> None:
        """Leave the user's process as it would be without the session: at once, or when code that
        is held has gone on."""
        self._ended(self)
        with self._came:
            self._waiting.clear()
            self._came.notify_all()
        if self._held is None:
            self._finish()

    def _finish(self) -> None:
        with self._turn:
            if not self._is_finished:
                self._is_finished = True
                self._stack.close()
                self._session.close()

    def _act(self, signal: AnySignal) -> None:
        control = self._lab.control
        match signal:
            case PauseSignal():
                control.pause_after(signal.at_step)
            case StepBackwardSignal():
                control.steps_backward = signal.on
            case HoldWhenSignal():
                control.hold_when = signal.when
            case StopSignal() | InterruptSignal():
                if signal.command in (0, *control.running[-1:]):  # else the user's own code runs
                    self._interrupt()
        with self._came:
            self._came.notify_all()

    # -- what is told ----------------------------------------------------------------------------

    def _tell(self, snapshot: Snapshot) -> None:
        """Tell all windows; it belongs to what this thread is answering, if anything is."""
        if isinstance(snapshot, HeldSnapshot):
            self._held = snapshot if snapshot.at else None
            self._gate.open()
        self._windows.tell(msgspec.structs.replace(snapshot, reply_to=self._now.number))

    # -- in the user's thread --------------------------------------------------------------------

    @property
    def is_working(self) -> bool:
        """Whether the user's thread does work of the session's, or is held: what runs there then is
        not a step of the user's loop."""
        return self._held is not None or self._now.thread == self._thread

    def after_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        """Show this step, hold the code if wanted, and answer what waits."""
        self.steps.after_step(optimizer, has_closure)
        self._come_by()

    def after_log(self) -> None:
        """As `after_step`, where no optimizer of torch's steps."""
        self.steps.after_log()
        self._come_by()

    def _come_by(self) -> None:
        if self._waiting or self._postponed:
            self._answer_waiting(is_aside=False)
        self._end_if_over()

    def be_idle(self, is_idle: bool) -> None:
        """None of the user's code runs, or some begins: then all commands are answered aside."""
        with self._turn:
            self._is_idle = is_idle
            self._lab.inside = None if is_idle else self._holder.inside
        with self._came:
            self._came.notify_all()

    def hold(self, frame: FrameType) -> None:
        """Hold the user's code in this frame, until the window lets it go on."""
        if self.has_steering():
            self.steps.reach_with_figures()
            self._holder.hold(frame, "line")
        self._end_if_over()

    def step_backward(self, *args: Any, **kwargs: Any) -> bool:
        """As `Holder.step_backward`."""
        self.steps.reach_with_figures()
        is_done = self._holder.step_backward(*args, **kwargs)
        self._end_if_over()
        return is_done

    def _end_if_over(self) -> None:
        if self._is_over:
            self._finish()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """The user's thread works in the session: what is answered aside ends before, and waits."""
        with self._turn:
            self._is_entered = True
        try:
            yield
        finally:
            self._is_entered = False

    def _attend(self) -> None:
        """The user's code is held: wait a moment for a command, and answer it. What must wait for
        its end is answered after a later step. Without a window that steers, the code goes on."""
        if not self.has_steering():
            self._lab.control.goes_on = "on"
            return
        with self._came:
            self._came.wait_for(lambda: self._waiting or self._is_over, ATTEND_S)
            command = self._waiting.popleft() if self._waiting else None
        if command is None:
            return
        with self._turn, self._answering(command):
            if not self._session.handle_held(command):
                self._postponed.append(command)

    # -- answering -------------------------------------------------------------------------------

    def _answer_waiting(self, is_aside: bool) -> None:
        """Answer what may be answered now; `is_aside`: in another thread than the user's. Modes of
        torch are each thread's own, but the random numbers and the default dtype are not."""
        with self._turn:
            if is_aside and self._is_entered:
                return
            is_apart = is_aside and not self._is_idle
            if self._postponed:
                self._waiting.extendleft(reversed(self._postponed))
                self._postponed.clear()
            with self._seeing(), nullcontext() if is_apart else self._namespace.suspended():
                for _ in range(len(self._waiting)):
                    command = self._waiting.popleft()
                    if is_apart and not type(command).while_running:
                        self._waiting.append(command)
                        continue
                    with self._answering(command):
                        self._session.handle(command)
                    if isinstance(command, WatchCommand):
                        self._loop.watch = watching_of(self._lab)
            self._gate.open()  # what was asked may be of the next steps

    def _attend_aside(self) -> None:
        """Answer what only reads, if the user's thread does not come by."""
        while True:
            with self._came:
                self._came.wait_for(lambda: self._waiting or self._is_over)
                if self._is_over:
                    return
                self._came.wait_for(lambda: not self._waiting or self._is_over, PASSING_S)
                if self._is_over:
                    return
            try:
                self._answer_waiting(is_aside=True)
            except Exception:  # of ours: the user's code goes on
                logging.getLogger(__name__).exception("A question to a script has failed.")

    @contextmanager
    def _answering(self, command: Command) -> Iterator[None]:
        """Messages in this context answer the command."""
        prints = isinstance(command, RunHeldCommand) and self._lab.console.held is not None
        with self._now.of(command), self._output.redirected() if prints else nullcontext():
            yield

    def _interrupt(self) -> None:
        self._now.interrupt(self._lab.control)

    @contextmanager
    def _seeing(self) -> Iterator[None]:
        """In this context the namespace has the variables of the user's module and what is watched.
        Outside of it the session keeps none of them alive."""
        if self._lab.console.held is not None:  # the variables of its frame
            yield
            return
        variables = self._namespace.variables
        theirs = {name: v for name, v in dict(self._main).items() if not name.startswith("__")}
        seen = {**theirs, **self._watched()}
        own = dict(variables)
        variables.update(seen)
        try:
            yield
        finally:
            variables.clear()
            variables.update(own)
