"""Messages on their way to the engine: a thread of their own writes them, so that no one waits."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from ..protocol import AnySignal, Command, encode_command

MOST_WAITING = 1000


class Outbox:
    """Writes messages in the order of `put`, by `write(bytes)` in a thread of its own.

    An engine that does not read lets `write` block, and messages wait here: at most MOST_WAITING,
    and of a command that is `newest_only` one.
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        """The thread ends when `write` raises OSError."""
        self._write = write
        self._waiting: deque[Command | AnySignal] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="engine-writer", daemon=True)
        self._thread.start()

    def put(self, message: Command | AnySignal) -> list[Command]:
        """Let a message be written, and return the waiting commands that it supersedes.

        Raises BufferError when MOST_WAITING messages wait, and OSError when none can be written.
        """
        with self._changed:
            if self._closed:
                raise OSError("the engine reads no more")
            superseded = [
                waiting
                for waiting in self._waiting
                if isinstance(waiting, Command)
                and waiting.newest_only
                and type(waiting) is type(message)
            ]
            for waiting in superseded:
                self._waiting.remove(waiting)
            if len(self._waiting) >= MOST_WAITING and isinstance(message, Command):
                raise BufferError(f"{MOST_WAITING:,} messages wait for the engine")
            self._waiting.append(message)
            self._changed.notify()
            return superseded

    def close(self) -> None:
        """Drop what waits and end the thread. `write` must return or raise soon."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                message = self._waiting.popleft()
            try:
                self._write(encode_command(message))
            except OSError:  # the engine has ended
                with self._changed:
                    self._closed = True
                    self._waiting.clear()
                return
