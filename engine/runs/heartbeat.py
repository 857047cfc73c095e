"""A sign of life in the folder of a run: the file `alive` names the process that writes the run,
and is touched every few seconds, also while the run is paused. Another machine sees it, where a
process id says nothing."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import msgspec

from ..project.atomic import read_regular, write_atomically
from .record import Writer

ALIVE = "alive"
BEAT_S = 5.0
SILENT_S = 60.0
"""After this time without a sign, the process on the other machine has most likely ended."""
_MAX_BYTES = 10_000


class Heartbeat:
    """Signs that this process writes a run, from `begin` to `end`. `problem` says in words that
    another process has taken the run over; then nothing of it may be written any more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problem = ""
        self._ended = Event()
        self._thread: Thread | None = None

    def begin(self) -> None:
        """Raises OSError."""
        data = msgspec.json.encode(Writer.own())
        write_atomically(self.folder / ALIVE, data, private=True)
        self.problem = ""
        self._ended.clear()
        self._thread = Thread(target=self._beat, name="run-heartbeat", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """The run has ended, or rests: there is no sign any more."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            if not self.problem:
                with suppress(OSError):  # the folder may have been deleted
                    (self.folder / ALIVE).unlink(missing_ok=True)

    def beat(self) -> None:
        """Give one sign, or see who has taken the run over."""
        path = self.folder / ALIVE
        try:
            owner = owner_of(self.folder)
            if owner is None or owner.is_own:
                os.utime(path)
            else:
                self.problem = (
                    f"The run {self.folder.name} is trained by process {owner.pid} of"
                    f" {owner.host} now, so it is not written from here any more."
                )
        except OSError:
            return  # the folder is out of reach for now; the figures say so when they are written

    def _beat(self) -> None:
        while not self.problem and not self._ended.wait(BEAT_S):
            self.beat()


def owner_of(folder: Path) -> Writer | None:
    """The process that wrote the sign last; None if there is no sign, or a damaged one."""
    try:
        return msgspec.json.decode(read_regular(folder / ALIVE, _MAX_BYTES), type=Writer)
    except (OSError, msgspec.DecodeError):
        return None


def silent_s(folder: Path) -> float:
    """The seconds since the last sign; infinite without one."""
    try:
        return max(0.0, time.time() - (folder / ALIVE).stat().st_mtime)
    except OSError:
        return float("inf")
