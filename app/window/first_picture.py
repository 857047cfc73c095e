"""Postpones work until a window has been painted, so that the window is seen at once."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QWidget


def after_first_picture(window: QWidget, call: Callable[[], object]) -> None:
    """Call `call()` once, after the first painting of the window."""
    window.installEventFilter(_FirstPicture(window, call))


class _FirstPicture(QObject):
    def __init__(self, window: QWidget, call: Callable[[], object]) -> None:
        super().__init__(window)
        self._call = call

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:  # the widgets inside follow before the timer
            watched.removeEventFilter(self)
            QTimer.singleShot(0, self._call)
        return False
