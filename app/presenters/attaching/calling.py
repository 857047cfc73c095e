"""Calling a process on a thread: the other side may take its time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal

from engine.connecting.greeting import Unwelcome

if TYPE_CHECKING:
    from engine.connecting.dialing import Call

Way = Callable[[], "Call"]
"""Calls a process. Raises Unwelcome."""


class Calling(QObject):
    """Only the newest call counts. `answered(Call)` or `failed(Unwelcome)` comes for it."""

    answered = Signal(object)
    failed = Signal(object)
    _came = Signal(object, object)  # (the way, Call or Unwelcome)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._newest: Way | None = None
        self._came.connect(self._on_came, Qt.ConnectionType.QueuedConnection)

    def call(self, way: Way) -> None:
        self._newest = way
        threading.Thread(target=self._call, args=(way,), name="calling", daemon=True).start()

    def _call(self, way: Way) -> None:
        try:
            answer: Call | Unwelcome = way()
        except Unwelcome as error:
            answer = error
        with suppress(RuntimeError):  # the window was closed and deleted meanwhile
            self._came.emit(way, answer)

    def _on_came(self, way: Way, answer: Call | Unwelcome) -> None:
        if way is not self._newest:
            if not isinstance(answer, Unwelcome):
                answer.connection.close()
        elif isinstance(answer, Unwelcome):
            self.failed.emit(answer)
        else:
            self.answered.emit(answer)
