"""A layout that puts items of one width in rows, as many in each as fit."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem


class FlowLayout(QLayout):
    """All items have one width, at least that of the widest: a full row takes all the room. Those
    of a row have one height. `gap` pixels are between them and between rows."""

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
        if not self._items:
            return []
        widest, gap = max(item.minimumSize().width() for item in self._items), self._gap
        columns = min(max((inside.width() + gap) // (widest + gap), 1), len(self._items))
        width = max((inside.width() + gap) // columns - gap, widest)
        places: list[QRect] = []
        y = inside.y()
        for first in range(0, len(self._items), columns):
            row = self._items[first : first + columns]
            height = max(_height(item, width) for item in row)
            for column in range(len(row)):
                places.append(QRect(inside.x() + column * (width + gap), y, width, height))
            y += height + gap
        return places


def _height(item: QLayoutItem, width: int) -> int:
    return item.heightForWidth(width) if item.hasHeightForWidth() else item.sizeHint().height()
