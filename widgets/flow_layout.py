"""A layout that puts items in rows, as many in each as fit its width."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem


class FlowLayout(QLayout):
    """Items of a row have one height; `gap` pixels are between them and between rows. If they are
    `even`, all have one width, at least that of the widest, and a full row takes all the room;
    else each has the width that it prefers."""

    def __init__(self, gap: int, even: bool = True) -> None:
        super().__init__()
        self._even = even
        self._items: list[QLayoutItem] = []
        self._gap = gap
        self._heights: dict[int, int] = {}  # by width; Qt asks for each many times

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)
        self.invalidate()

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.invalidate()
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation.Horizontal

    def hasHeightForWidth(self) -> bool:
        return True

    def invalidate(self) -> None:
        self._heights.clear()
        super().invalidate()

    def heightForWidth(self, width: int) -> int:
        if width not in self._heights:
            self._heights[width] = self._height_for(width)
        return self._heights[width]

    def _height_for(self, width: int) -> int:
        margins = self.contentsMargins()
        inside = QRect(0, 0, width, 0).marginsRemoved(margins)
        placed = self._placed(inside)
        ends = [place.bottom() + 1 for place in placed if not place.isNull()]
        return max(ends, default=margins.top()) + margins.bottom()

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        placed = self._placed(rect.marginsRemoved(self.contentsMargins()))
        for item, place in zip(self._items, placed, strict=True):
            item.setGeometry(place)

    def minimumSize(self) -> QSize:
        size = QSize()
        for item in self._items:
            if not item.isEmpty():
                size = size.expandedTo(item.minimumSize())
        return size.grownBy(self.contentsMargins())

    def sizeHint(self) -> QSize:
        return self.minimumSize()

    def _placed(self, inside: QRect) -> list[QRect]:
        """The place of each item; an empty one for what is hidden."""
        shown = [item for item in self._items if not item.isEmpty()]
        width = self._even_width(shown, inside.width()) if self._even and shown else 0
        places: list[QRect] = []
        row: list[QRect] = []
        x, y = inside.x(), inside.y()
        for item in self._items:
            if item.isEmpty():
                places.append(QRect())
                continue
            wide = width or item.sizeHint().width()
            if row and x + wide > inside.right() + 1:
                x, y = inside.x(), _level(row) + self._gap
                row = []
            place = QRect(x, y, wide, _height(item, wide))
            row.append(place)
            places.append(place)
            x += wide + self._gap
        if row:
            _level(row)
        return places

    def _even_width(self, items: list[QLayoutItem], room: int) -> int:
        """The width of every item: that of the widest, or more, so that a full row fills the
        room."""
        widest, gap = max(item.minimumSize().width() for item in items), self._gap
        columns = min(max((room + gap) // (widest + gap), 1), len(items))
        return max((room + gap) // columns - gap, widest)


def _height(item: QLayoutItem, width: int) -> int:
    return item.heightForWidth(width) if item.hasHeightForWidth() else item.sizeHint().height()


def _level(row: list[QRect]) -> int:
    """Give all places of a row the greatest height. Returns their lower end."""
    height = max(place.height() for place in row)
    for place in row:
        place.setHeight(height)
    return row[0].y() + height
