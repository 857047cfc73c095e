"""Work on plain data that takes longer than a frame, off the window's thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import shiboken6
from PySide6.QtCore import QObject, Qt, Signal

T = TypeVar("T")


class Later(QObject):
    """One piece of work at a time counts: what is begun puts aside what was under way.

    The work runs in a thread of this process, which hands over results as they are (a graph's
    layout, which needs less, runs in a process of its own). The window goes on meanwhile, if not
    quite as fast: the interpreter runs one thread at a time. The program ends after the work.
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
        """Put aside what is under way: it will not be answered."""
        self._newest = None

    def _answer(self, of: object, answer: Callable[[], None]) -> None:
        if of is self._newest:
            self._newest = None
            answer()


def _raiser(error: Exception) -> Callable[[], Any]:
    def answer() -> None:
        raise error

    return answer
