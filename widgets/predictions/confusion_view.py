"""The confusion matrix: how often each class was predicted as each."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from widgets import make, theme
from widgets.painted_widget import PaintedWidget, set_small_font
from widgets.text import format_percent
from widgets.theme import GRID

MAX_CELL, MIN_NUMBER = 44.0, 20.0
"""The largest side of a cell, and the smallest that has its count, in pixels."""
_MOVES = {
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
}
Cell = tuple[int, int]


class ConfusionView(PaintedWidget):
    """Rows are true classes, columns predicted ones; the strength of a cell's colour is its share
    of its row. A click, or arrow keys, chooses a cell; the same once more, or Esc, none."""

    cell_chosen = Signal(object)
    """((true, predicted), or None)"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        tip = "Confusion matrix: true class by row, predicted class by column. Click a cell to see"
        make.named(self, "confusion", "Confusion matrix", f"{tip} its samples.")
        self._counts: tuple[tuple[int, ...], ...] = ()
        self._classes: tuple[str, ...] = ()
        self.chosen: Cell | None = None
        self._room = 2**15
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.notifier.changed.connect(self.update)

    def show_counts(
        self, counts: tuple[tuple[int, ...], ...], classes: tuple[str, ...], chosen: Cell | None
    ) -> None:
        self._counts, self._classes, self.chosen = counts, classes, chosen
        self.setVisible(bool(counts))
        self.updateGeometry()
        self.update()

    def show_room(self, height: int) -> None:
        """All that is shown with the matrix has this height. The cells take half of it at most, if
        their counts still fit."""
        if height != self._room:
            self._room = height
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        return QSize(320, self._height_of(self._wanted_side()))

    def heightForWidth(self, width: int) -> int:
        return self._height_of(min(self._wanted_side(), self._across(width)))

    def _wanted_side(self) -> float:
        """The side of a cell if the width does not limit it."""
        count = max(1, len(self._counts))
        side = min(MAX_CELL, max(14.0, 320.0 / count))
        return min(side, max(MIN_NUMBER, self._room / 2 / count))

    def _height_of(self, side: float) -> int:
        return round(self._head + side * len(self._counts) + 2 * GRID)

    def text_of(self, cell: Cell) -> str:
        """A cell in words."""
        row, column = cell
        count, whole = self._counts[row][column], sum(self._counts[row])
        share = f", {format_percent(count / whole)} of them" if whole else ""
        actual, predicted = self._classes[row], self._classes[column]
        return f"{count:,} of class {actual} predicted as {predicted}{share}"

    # -- geometry --------------------------------------------------------------------------------

    @property
    def _metrics(self) -> QFontMetrics:
        return QFontMetrics(self.font())

    @property
    def _head(self) -> float:
        """The height of the columns' names and of the word above them."""
        return 2 * self._metrics.height() + GRID

    @property
    def _margin(self) -> float:
        return self._margin_of(self.width())

    def _margin_of(self, width: int) -> float:
        """The width of the rows' names, in a matrix of this width."""
        widest = max((self._metrics.horizontalAdvance(name) for name in self._classes), default=0)
        return min(widest, width / 3) + 3 * GRID

    def _across(self, width: int) -> float:
        """The largest side of a cell, in a matrix of this width."""
        return max(4.0, (width - self._margin_of(width) - GRID) / max(1, len(self._counts)))

    @property
    def _side(self) -> float:
        down = (self.height() - self._head - GRID) / len(self._counts)
        return max(4.0, min(MAX_CELL, self._across(self.width()), down))

    def cell_rect(self, cell: Cell) -> QRectF:
        side = self._side
        return QRectF(self._margin + cell[1] * side, self._head + cell[0] * side, side, side)

    def cell_at(self, place: QPointF) -> Cell | None:
        if not self._counts:
            return None
        column = (place.x() - self._margin) // self._side
        row = (place.y() - self._head) // self._side
        inside = 0 <= row < len(self._counts) and 0 <= column < len(self._counts)
        return (int(row), int(column)) if inside else None

    # -- painting --------------------------------------------------------------------------------

    def paint(self, painter: QPainter) -> None:
        if not self._counts:
            return
        colors = theme.current()
        set_small_font(painter, self.font())
        metrics, side = painter.fontMetrics(), self._side
        painter.setPen(colors.color("muted"))
        whole = QRectF(self._margin, 0, side * len(self._counts), metrics.height())
        painter.drawText(whole, Qt.AlignmentFlag.AlignLeft, "predicted")
        painter.drawText(QRectF(0, 0, self._margin, metrics.height()), 0, "true")
        for i, name in enumerate(self._classes):
            fits = metrics.elidedText(name, Qt.TextElideMode.ElideRight, int(self._margin - GRID))
            row = QRectF(0, self.cell_rect((i, 0)).y(), self._margin - GRID, side)
            right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(row, right, fits)
            if side >= MIN_NUMBER or i % 5 == 0:
                short = metrics.elidedText(name, Qt.TextElideMode.ElideRight, int(max(side, 24)))
                column = self.cell_rect((0, i)).x() + side / 2
                top = QRectF(column - 20, self._head - metrics.height() - 2, 40, metrics.height())
                painter.drawText(top, Qt.AlignmentFlag.AlignCenter, short)
        for i, row in enumerate(self._counts):
            whole_row = sum(row)
            for j, count in enumerate(row):
                self._paint_cell(painter, (i, j), count, count / whole_row if whole_row else 0.0)
        if self.chosen is not None:
            painter.setPen(QPen(colors.color("text"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(self.cell_rect(self.chosen).adjusted(1, 1, -1, -1))

    def _paint_cell(self, painter: QPainter, cell: Cell, count: int, share: float) -> None:
        colors, rect = theme.current(), self.cell_rect(cell)
        role = "success" if cell[0] == cell[1] else "error"
        alpha = round(30 + 190 * share**0.5) if count else 0
        painter.fillRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), colors.color(role, alpha))
        painter.setPen(colors.color("border"))
        painter.drawRect(rect)
        if rect.width() >= MIN_NUMBER and count:
            painter.setPen(colors.color("on_accent" if alpha > 150 else "text"))
            painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, f"{count}")

    # -- choosing --------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        cell = self.cell_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and cell is not None:
            self._choose(None if cell == self.chosen else cell)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if key == Qt.Key.Key_Escape and self.chosen is not None:
            self._choose(None)
        elif key in _MOVES and self._counts:
            last = len(self._counts) - 1
            row, column = self.chosen or (0, 0)
            down, right = _MOVES[key] if self.chosen is not None else (0, 0)
            self._choose((min(max(row + down, 0), last), min(max(column + right, 0), last)))
        else:
            super().keyPressEvent(event)

    def _choose(self, cell: Cell | None) -> None:
        if cell != self.chosen:
            self.chosen = cell
            self.update()
            self.cell_chosen.emit(cell)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent):
            cell = self.cell_at(event.pos().toPointF())
            if cell is not None:
                QToolTip.showText(event.globalPos(), self.text_of(cell), self)
                return True
        return super().event(event)
