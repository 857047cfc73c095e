"""Work on plain data that takes longer than a frame, off the window's thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import shiboken6
from PySide6.QtCore import QObject, Qt, Signal

T = TypeVar("T")


class Later(QObject):
    """Only the newest piece of work is answered: a new one drops the one before.

    The work runs in a thread of this process, so its result needs no copying. (A graph's layout is
    small, and is worked out in a process of its own.) The window stays usable but slower: the
    interpreter runs one thread at a time. The program's exit waits for the work.
    """

    _done = Signal(object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._newest: object = None
        self._done.connect(self._answer, Qt.ConnectionType.QueuedConnection)

    def run(self, work: Callable[[], T], then: Callable[[T], None], at_once: bool = False) -> None:
        """Call `work()` in a thread, then `then(result)` in the window, which raises what `work`
        raises; `at_once`: both before this returns."""
        self._newest = mine = object()
        if at_once:
            then(work())
            return

        def call() -> None:
            answer: Callable[[], None]
            try:
                result = work()
            except Exception as error:
                answer = _raiser(error)
            else:
                answer = lambda: then(result)  # noqa: E731
            if shiboken6.isValid(self):
                self._done.emit(mine, answer)

        threading.Thread(target=call, name="later").start()

    def drop(self) -> None:
        """Drop the work under way: its result is not handed over."""
        self._newest = None

    def _answer(self, of: object, answer: Callable[[], None]) -> None:
        if of is self._newest:
            self._newest = None
            answer()


def _raiser(error: Exception) -> Callable[[], Any]:
    def answer() -> None:
        raise error

    return answer
