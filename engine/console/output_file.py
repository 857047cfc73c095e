"""The file that holds all of a long output."""

from __future__ import annotations

import os
import time
from pathlib import Path

from ..system.folders import data_folder

MAX_BYTES = 256 * 1024 * 1024
KEPT_BYTES = 1024 * 1024 * 1024
"""Older files are removed when all together are larger."""


class OutputFile:
    """Made at the first `write`, in the folder `outputs` of the data folder; readable by its owner
    only. It outlives the engine, so that the output of a cell that ended the engine can be read.

    `path` is "" while there is no file. `is_whole` is false once the file lacks some of the text,
    and `fault` says why if the size is not the cause. No method raises OSError.
    """

    def __init__(self) -> None:
        self.path = ""
        self.is_whole = True
        self.fault = ""
        self._descriptor: int | None = None
        self._size_bytes = 0
        self._line_start = 0

    def write(self, text: str) -> None:
        """Add text; after a carriage return at its beginning, in place of the unfinished line."""
        if not self.is_whole or not text:
            return
        try:
            if self._descriptor is None:
                self._open()
            self._write(text)
        except OSError as error:
            self.is_whole = False
            self.fault = error.strerror or str(error)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _write(self, text: str) -> None:
        assert self._descriptor is not None
        if text.startswith("\r"):
            os.ftruncate(self._descriptor, self._line_start)
            os.lseek(self._descriptor, self._line_start, os.SEEK_SET)
            self._size_bytes = self._line_start
            text = text[1:]
        data = text.encode(errors="backslashreplace")
        room = MAX_BYTES - self._size_bytes
        self.is_whole = len(data) <= room
        rest = memoryview(data[:room])
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
        if b"\n" in data:
            self._line_start = self._size_bytes + data.rindex(b"\n") + 1
        self._size_bytes += min(room, len(data))

    def _open(self) -> None:
        folder = data_folder() / "outputs"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_old(folder)
        name = f"output-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns()}.txt"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(folder / name, flags, 0o600)
        self.path = str(folder / name)


def _remove_old(folder: Path) -> None:
    """Remove the oldest files until the others and a new one have room in KEPT_BYTES."""
    files = [(file.stat(), file) for file in folder.glob("output-*.txt")]
    files.sort(key=lambda each: each[0].st_mtime_ns)
    size_bytes = sum(stat.st_size for stat, _ in files)
    for stat, file in files:
        if size_bytes <= KEPT_BYTES - MAX_BYTES:
            return
        file.unlink(missing_ok=True)  # another engine may be removing it too
        size_bytes -= stat.st_size
