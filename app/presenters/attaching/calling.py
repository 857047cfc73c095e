"""Calls another process on a thread, because the answer may take seconds."""

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
    """The answers to all calls but the last are dropped. `answered(Call)` or `failed(Unwelcome)`
    comes for that one."""

    answered = Signal(object)
    failed = Signal(object)
    _came = Signal(object, object)  # (the way, the Call or Unwelcome)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._newest: Way | None = None
        self._came.connect(self._on_answer, Qt.ConnectionType.QueuedConnection)

    def call(self, way: Way) -> None:
        self._newest = way
        threading.Thread(target=self._call, args=(way,), name="calling", daemon=True).start()

    def _call(self, way: Way) -> None:
        try:
            answer = way()
        except Unwelcome as error:
            answer = error
        with suppress(RuntimeError):  # the window was closed and deleted meanwhile
            self._came.emit(way, answer)

    def _on_answer(self, way: Way, answer: Call | Unwelcome) -> None:
        if isinstance(answer, Unwelcome):
            if way is self._newest:
                self.failed.emit(answer)
        elif way is self._newest:
            self.answered.emit(answer)
        else:
            answer.connection.close()  # nobody wants this call any more
