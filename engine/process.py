"""The window's end of the pipe: starts an engine process, talks to it, ends it. No torch."""

from __future__ import annotations

import atexit
import multiprocessing
import sys
import tempfile
import threading
import time
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

import msgspec

from .protocol import (
    AnySignal,
    Command,
    QuitSignal,
    Snapshot,
    decode_snapshot,
    encode_command,
)
from .serve import serve

_POLL_S = 0.5


class EngineLost(Exception):
    """The engine process has ended. `EngineProcess.exit()` says how."""


@dataclass(frozen=True)
class Exit:
    """How an engine ended. `code` is the exit code, or minus the number of the signal that killed
    it.

    `log` is the end of what it wrote to stderr. `oom_kills` is the number of processes on this
    machine that the system has killed since for lack of memory; None if it is not known.
    """

    code: int
    log: str = ""
    oom_kills: int | None = None


class EngineProcess:
    """One engine process. `start` it once; `close` ends it even if it is busy.

    One thread may call `send` and `signal` while another waits in `receive`.
    """

    def __init__(self, last_id: int = 0) -> None:
        """Command ids count from `last_id`, so that a restarted engine gets new ones."""
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._sending = threading.Lock()
        self._last_id = last_id
        self._oom_kills_before: int | None = None

    @property
    def pid(self) -> int | None:
        """None before `start`."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process without waiting. A ReadySnapshot follows when it has loaded torch."""
        if self._process is not None:
            raise RuntimeError("this engine was started before")
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe(duplex=True)
        self._folder = tempfile.TemporaryDirectory(prefix="tensorlab-")
        self._oom_kills_before = _oom_kills()
        # Not a daemon process: that may have no children, and user code may use a DataLoader.
        self._process = context.Process(
            target=serve, args=(theirs, self._log_path), name="tensorlab-engine"
        )
        with _no_main_module():
            self._process.start()
        theirs.close()  # so that `receive` sees the end of the pipe when the engine ends
        atexit.register(self.close)

    def send(self, command: Command) -> int:
        """Send a command with a new id, and return the id. Raises EngineLost."""
        with self._sending:
            self._last_id += 1
            command = msgspec.structs.replace(command, id=self._last_id)
            self._send(command)
            return self._last_id

    def signal(self, signal: AnySignal) -> None:
        """Raises EngineLost."""
        with self._sending:
            self._send(signal)

    def receive(self, timeout_s: float | None = None) -> Snapshot | None:
        """The next snapshot; None after `timeout_s` without one. Raises EngineLost if the engine
        has ended."""
        connection = self._open_connection()
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            wait_s = _POLL_S if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                if connection.poll(min(wait_s, _POLL_S)):
                    return decode_snapshot(connection.recv_bytes())
                # A child process of the engine may outlive it and hold the pipe open.
                if not self.is_alive() and not connection.poll(0):
                    raise EngineLost
            except (EOFError, OSError) as error:
                raise EngineLost from error
            if deadline is not None and time.monotonic() >= deadline:
                return None

    def is_alive(self) -> bool:
        return self._process is not None and self._process.is_alive()

    def kill(self) -> None:
        """Kill the process at once; nothing in it can prevent this."""
        if self._process is not None:
            self._process.kill()

    def stop(self, grace_s: float = 3.0) -> None:
        """Ask the engine to end; kill it if it has not ended after `grace_s` seconds."""
        if self._process is None:
            return
        if self.is_alive():
            with suppress(EngineLost):  # the engine is ending already
                self.signal(QuitSignal())
            self._process.join(grace_s)
            self._process.kill()
        self._process.join()

    def exit(self) -> Exit:
        """How the engine ended; waits until it has. Call this before `close`."""
        if self._process is None:
            raise RuntimeError("this engine was never started")
        self._process.join()
        before, after = self._oom_kills_before, _oom_kills()
        return Exit(
            code=self._process.exitcode or 0,
            log=_tail(self._log_path),
            oom_kills=None if before is None or after is None else after - before,
        )

    def close(self) -> None:
        """Stop the engine, and close the pipe and the log. No thread may be in `receive` any
        more."""
        self.stop()
        if self._connection is not None:
            self._connection.close()
        if self._folder is not None:
            self._folder.cleanup()
        atexit.unregister(self.close)

    @property
    def _log_path(self) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / "engine.log"

    def _open_connection(self) -> Connection:
        if self._connection is None:
            raise RuntimeError("this engine was never started")
        return self._connection

    def _send(self, message: Command | AnySignal) -> None:
        try:
            self._open_connection().send_bytes(encode_command(message))
        except OSError as error:
            raise EngineLost from error


@contextmanager
def _no_main_module() -> Iterator[None]:
    """Hide `__main__` during the spawn.

    A spawned process imports its parent's `__main__` again. The engine does not need it, and it may
    be a user's script without a guard.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _oom_kills() -> int | None:
    """Processes that the system has killed for lack of memory since it started (Linux counts
    them)."""
    try:
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    except OSError:
        pass  # not Linux, or not readable
    return None


def _tail(log: Path, characters: int = 4000) -> str:
    try:
        return log.read_text(errors="replace")[-characters:].strip()
    except FileNotFoundError:  # the engine ended before it opened its log
        return ""
