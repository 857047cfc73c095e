"""An engine that windows attach to and leave: `tensorlab serve`, on this machine or, through ssh,
on another. What it runs goes on while no window is there."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from ..connecting.greeting import About, Hello, Refusal, Role, Welcome
from ..connecting.listener import Listener
from ..connecting.peer import Peer
from ..protocol import (
    AnySignal,
    Command,
    HeldSnapshot,
    ReadySnapshot,
    Snapshot,
    TrainingSnapshot,
    TrainingState,
)
from ..system.program import version
from .serve import Mailbox, answer

if TYPE_CHECKING:
    from .session import Session


class OpenMailbox(Mailbox):
    """A mailbox for one window at a time. What is told while there is none is not kept; a window
    that comes is told what there is: the variables, and the steps of the run so far."""

    JOINED = "joined"

    def __init__(self) -> None:
        super().__init__()
        self._session: Session | None = None
        self._is_promised = False  # that a window may come, which has not come yet
        self._peer: Peer | None = None
        self._told: Peer | None = None
        """The window, once it has been told what there is: steps must come to it in order."""
        self._ready: ReadySnapshot | None = None
        self._state: TrainingState = "running"
        self._held = HeldSnapshot()
        self._joining = threading.Lock()

    def attach(self, session: Session) -> None:
        super().attach(session)
        self._session = session

    def next(self, block: bool) -> Command | str:
        while (message := super().next(block)) == self.JOINED:
            self._tell_newcomer()
        return message

    def _settle(self, word: str) -> bool:
        if word == self.JOINED:
            self._tell_newcomer()
            return True
        return super()._settle(word)

    def promise(self) -> bool:
        """Whether a window may come now; if so, no other one may until it has come and gone, or
        `break_promise`. On threads of the listener's, as `join`."""
        with self._joining:
            is_free = self._peer is None and not self._is_promised
            self._is_promised |= is_free
        return is_free

    def break_promise(self) -> None:
        self._is_promised = False

    def join(self, connection: Connection, role: Role) -> None:
        """The window has come."""
        with self._joining:
            peer = self._peer = Peer(connection, role, self._came, self._gone)
            self._is_promised = False
        self.received.put(self.JOINED)
        self.came()
        peer.start()

    def leave(self) -> None:
        """End the engine, after what it does now. For the handler of a signal, which may have come
        while its thread holds a lock: what needs locks is done on another one."""
        _thread.start_new_thread(self._leave, ())

    def _leave(self) -> None:
        if self._control is not None:
            self._control.mark = sys.maxsize
            self._control.stop.set()
        self.received.put(self.LEAVE)

    def _came(self, peer: Peer, message: Command | AnySignal) -> None:
        self.take(message)

    def _gone(self, peer: Peer) -> None:
        self._peer = self._told = None

    def _write(self, snapshot: Snapshot) -> None:
        if isinstance(snapshot, ReadySnapshot):
            self._ready = snapshot
        elif isinstance(snapshot, TrainingSnapshot):
            self._state = snapshot.state
        elif isinstance(snapshot, HeldSnapshot):
            self._held = snapshot
        peer = self._told
        if peer is not None:
            peer.tell(snapshot)

    def _tell_newcomer(self) -> None:
        from ..console.variables import list_variables

        self._told = self._peer
        if self._session is None or self._ready is None:
            return
        lab = self._session.lab
        lab.control.stopped.clear()  # of the window before
        self.send(self._ready)
        self.send(self._held)
        self.send(list_variables(lab.console.namespace, lab.control))
        self._session.tell_run_again(self._state)

    def _on_sigint(self, signum: int, frame: object) -> None:
        """Ctrl+C in its terminal ends the engine; one that a window has asked for ends a cell."""
        if self._interrupting is not None:
            super()._on_sigint(signum, frame)
        else:
            self.leave()


def serve_windows(name: str, host: str = "", port: int = 0) -> None:
    """Answer windows until SIGINT or SIGTERM comes. It says on standard output where it listens.

    Raises OSError, and Unwelcome where it cannot listen.
    """
    mailbox = OpenMailbox()
    about = About(name=name, pid=os.getpid(), version=version(), started_s=time.time())

    def admit(hello: Hello) -> Welcome | Refusal:
        if hello.version != about.version:
            return Refusal(
                f"This engine is of Tensor Lab {about.version}, your window of {hello.version}: use"
                " the same one."
            )
        if not mailbox.promise():
            return Refusal("Another window is attached to this engine: detach or close that one.")
        return Welcome(about, "steer", serves=True)

    listener = Listener(
        about, admit, mailbox.join, host, port, missed=lambda role: mailbox.break_promise()
    )
    signal.signal(signal.SIGTERM, lambda *_: mailbox.leave())
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the terminal, or ssh, has gone
    key = f" --key {listener.key}" if listener.key else ""
    address = listener.address if listener.key else str(about.pid)
    print(f"Tensor Lab: tensorlab attach {address}{key}", flush=True)
    try:
        answer(mailbox)
    finally:
        listener.close()
