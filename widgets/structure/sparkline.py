"""A histogram in a cell of a table."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from engine.protocol import Histogram
from widgets import theme
from widgets.structure.weights_model import ROW_ROLE

_MARGIN = 3
_MIN_COUNT = 1.0
"""A bin with one element is seen, however many the others have."""


class Sparkline(QStyledItemDelegate):
    """Paints the histogram of a row's elements instead of its counts; the highest bin fills the
    cell."""

    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().initStyleOption(option, index)
        option.text = ""  # pyright: ignore

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        super().paint(painter, option, index)
        histogram: Histogram | None = index.data(ROW_ROLE).histogram
        if histogram is None:
            return
        cell = QRectF(option.rect).adjusted(_MARGIN, _MARGIN, -_MARGIN, -_MARGIN)  # pyright: ignore
        counts = histogram.counts
        width, most = cell.width() / len(counts), max(*counts, 1)
        role = "leaf" if index.data(ROW_ROLE).trainable else "muted"
        if option.state & QStyle.StateFlag.State_Selected:  # pyright: ignore
            role = "on_accent"
        color = theme.current().color(role)
        for place, count in enumerate(counts):
            if count:
                height = max(cell.height() * count / most, _MIN_COUNT)
                left, top = cell.left() + place * width, cell.bottom() - height
                painter.fillRect(QRectF(left, top, width, height), color)
