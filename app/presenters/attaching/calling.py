"""Asks another process on a thread, because the answer may take seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject, Qt, Signal

from engine.connecting.greeting import Unwelcome

if TYPE_CHECKING:
    from engine.connecting.dialing import Call

Way = Callable[[], "Call"]
"""Calls a process. Raises Unwelcome."""


class Asking(QObject):
    """Answers to all but the last question are dropped. `answered(answer)` or `failed(Unwelcome)`
    comes for that one."""

    answered = Signal(object)
    failed = Signal(object)
    _came = Signal(object, object)  # (the way, the answer or Unwelcome)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._newest: Callable[[], object] | None = None
        self._came.connect(self._on_answer, Qt.ConnectionType.QueuedConnection)

    def ask(self, way: Callable[[], object]) -> None:
        """`way()` gives the answer, or raises Unwelcome."""
        self._newest = way
        threading.Thread(target=self._ask, args=(way,), name="calling", daemon=True).start()

    def _ask(self, way: Callable[[], object]) -> None:
        try:
            answer = way()
        except Unwelcome as error:
            answer = error
        with suppress(RuntimeError):  # the window was closed and deleted meanwhile
            self._came.emit(way, answer)

    def _on_answer(self, way: Callable[[], object], answer: object) -> None:
        if way is not self._newest:
            self._leave(answer)
        elif isinstance(answer, Unwelcome):
            self.failed.emit(answer)
        else:
            self.answered.emit(answer)

    def _leave(self, answer: object) -> None:
        """Nobody wants this answer any more."""


class Calling(Asking):
    """Calls a process: the answer is a Call."""

    def call(self, way: Way) -> None:
        self.ask(way)

    def _leave(self, answer: object) -> None:
        if not isinstance(answer, Unwelcome):
            cast("Call", answer).connection.close()
