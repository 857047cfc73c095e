"""The engine inside a process of the user's: the window attaches to it, and leaves it."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from ..connecting.dialing import Call
from ..connecting.ending import end_reads_and_writes
from ..protocol import Command, FarewellSnapshot, Snapshot
from .engine_process import EngineProcess
from .exit_codes import ExitCode
from .exits import Departure

ENDING_S = 2.0
"""A killed process closes its connection a little before it ends. A process that still lives after
this time counts as going on."""
LOOK_S = 0.02


class AttachedEngine(EngineProcess):
    """The other end of a call. The process is the user's: it is never ended, `stop` only leaves."""

    def __init__(
        self,
        call: Call,
        last_id: int = 0,
        superseded: Callable[[Command], object] = lambda command: None,
    ) -> None:
        super().__init__(last_id, superseded)
        self._call, self._process = call, _process_of(call)
        self._exit_code = None if self._process is None else ExitCode(self._process.pid)
        self._told_code: int | None = None
        self._has_left = self._has_ended = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        self._talk(self._call.connection)

    def is_alive(self) -> bool:
        """Whether the process lives; True where that cannot be known, because then the connection
        ends with it."""
        return self._process is None or _runs(self._process)

    def receive(self, timeout_s: float | None = None) -> Snapshot | None:
        snapshot = super().receive(timeout_s)
        if isinstance(snapshot, FarewellSnapshot):
            self._has_ended, self._told_code = True, snapshot.code
        return snapshot

    def kill(self) -> None:
        """Leave: the process goes on."""
        self.stop()

    def stop(self, grace_s: float = 3.0) -> None:
        """Hang up: code that is held goes on then."""
        self._has_left |= not self._lost
        if self._connection is not None and not self._connection.closed:
            end_reads_and_writes(self._connection)

    def exit(self) -> Departure:
        lives = None
        if self._has_ended:
            lives = False
        elif self._process is not None:
            deadline = time.monotonic() + ENDING_S
            # Not psutil's `wait`, which would take the exit code of a child from its parent.
            while (lives := _runs(self._process)) and not self._has_left:
                if time.monotonic() > deadline:
                    break
                time.sleep(LOOK_S)
        code = self._told_code
        if lives is False and code is None and self._exit_code is not None:
            code = self._exit_code.wait(ENDING_S)
        return Departure(self._call.welcome.about.title, lives, self._garbled, code)

    def _hang_up(self) -> None:
        super()._hang_up()
        through = self._call.through
        if through is not None:
            try:
                through.wait(ENDING_S)  # its input has ended
            except subprocess.TimeoutExpired:
                through.kill()
                through.wait()


def _process_of(call: Call) -> psutil.Process | None:
    """The process that was called, if it is on this machine: not through a command, nor through a
    port, which may be one of another machine."""
    with socket.socket(fileno=socket.dup(call.connection.fileno())) as end:
        is_here = call.through is None and end.family == getattr(socket, "AF_UNIX", None)
    if not is_here:
        return None
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(call.welcome.about.pid)
    return None


def _runs(process: psutil.Process) -> bool:
    """A process that has ended is a zombie until its parent asks for it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
