"""Which command is being answered, by which thread, and how code of the user's that runs for it is
interrupted."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..protocol import Command
from ..system.control import Control


class Answering:
    """The command that is being answered, one at a time."""

    def __init__(self) -> None:
        self.thread = 0
        """The thread that answers; 0 while none does."""
        self._command: Command | None = None
        self._interrupting = threading.Lock()
        self._is_interrupted = False

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
                was_interrupted, self._is_interrupted = self._is_interrupted, False
                if was_interrupted:
                    _let_it_come()

    @property
    def number(self) -> int:
        """The number of the command that this thread answers; 0 if it answers none."""
        command = self._command
        return command.id if command is not None and self.thread == threading.get_ident() else 0

    def interrupt(self, control: Control) -> None:
        """Stop code of the user's that runs for an answer; never the loop that is attached to."""
        with self._interrupting:
            if self._command is not None and control.in_user_code:
                self._is_interrupted = True
                _interrupt(self.thread)


def _interrupt(thread: int) -> None:
    """Let a thread raise KeyboardInterrupt at its next call or turn of a loop."""
    kind = ctypes.py_object(KeyboardInterrupt)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), kind)


def _let_it_come() -> None:
    """Take an interrupt of this thread that has not come yet, or another in its place.

    To clear it with `PyThreadState_SetAsyncExc(thread, NULL)` would leave Python's flag set that
    some thread has an exception to raise: all threads would look for it at each call, and Python
    3.11 never gets past the first instruction of a function that it traces.
    """
    with suppress(KeyboardInterrupt):
        _interrupt(threading.get_ident())
        while True:
            pass
