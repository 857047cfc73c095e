"""Pans the view while a drag is held at its edge."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, QPointF, QTimer

from .view import DiagramView

EDGE_PX = 24
TICK_MS = 16


class EdgePan(QTimer):
    """Pans a view while the pointer is within EDGE_PX of an edge or beyond it, the faster the
    farther out. After every step it calls `panned` with the pointer's viewport point."""

    def __init__(self, view: DiagramView, panned: Callable[[QPointF], None]) -> None:
        super().__init__(view, interval=TICK_MS)
        self._view, self._panned = view, panned
        self._pointer = QPointF()
        self.timeout.connect(self._step)

    def follow(self, pointer: QPointF) -> None:
        """Start or stop panning for a pointer at a viewport point. Call `stop` after the drag."""
        self._pointer = pointer
        if self._speed_px().isNull():
            self.stop()
        elif not self.isActive():
            self.start()

    def _step(self) -> None:
        self._view.pan_by(-self._speed_px())
        self._panned(self._pointer)

    def _speed_px(self) -> QPoint:
        size = self._view.viewport().size()
        x, y = self._pointer.toTuple()
        return QPoint(_beyond(x, size.width()), _beyond(y, size.height()))


def _beyond(at: float, length: int) -> int:
    """Half the distance from `at` to the range EDGE_PX..length - EDGE_PX, negative before it."""
    return round(min(0.0, at - EDGE_PX) + max(0.0, at - (length - EDGE_PX))) // 2
