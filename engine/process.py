"""The window's end of the pipe: starts an engine process, talks to it, ends it. No torch."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from .outbox import Outbox
from .protocol import (
    MAX_SNAPSHOT_BYTES,
    AnySignal,
    Command,
    NotAMessage,
    QuitSignal,
    Snapshot,
    decode_snapshot_or_error,
)
from .spawning import safe_spawn
from .temporary import make_folder

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from .job_object import JobObject

_POLL_S = 0.5


class EngineLost(Exception):
    """The engine process has ended. `EngineProcess.exit()` says how."""


class Exit(Struct, frozen=True):
    """How an engine ended. `code` is the exit code, or minus the number of the signal that killed
    it.

    `log` is the end of what it wrote to stderr. `oom_kills` is the number of processes on this
    machine that the system has killed since for lack of memory; None if it is not known. `garbled`:
    it sent bytes that are not a message, and was therefore killed.
    """

    code: int
    log: str = ""
    oom_kills: int | None = None
    garbled: bool = False


class EngineProcess:
    """One engine process. `start` it once; `close` ends it even if it is busy.

    One thread may call `send` and `signal` while another waits in `receive`. The engine leads a
    process group: the processes that its cells start end with it.
    """

    def __init__(
        self, last_id: int = 0, superseded: Callable[[Command], object] = lambda command: None
    ) -> None:
        """Command ids count from `last_id`, so that a restarted engine gets new ones.
        `superseded(command)` is called by `send`; see `Command.newest_only`."""
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        self._outbox: Outbox | None = None
        self._job: JobObject | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._reaping = threading.Lock()
        self._last_id = last_id
        self._superseded = superseded
        self._oom_kills_before: int | None = None
        self._lost = False
        self._garbled = False

    @property
    def pid(self) -> int | None:
        """None before `start`."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process without waiting. A ReadySnapshot follows when it has loaded torch.

        Raises OSError if the system can start no process or make no temporary folder.
        """
        if self._process is not None:
            raise RuntimeError("this engine was started before")
        # The window shows before these are needed.
        import multiprocessing

        from .serve import serve

        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe(duplex=True)
        self._folder = make_folder()
        self._oom_kills_before = _oom_kills()
        # Not a daemon process: that may have no children, and user code may use a DataLoader.
        process = context.Process(
            target=serve, args=(theirs, self._log_path), name="tensorlab-engine"
        )
        try:
            with safe_spawn():
                process.start()
        finally:
            theirs.close()  # so that `receive` sees the end of the pipe when the engine ends
        self._process = process
        self._job = _job_of(process)
        self._outbox = Outbox(self._connection.send_bytes)
        atexit.register(self.close)

    def send(self, command: Command) -> int:
        """Send a command with a new id, and return the id. Does not wait for the engine to read.

        Raises EngineLost, and BufferError while too many messages wait to be read.
        """
        self._last_id += 1
        self._put(msgspec.structs.replace(command, id=self._last_id))
        return self._last_id

    def signal(self, signal: AnySignal) -> None:
        """Raises EngineLost."""
        self._put(signal)

    def receive(self, timeout_s: float | None = None) -> Snapshot | None:
        """The next snapshot; None after `timeout_s` without one. An answer that cannot be read is
        an ErrorSnapshot. Raises EngineLost if the engine has ended, or sent bytes
        that are not a message."""
        connection = self._open_connection()
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            wait_s = _POLL_S if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                if connection.poll(min(wait_s, _POLL_S)):
                    return decode_snapshot_or_error(connection.recv_bytes(MAX_SNAPSHOT_BYTES))
                # A child process of the engine may outlive it and hold the pipe open.
                if not self.is_alive() and not connection.poll(0):
                    raise EOFError
            except (NotAMessage, EOFError, OSError) as error:
                self._garbled = isinstance(error, NotAMessage)
                self._lost = True
                raise EngineLost from error
            if deadline is not None and time.monotonic() >= deadline:
                return None

    def is_alive(self) -> bool:
        return self._process is not None and self._process.is_alive()

    def kill(self) -> None:
        """Kill the process and those that it started, at once; nothing in it can prevent this."""
        if self._process is None:
            return
        self._kill_group()
        self._process.kill()

    def stop(self, grace_s: float = 3.0) -> None:
        """Ask the engine to end; kill it if it has not ended after `grace_s` seconds."""
        if self._process is None:
            return
        with self._reaping:  # the system tells only one thread how a process ended
            if self._process.is_alive():
                with suppress(EngineLost):  # the engine is ending already
                    self.signal(QuitSignal())
                self._process.join(grace_s)
                self._process.kill()
            self._process.join()
            self._kill_group()

    def exit(self) -> Exit:
        """How the engine ended; waits until it has. Call this before `close`."""
        if self._process is None:
            raise RuntimeError("this engine was never started")
        with self._reaping:
            self._process.join()
        before, after = self._oom_kills_before, _oom_kills()
        return Exit(
            code=self._process.exitcode or 0,
            log=_tail(self._log_path),
            oom_kills=None if before is None or after is None else after - before,
            garbled=self._garbled,
        )

    def close(self) -> None:
        """Stop the engine, and close the pipe and the log. No thread may be in `receive` any
        more."""
        self.stop()
        job, self._job = self._job, None
        if job is not None:
            job.close()
        if self._connection is not None and not self._connection.closed:
            _hang_up(self._connection)
            if self._outbox is not None:
                self._outbox.close()
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

    def _put(self, message: Command | AnySignal) -> None:
        if self._outbox is None:
            raise RuntimeError("this engine was never started")
        if self._lost:
            raise EngineLost
        try:
            superseded = self._outbox.put(message)
        except OSError as error:
            raise EngineLost from error
        for command in superseded:
            self._superseded(command)

    def _kill_group(self) -> None:
        """Kill the engine's process group, whose number is the engine's process id. The number is
        given to no other process while a member lives."""
        if self._process is not None and self._process.pid and hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):  # nothing of it lives
                os.killpg(self._process.pid, signal.SIGKILL)


def _job_of(process: SpawnProcess) -> JobObject | None:
    """A job with this process in it; None where there are none, or the system refuses."""
    try:
        from .job_object import job_object

        job = job_object()
        if job is not None:
            job.take(process.sentinel)
    except OSError:  # the engine then ends with a window that closes, not with one that is killed
        logging.getLogger(__name__).exception("The engine is in no job object.")
        return None
    return job


def _hang_up(connection: Connection) -> None:
    """End reads and writes on a pipe in other threads, though a process that escaped the engine's
    group holds its other end open. On Windows children hold no end of it."""
    if os.name != "nt":
        import socket

        with socket.socket(fileno=os.dup(connection.fileno())) as end, suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


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


def _tail(log: Path, bytes_read: int = 64_000, shown: int = 4_000) -> str:
    """The last characters of a log, which may be large; of a crash, the first that tell of it.

    After a crash Python lists each thread's stack, and all extension modules: thousands of
    characters.
    """
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - bytes_read))
            text = file.read(bytes_read).decode(errors="replace").strip()
    except FileNotFoundError:  # the engine ended before it opened its log
        return ""
    crash = text.rfind("Fatal Python error")
    return (
        text[-shown:]
        if crash < 0
        else text[crash:].partition("\nExtension modules:")[0][: 2 * shown]
    )
