"""The engine's end of the pipe: the function that a spawned process runs.

No torch is imported before `serve` has set the environment, which torch reads only once.
"""

from __future__ import annotations

import ctypes
import faulthandler
import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from ..protocol import (
    AnySignal,
    Command,
    DoneSnapshot,
    ErrorSnapshot,
    HoldWhenSignal,
    InterruptSignal,
    QuitSignal,
    Snapshot,
    StepBackwardSignal,
    StopSignal,
    decode_message,
    encode_snapshot_or_error,
)
from ..system.errors import error_report
from ..system.folders import sweep
from ..system.interjections import Interjections

if TYPE_CHECKING:
    from ..system.control import Control
    from .session import Session

_PR_SET_PDEATHSIG = 1
"""From linux/prctl.h."""

LEAVING_S = 2.0
"""The time that the current job has to end after the engine was asked to quit."""
ATTEND_S = 0.05
"""How often a loop that is held looks whether it may go on."""
AGAIN_S = 0.05
"""An interrupt that was missed or dropped is sent again after this time."""
WAKING_S = 0.5
"""The longest wait for a message. Python calls the handler of a signal only after the wait, if the
signal came to another thread, or in the moment before the wait."""


def serve(connection: Connection, log: Path) -> None:
    """Answer commands from `connection` until it closes or a QuitSignal comes.

    What torch, other native code and worker processes write to their standard error goes to the
    file `log`; so does the traceback of a crash. Their standard output goes to a file beside it.
    """
    _end_with_the_window()
    standard_files = _redirect_output(log)
    if hasattr(os, "set_inheritable") and sys.platform != "win32":
        os.set_inheritable(connection.fileno(), False)  # a cell may start programs
    # Threads that spin while they wait would take the window's core (measured: beside a repainting
    # plot, training falls from 1,500 to 8 steps a second).
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("PYTHONUNBUFFERED", "1")  # spawned ranks: their output comes at once
    # This process was spawned, which made "spawn" the default here. Workers of a DataLoader could
    # then not have a Dataset that was typed in a cell.
    multiprocessing.set_start_method(None, force=True)
    # Its thread reads while torch loads, for a second or two.
    answer(PipeMailbox(connection), standard_files)


def answer(mailbox: Mailbox, standard_files: tuple[int, int] | None = None) -> None:
    """Answer what comes into the mailbox until it says `LEAVE`. For the main thread.

    `standard_files`: see `Lab`.
    """
    sweep()
    import torch

    from ..system.devices import ready, usable_cores
    from .session import Session

    torch.set_num_threads(max(1, usable_cores() - 1))
    session = Session(
        mailbox.send,
        done=lambda command: mailbox.send(DoneSnapshot(reply_to=command.id)),
        apart=Worker().put,
    )
    session.lab.standard_files = standard_files
    session.lab.attend = lambda: mailbox.attend(session)
    inside = Interjections(
        lambda: not mailbox.received.empty(), lambda: mailbox.attend_inside(session)
    )
    mailbox.came = inside.wanted
    mailbox.attach(session)
    sys.unraisablehook = mailbox.dropped
    mailbox.send(ready())
    busy = False
    while True:
        try:
            message = mailbox.next(block=not busy)
        except queue.Empty:
            busy = session.advance()
            continue
        if message is mailbox.LEAVE:
            break
        if isinstance(message, Command):
            session.handle(message)
        busy = True  # after a command or a signal there may be a step to train
    session.close()


