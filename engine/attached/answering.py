"""Which command is being answered, by which thread, and how code of the user's that runs for it is
interrupted."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..control import Control
from ..protocol import Command


class Answering:
    """One command at a time."""

    def __init__(self) -> None:
        self.thread = 0
        """The thread that answers; 0 while none does."""
        self._command: Command | None = None
        self._interrupting = threading.Lock()

    @contextmanager
    def of(self, command: Command) -> Iterator[None]:
        """This thread answers the command in this context. An interrupt that comes too late for it
        is dropped here, and never reaches the user's code."""
        thread = threading.get_ident()
        self._command, self.thread = command, thread
        try:
            yield
        finally:
            with self._interrupting:
                self._command, self.thread = None, 0
                _raise_in(thread, None)

    @property
    def number(self) -> int:
        """That of the command which this thread answers; 0 if it answers none."""
        command = self._command
        return command.id if command is not None and self.thread == threading.get_ident() else 0

    def interrupt(self, control: Control) -> None:
        """Stop code of the user's that runs for an answer; never the loop that is attached to."""
        with self._interrupting:
            if self._command is not None and control.in_user_code:
                _raise_in(self.thread, KeyboardInterrupt)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Let a thread raise at its next instruction; with None, what was to be raised is not."""
    kind = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), kind)
