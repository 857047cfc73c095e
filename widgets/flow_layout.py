"""A layout that puts items in rows, as many in each as fit its width."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem


class FlowLayout(QLayout):
    """Items keep their preferred width, and those of a row have one height. `gap` pixels are
    between them and between rows."""

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
        placed = self._placed(inside)
        return (placed[-1].bottom() + 1 if placed else margins.top()) + margins.bottom()

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        placed = self._placed(rect.marginsRemoved(self.contentsMargins()))
        for item, place in zip(self._items, placed, strict=True):
            item.setGeometry(place)

    def minimumSize(self) -> QSize:
        size = QSize()
        for item in self._items:
            size = size.expandedTo(item.minimumSize())
        return size.grownBy(self.contentsMargins())

    def sizeHint(self) -> QSize:
        return self.minimumSize()

    def _placed(self, inside: QRect) -> list[QRect]:
        """The place of each item."""
        rows: list[list[QRect]] = [[]]
        x, y = inside.x(), inside.y()
        for item in self._items:
            size = item.sizeHint()
            if rows[-1] and x + size.width() > inside.right():
                x, y = inside.x(), _even(rows[-1]) + self._gap
                rows.append([])
            rows[-1].append(QRect(QPoint(x, y), size))
            x += size.width() + self._gap
        if rows[-1]:
            _even(rows[-1])
        return [place for row in rows for place in row]


def _even(row: list[QRect]) -> int:
    """Give all places of a row the greatest height. Returns their lower end."""
    height = max(place.height() for place in row)
    for place in row:
        place.setHeight(height)
    return row[0].y() + height
