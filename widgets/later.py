"""Runs slow work on plain data in a thread, so that the window keeps repainting."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import shiboken6
from PySide6.QtCore import QObject, Qt, Signal

T = TypeVar("T")


class Later(QObject):
    """Runs functions in a thread and hands over the result of the newest one; older results are
    dropped.

    The thread is in this process, so its result needs no copying. (The layout of a graph is small;
    a process of its own computes it.) Meanwhile the window is slower, because the interpreter runs
    one thread at a time. When the program exits, it waits for the thread.
    """

    _done = Signal(object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._newest: object = None
        self._done.connect(self._answer, Qt.ConnectionType.QueuedConnection)

    def run(self, work: Callable[[], T], then: Callable[[T], None], at_once: bool = False) -> None:
        """Call `work()` in a thread, then `then(result)` in the window's thread. An exception of
        `work` is raised in the window's thread. With `at_once`, call both before returning."""
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
        """Drop the result of the work that is running."""
        self._newest = None

    def _answer(self, of: object, answer: Callable[[], None]) -> None:
        if of is self._newest:
            self._newest = None
            answer()


def _raiser(error: Exception) -> Callable[[], Any]:
    def answer() -> None:
        raise error

    return answer
