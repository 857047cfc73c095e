"""A layout that puts items in rows, as many in each as fit its width."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem


class FlowLayout(QLayout):
    """Items keep their preferred size; `gap` pixels are between them and between rows."""

    def __init__(self, gap: int) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self._gap = gap

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation.Horizontal

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        margins = self.contentsMargins()
        inside = QRect(0, 0, width, 0).marginsRemoved(margins)
        bottoms = [place.y() + size.height() for place, size in self._placed(inside)]
        return max(bottoms, default=margins.top()) + margins.bottom()

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        placed = self._placed(rect.marginsRemoved(self.contentsMargins()))
        for item, (place, size) in zip(self._items, placed, strict=True):
            item.setGeometry(QRect(place, size))

    def minimumSize(self) -> QSize:
        size = QSize()
        for item in self._items:
            size = size.expandedTo(item.minimumSize())
        return size.grownBy(self.contentsMargins())

    def sizeHint(self) -> QSize:
        return self.minimumSize()

    def _placed(self, inside: QRect) -> list[tuple[QPoint, QSize]]:
        """Place and size of each item."""
        placed: list[tuple[QPoint, QSize]] = []
        at, height = inside.topLeft(), 0
        for item in self._items:
            size = item.sizeHint()
            if height and at.x() + size.width() > inside.right():
                at, height = QPoint(inside.x(), at.y() + height + self._gap), 0
            placed.append((QPoint(at), size))
            at.setX(at.x() + size.width() + self._gap)
            height = max(height, size.height())
        return placed
