"""The standard output and error of the engine's process and of those that it started.

Both are files there: worker processes, spawned ranks and native code write to them without asking.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator

from ..protocol import Stream
from .output_file import MAX_BYTES

_CHUNK_BYTES = 1024 * 1024
MAX_BEHIND_BYTES = 4 * 1024 * 1024
"""What is written faster than it is read is not read whole."""


class ProcessOutput:
    """Reads what the two files get from now on. The descriptors are open for reading and writing,
    and are used by no one else."""

    def __init__(self, stdout: int, stderr: int) -> None:
        self._files = (_Follower("stdout", stdout), _Follower("stderr", stderr))

    def read(self) -> Iterator[tuple[Stream, str]]:
        """The text since the last call."""
        for file in self._files:
            for text in file.read():
                yield file.stream, text


class _Follower:
    def __init__(self, stream: Stream, descriptor: int) -> None:
        self.stream: Stream = stream
        self._descriptor = descriptor
        self._offset = os.fstat(descriptor).st_size
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read(self) -> Iterator[str]:
        end = os.fstat(self._descriptor).st_size  # it may grow faster than it is read
        left_out = end - self._offset - MAX_BEHIND_BYTES
        if left_out > 0:
            self._offset += left_out
            yield f"\n… {left_out:,} bytes came too fast to be read …\n"
        while self._offset < end:
            os.lseek(self._descriptor, self._offset, os.SEEK_SET)
            data = os.read(self._descriptor, min(_CHUNK_BYTES, end - self._offset))
            self._offset += len(data)
            yield self._decoder.decode(data)
            if not data:  # user code has cut the file off
                return
        if self._offset > MAX_BYTES:
            # More than the file of the cell's output holds. Whoever writes here appends.
            os.ftruncate(self._descriptor, 0)
            self._offset = 0
