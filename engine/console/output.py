"""What user code prints, sent to the window while the code still runs."""

from __future__ import annotations

import codecs
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

Stream = Literal["stdout", "stderr", "result"]

FLUSH_S = 1 / 30
PROMPT_LINES = 1000
"""The first lines of a cell are sent one by one, so that they are seen even if the next line of
code ends the process. Later lines are gathered and sent 30 times a second."""
MAX_CHARACTERS = 32 * 1024
"""The longest piece of text that is sent: at most 128 KiB of UTF-8."""


class Output:
    """Gathers text from any thread and passes it to `send(stream, text)` in order."""

    def __init__(self, send: Callable[[Stream, str], None]) -> None:
        self._send = send
        self._lock = threading.RLock()
        self._pieces: list[tuple[Stream, str]] = []
        self._characters = 0
        self._prompt_lines = PROMPT_LINES
        self._closed = threading.Event()
        self._owner_pid = os.getpid()

    def write(self, stream: Stream, text: str) -> None:
        with self._lock:
            if self._pieces and self._pieces[-1][0] == stream:
                self._pieces[-1] = (stream, self._pieces[-1][1] + text)
            else:
                self._pieces.append((stream, text))
            self._characters += len(text)
            prompt = text.endswith("\n") and self._prompt_lines > 0
            self._prompt_lines -= prompt
            if prompt or self._characters >= MAX_CHARACTERS:
                self.flush()

    def flush(self) -> None:
        with self._lock:
            pieces, self._pieces, self._characters = self._pieces, [], 0
            for stream, text in pieces:
                for start in range(0, len(text), MAX_CHARACTERS):
                    self._send(stream, text[start : start + MAX_CHARACTERS])

    @contextmanager
    def redirected(self) -> Iterator[None]:
        """While this context is open, `sys.stdout` and `sys.stderr` write to this output."""
        before = sys.stdout, sys.stderr
        flusher = threading.Thread(target=self._keep_flushing, name="cell-output", daemon=True)
        flusher.start()
        sys.stdout, sys.stderr = self._file("stdout"), self._file("stderr")
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before
            self._closed.set()
            flusher.join()
            self.flush()

    def _file(self, stream: Stream) -> io.TextIOWrapper:
        return io.TextIOWrapper(
            _Sink(self, stream),  # pyright: ignore[reportArgumentType] - a binary file to write
            encoding="utf-8",
            errors="backslashreplace",
            newline="",
            write_through=True,
        )

    def _keep_flushing(self) -> None:
        while not self._closed.wait(FLUSH_S):
            self.flush()


class _Sink(io.BufferedIOBase):
    """The binary file under a text stream; it decodes the bytes and writes them to the output."""

    def __init__(self, output: Output, stream: Stream) -> None:
        self._output = output
        self._stream: Stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:
        if os.getpid() != self._output._owner_pid:  # a forked worker must not use the engine's pipe
            return os.write(1, data)
        self._output.write(self._stream, self._decoder.decode(bytes(data)))
        return len(data)
