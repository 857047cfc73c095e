"""An engine that this process starts, and that ends with it."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ..protocol import Command, QuitSignal
from ..system.folders import make_folder
from ..system.spawning import safe_spawn
from .engine_process import EngineLost, EngineProcess
from .exits import Exit

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

    from .job_object import JobObject


class SpawnedEngine(EngineProcess):
    """One engine process. `start` it once; `close` ends it even if it is busy.

    The engine leads a process group: the processes that its cells start end with it.
    """

    def __init__(
        self, last_id: int = 0, superseded: Callable[[Command], object] = lambda command: None
    ) -> None:
        super().__init__(last_id, superseded)
        self._process: SpawnProcess | None = None
        self._job: JobObject | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._reaping = threading.Lock()
        self._oom_kills_before: int | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process without waiting. A ReadySnapshot follows when it has loaded torch.

        Raises OSError if the system can start no process or make no temporary folder.
        """
        if self._process is not None:
            raise RuntimeError("this engine was started before")
        # The window shows before these are needed.
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=True)
        self._talk(ours)
        self._folder = make_folder()
        self._oom_kills_before = _oom_kills()
        # Not a daemon process: that may have no children, and user code may use a DataLoader.
        process = context.Process(
            target=import_module("tensorlab").serve,
            args=(theirs, self._log_path),
            name="tensorlab-engine",
        )
        try:
            with safe_spawn():
                process.start()
        finally:
            theirs.close()  # so that `receive` sees the end of the pipe when the engine ends
        self._process = process
        self._job = _job_of(process)
        atexit.register(self.close)

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
        """As EngineProcess, and remove the log."""
        self.stop()
        job, self._job = self._job, None
        if job is not None:
            job.close()
        self._hang_up()
        if self._folder is not None:
            self._folder.cleanup()
        atexit.unregister(self.close)

    @property
    def _log_path(self) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / "engine.log"

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