class Worker:
    """Calls what it is given, one after the other, on a thread that there is while it has work."""

    def __init__(self) -> None:
        self._work: deque[Callable[[], None]] = deque()
        self._changing = threading.Lock()
        self._is_working = False

    def put(self, work: Callable[[], None]) -> None:
        with self._changing:
            self._work.append(work)
            if not self._is_working:
                self._is_working = True
                threading.Thread(target=self._run, name="apart", daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._changing:
                if not self._work:
                    self._is_working = False
                    return
                work = self._work.popleft()
            work()


class Mailbox:
    """The messages to and from an engine. Commands wait in `received`; signals act at once.

    `take` is for the thread that reads, so that the sender never waits for a busy engine.
    """

    LEAVE = "leave"
    WAKE = "wake"

    def __init__(self) -> None:
        self.received: queue.SimpleQueue[Command | str] = queue.SimpleQueue()
        self.came: Callable[[], None] = lambda: None  # called when a command has come
        self._postponed: deque[Command | str] = deque()
        self._sending = threading.Lock()
        self._control: Control | None = None
        self._early: list[tuple[AnySignal, int]] = []  # signals that came while torch loaded
        self._attaching = threading.Lock()
        self._newest = 0
        self._interrupting: int | None = None
        """The command that an interrupt has come for; 0: whichever runs; None: none has come."""
        self._writing = False
        self._main_thread = threading.get_ident()
        signal.signal(signal.SIGINT, self._on_sigint)

    def send(self, snapshot: Snapshot) -> None:
        """May be called from any thread."""
        with self._uninterrupted(), self._sending:
            self._write(snapshot)

    def _write(self, snapshot: Snapshot) -> None:
        raise NotImplementedError

    def next(self, block: bool) -> Command | str:
        """The next message for the session. Raises queue.Empty if there is none, unless `block`."""
        while not self._postponed:
            try:
                return self.received.get(block, WAKING_S)
            except queue.Empty:
                if not block:
                    raise
        return self._postponed.popleft()

    def attend(self, session: Session) -> None:
        """Inside a cell whose loop is held: wait a moment for a message, and answer it. What must
        wait for the end of the cell comes `next`."""
        try:
            message = self.received.get(timeout=ATTEND_S)
        except queue.Empty:
            return
        if message is self.LEAVE:
            session.lab.control.interrupted = True  # ends the cell
        if isinstance(message, str):
            is_settled = self._settle(message)
        else:
            is_settled = session.handle_held(message)
        if not is_settled:
            self._postponed.append(message)
        self._drop_stopped(session)

    def _drop_stopped(self, session: Session) -> None:
        """Answer the commands that wait and were stopped."""
        if session.lab.control.stopped:
            waiting = tuple(self._postponed)
            self._postponed.clear()
            self._postponed += [m for m in waiting if isinstance(m, str) or not session.refuse(m)]

    def _settle(self, word: str) -> bool:
        """Whether nothing is left to do for what came in place of a command."""
        return word == self.WAKE

    def attend_inside(self, session: Session) -> None:
        """Answer what waits in the middle of the user's code that runs, if it can be: what only
        reads. The rest comes `next`."""
        lab = session.lab
        if self._writing or not lab.control.in_user_code or lab.inside is None:
            return

        def answer() -> None:
            while not self.received.empty():
                message = self.received.get()
                if isinstance(message, str):
                    is_settled = message != self.WAKE and self._settle(message)
                else:
                    is_settled = session.answer_inside(message)
                if not is_settled:
                    self._postponed.append(message)
            self._drop_stopped(session)

        lab.inside(answer)

    def attach(self, session: Session) -> None:
        """Let signals set the flags of the session's control from now on. Signals that came before
        set them now."""
        with self._attaching:
            control = self._control = session.lab.control
            control.interrupt = self._interrupt
            for early, newest in self._early:
                self._act(early, newest)
            self._early.clear()

    def take(self, message: Command | AnySignal) -> None:
        """A message that has come, but QuitSignal."""
        if isinstance(message, Command):
            self._newest = message.id
            self.received.put(message)
            self.came()
        else:
            with self._attaching:
                self._act(message, self._newest)

    def _act(self, message: AnySignal, newest: int) -> None:
        control = self._control
        if control is None:
            self._early.append((message, newest))
            return
        if isinstance(message, InterruptSignal):
            self._interrupt(message.command)
            return
        if isinstance(message, StepBackwardSignal):
            control.steps_backward = message.on
            control.asked()
            return
        if isinstance(message, HoldWhenSignal):
            control.hold_when = message.when
            control.asked()
            return
        if isinstance(message, StopSignal) and message.command:
            control.stopped.add(message.command)
            if message.command != control.training:
                self.received.put(self.WAKE)  # it may wait, for code that is held or runs
                self.came()
                return
        control.mark = newest
        (control.stop if isinstance(message, StopSignal) else control.pause).set()
        self.received.put(self.WAKE)

    def _interrupt(self, command_id: int = 0) -> None:
        control = self._control
        if control is None or not (control.in_user_code or control.in_own_code):
            return
        if command_id and command_id not in control.running:
            return
        self._interrupting = command_id
        self._strike()

    def _strike(self) -> None:
        """Send SIGINT to the main thread, and again as long as it has not taken it: a signal that
        comes a moment before a sleep or a read begins does not end it."""
        if self._interrupting is None:
            return
        if hasattr(signal, "pthread_kill"):  # also interrupts a sleep or a read
            signal.pthread_kill(self._main_thread, signal.SIGINT)
        else:
            signal.raise_signal(signal.SIGINT)
        _after(AGAIN_S, self._strike)

    def dropped(self, raised: sys.UnraisableHookArgs) -> None:
        """Python drops what is raised in a finalizer, and calls this. An interrupt is sent again, a
        little later: what is raised in here is dropped, too."""
        control = self._control
        if control is not None and raised.exc_value is control.raised is not None:
            _after(AGAIN_S, self._interrupt, *control.running[-1:])
        else:
            sys.__unraisablehook__(raised)

    @contextmanager
    def _uninterrupted(self) -> Iterator[None]:
        """Delay an interrupt while a message is written, so that the message is written whole."""
        if threading.get_ident() != self._main_thread:
            yield
            return
        self._writing = True
        try:
            yield
        finally:
            self._writing = False
        self._raise_if_interrupted()

    def _on_sigint(self, signum: int, frame: object) -> None:
        """Raise only after an InterruptSignal. Ctrl+C in the terminal reaches this process too, but
        only the window's process acts on it."""
        if not self._writing:
            self._raise_if_interrupted()

    def _raise_if_interrupted(self) -> None:
        command_id, self._interrupting = self._interrupting, None
        if command_id is not None and self._control is not None:
            self._control.interrupt_now(command_id)


class PipeMailbox(Mailbox):
    """The mailbox of an engine that ends with its window, at the other end of the pipe."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection
        threading.Thread(target=self._read, name="mailbox", daemon=True).start()

    def _write(self, snapshot: Snapshot) -> None:
        """A closed pipe is not an error here: `_read` handles it."""
        try:
            self._connection.send_bytes(encode_snapshot_or_error(snapshot))
        except OSError:
            self.received.put(self.LEAVE)

    def _read(self) -> None:
        while True:
            try:
                data = self._connection.recv_bytes()
            except (EOFError, OSError):
                break
            try:
                message = decode_message(data)
            except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
                self.send(ErrorSnapshot(command="", error=error_report(error)))
                continue
            if isinstance(message, QuitSignal):
                break
            self.take(message)
        self._leave()

    def _leave(self) -> None:
        """The window has gone, or asked the engine to quit: end the current job, or else the
        process."""
        control = self._control
        if control is None:  # torch is still loading, so nothing is lost
            os._exit(0)
        control.mark = sys.maxsize
        control.stop.set()
        self.received.put(self.LEAVE)
        time.sleep(LEAVING_S)  # the process and this thread usually end during the sleep
        os._exit(1)


def _after(seconds: float, call: Callable[..., object], *given: object) -> None:
    """Call it on a thread after this time, unless the process ends before."""
    timer = threading.Timer(seconds, call, given)
    timer.daemon = True
    timer.start()


def _end_with_the_window() -> None:
    """Lead a process group, so that the window can end all that cells start; and let the system
    kill this process when the window dies: code that holds the GIL lets no thread here notice.

    On Windows the window's job object does this; elsewhere only `Mailbox` notices.
    """
    # Set for this process, and no longer needed: programs that cells start are the user's own.
    os.environ.pop("PYTHONSAFEPATH", None)
    if hasattr(os, "setsid"):
        os.setsid()
    if sys.platform == "linux":
        window = multiprocessing.parent_process()
        if window is not None and os.getppid() == window.pid:  # else a fork server is in between
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != window.pid:  # it died before the call
                os._exit(0)


def _redirect_output(log: Path) -> tuple[int, int]:
    """Let standard output and error be files; return descriptors to read them."""
    reading = []
    for standard, path in ((1, log.with_suffix(".out")), (2, log)):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(descriptor, standard)
        os.close(descriptor)
        reading.append(os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0)))
    faulthandler.enable(file=2)
    return reading[0], reading[1]
