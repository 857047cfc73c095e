"""The output of user code, sent to the window while the code still runs."""

from __future__ import annotations

import codecs
import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from ..protocol import OutputSnapshot, OutputTailSnapshot, Stream
from .long_output import LongOutput, Returns
from .printed_tracebacks import tracebacks_of_users_frames
from .process_output import ProcessOutput
from .warning_places import warnings_at_users_lines

FLUSH_S = 1 / 30
TAIL_S = 1 / 8
"""A tail replaces the one before: a few each second are enough to read it."""
PROMPT_LINES = 1000
"""The first lines of a cell are sent one by one, so that they are seen even if the next line of
code ends the process. Later lines are gathered and sent 30 times a second."""
MAX_CHARACTERS = 32 * 1024
"""The longest piece of text that is sent: at most 128 KiB of UTF-8."""
MAX_LINES = 250
"""The most lines of a piece: the window lays them out in a few milliseconds."""
FULL_CHARACTERS = 256 * 1024
"""While more characters than this wait to be sent, code that prints waits."""
ROOM_S = 0.005
"""How often code that waits looks again."""

Emit = Callable[[OutputSnapshot | OutputTailSnapshot], None]


class Output:
    """Gathers text from any thread, and sends its head as it comes, then a tail now and then."""

    def __init__(
        self,
        emit: Emit,
        *,
        all_output: bool = False,
        process: ProcessOutput | None = None,
        shield: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """`all_output`: see `RunCellCommand`. What `process` reads is sent too. `shield` is a
        context in which the main thread is not interrupted."""
        self._emit = emit
        self._process = process
        self._shield = shield
        self._returns = Returns()
        self._long = None if all_output else LongOutput()
        self._tail_at = 0.0
        # Text that waits to be taken, by `flush`.
        self._taking = threading.Lock()
        self._waiting: list[tuple[Stream, str]] = []
        self._characters = 0
        self._full = threading.Event()
        self._prompt_lines = PROMPT_LINES
        self._flushing = threading.Lock()
        self._flushing_thread = 0
        self._is_open = False
        self._main_thread = threading.get_ident()
        self._owner_pid = os.getpid()

    def write(self, stream: Stream, text: str) -> None:
        # Garbage collection runs finalizers that print in any thread, also in the one that flushes.
        inside = self._flushing_thread == threading.get_ident()
        while self._characters >= FULL_CHARACTERS and self._is_open and not inside:
            time.sleep(ROOM_S)
        is_main = threading.get_ident() == self._main_thread
        # An interrupt inside would leave a lock held, and the flusher would wait for it for ever.
        with self._shield() if is_main else nullcontext():
            self._append(stream, text, inside)

    def _append(self, stream: Stream, text: str, inside: bool) -> None:
        with self._taking:
            self._waiting.append((stream, text))
            self._characters += len(text)
            is_prompt = text.endswith("\n") and self._prompt_lines > 0 and not inside
            self._prompt_lines -= is_prompt
        if is_prompt:
            self.flush()
        elif self._characters >= MAX_CHARACTERS:
            self._full.set()

    @property
    def takes_text(self) -> bool:
        """False in a forked worker, which must not use the engine's pipe, and when the cell has
        ended, for its threads that go on."""
        return self._is_open and os.getpid() == self._owner_pid

    def flush(self) -> None:
        with self._flushing:
            self._flushing_thread = threading.get_ident()
            try:
                self._take()
            finally:
                self._flushing_thread = 0

    def _take(self) -> None:
        with self._taking:
            waiting, self._waiting, self._characters = self._waiting, [], 0
        for stream, text in _joined(waiting):
            self._send(stream, text)
        if self._process is not None:
            for stream, text in self._process.read():
                self._send(stream, text)
        if self._long is not None and time.monotonic() >= self._tail_at + TAIL_S:
            self._send_tail(self._long)

    @contextmanager
    def redirected(self) -> Iterator[None]:
        """While this context is open, `sys.stdout` and `sys.stderr` write to this output, and
        warnings name the user's own lines."""
        before = sys.stdout, sys.stderr
        self._is_open = True
        flusher = threading.Thread(target=self._keep_flushing, name="cell-output", daemon=True)
        flusher.start()
        sys.stdout, sys.stderr = self._file("stdout"), self._file("stderr")
        try:
            with warnings_at_users_lines(), tracebacks_of_users_frames():
                yield
        finally:
            sys.stdout, sys.stderr = before
            self._is_open = False
            self._full.set()
            flusher.join()
            self._tail_at = 0.0
            self.flush()
            if self._long is not None:
                self._long.close()

    def _send(self, stream: Stream, text: str) -> None:
        if self._long is not None:
            text = self._long.add(stream, self._returns.apply(text))
        start = 0
        while start < len(text):
            end = _end_of_piece(text, start)
            self._emit(OutputSnapshot(stream=stream, text=text[start:end]))
            start = end

    def _send_tail(self, long: LongOutput) -> None:
        tail = long.take_tail()
        if tail is not None:
            self._tail_at = time.monotonic()
            self._emit(tail)

    def _file(self, stream: Stream) -> io.TextIOWrapper:
        return io.TextIOWrapper(
            _Sink(self, stream),  # pyright: ignore[reportArgumentType] - a binary file to write
            encoding="utf-8",
            errors="backslashreplace",
            newline="",
            write_through=True,
        )

    def _keep_flushing(self) -> None:
        while self._is_open:
            self._full.wait(FLUSH_S)
            self._full.clear()
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
        if not self._output.takes_text:
            return os.write(2 if self._stream == "stderr" else 1, data)
        self._output.write(self._stream, self._decoder.decode(bytes(data)))
        return len(data)


def _end_of_piece(text: str, start: int) -> int:
    """The end of the piece that begins at `start`: after a line, unless that is too long."""
    most = min(len(text), start + MAX_CHARACTERS)
    end = start
    for _ in range(MAX_LINES):
        end = text.find("\n", end, most) + 1
        if not end:
            return most
    return end


def _joined(pieces: list[tuple[Stream, str]]) -> Iterator[tuple[Stream, str]]:
    """The pieces, those of one stream in a row as one."""
    texts: list[str] = []
    for number, (stream, text) in enumerate(pieces):
        texts.append(text)
        if number + 1 == len(pieces) or pieces[number + 1][0] != stream:
            yield stream, "".join(texts)
            texts.clear()
