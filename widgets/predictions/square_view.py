"""A square picture that leaves room for what is under it."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QSizePolicy, QWidget

from widgets.painted_widget import PaintedWidget

_SIDE, _LEAST = 320, 160
"""The side in pixels where there is room, and where there is little."""


class SquareView(PaintedWidget):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._largest = _SIDE
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def show_room(self, height: int) -> None:
        """All that is shown with the picture has this height: it takes half of it at most."""
        largest = max(_LEAST, min(_SIDE, height // 2))
        if largest != self._largest:
            self._largest = largest
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        return QSize(self._largest, self._largest)

    def heightForWidth(self, width: int) -> int:
        return min(width, self._largest)
