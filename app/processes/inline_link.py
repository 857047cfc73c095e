"""A link to an engine in this process, for tests of the window.

All messages go through the codec, as they do through a pipe. Only an engine process can be stopped
while code hangs.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, QTimer

from app.processes.link import Link
from engine.protocol import (
    AnySignal,
    Command,
    DoneSnapshot,
    HelloCommand,
    PauseSignal,
    Snapshot,
    StopSignal,
    decode_command,
    decode_snapshot,
    encode_command,
    encode_snapshot_or_error,
)

if TYPE_CHECKING:
    from engine.server.session import Session


class InlineLink(Link):
    """A Link whose session works while the event loop is idle, or at once in `drain`."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session: Session | None = None
        self._waiting: deque[bytes] = deque()
        self._last_id = 0
        self._idle = QTimer(self, interval=0)
        self._idle.timeout.connect(self._work)

    def start(self) -> None:
        if self._session is not None:
            return
        from engine.server.session import Session  # this imports torch into the window's process

        self._session = Session(self._emit, done=self._done)
        self._set_state("starting")
        self._waiting.append(encode_command(HelloCommand()))
        self._idle.start()

    def send(self, command: Command) -> int:
        if self._session is None:
            return 0
        self._last_id += 1
        command = msgspec.structs.replace(command, id=self._last_id)
        self._waiting.append(encode_command(command))
        self._sent(self._last_id, command)
        self._idle.start()
        return self._last_id

    def signal(self, signal: AnySignal) -> None:
        if self._session is None:
            return
        control = self._session.lab.control
        if isinstance(signal, StopSignal) and signal.command not in (0, control.training):
            control.stopped.add(signal.command)
        elif isinstance(signal, StopSignal | PauseSignal):
            control.mark = self._last_id
            (control.stop if isinstance(signal, StopSignal) else control.pause).set()
        self._idle.start()

    def drain(self) -> None:
        """Work until nothing is left to do. A paused run is left waiting; one without an end never
        returns."""
        while self._work():
            pass

    def close(self) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        self._idle.stop()
        self._waiting.clear()
        session.close()
        self._forget()
        self._set_state("lost")

    def _work(self) -> bool:
        """Answer one command or train one step. False if there was nothing to do."""
        if self._session is None:
            return False
        if self._waiting:
            self._session.handle(decode_command(self._waiting.popleft()))
            return True
        if self._session.advance():
            return True
        if not self._waiting:  # an answer may have sent a new command
            self._idle.stop()
        return bool(self._waiting)

    def _emit(self, snapshot: Snapshot) -> None:
        self._receive(decode_snapshot(encode_snapshot_or_error(snapshot)))

    def _done(self, command: Command) -> None:
        self._receive(DoneSnapshot(reply_to=command.id))

    def _give_up(self) -> None:
        """Do nothing: there is no process to kill, and the job goes on to its end."""
