"""Colours over two axes, with a scale of what they mean and the number under the pointer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QImage, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QWidget

from widgets import make, theme
from widgets.charts.axes import Axes, Scale, area_of
from widgets.colormap import SIZE, sequential
from widgets.painted_widget import PaintedWidget, set_small_font
from widgets.text import format_number

BAR, GAP, WORDS = 12, 12, 52
"""The bar of colours at the right, the gap before it and its numbers, in pixels."""

Floats = NDArray[np.float64]
_MOVES = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (1, 0),
    Qt.Key.Key_Down: (-1, 0),
}


class HeatMap(PaintedWidget):
    """A grid of numbers, row 0 at the bottom; NaN has no colour. `pointed(row, column)`: the cell
    under the pointer, or the one that the arrow keys have reached; (-1, -1) outside."""

    pointed = Signal(int, int)

    def __init__(self, name: str, accessible: str, tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, name, accessible, tip)
        self.values: Floats = np.empty((0, 0))
        self._x = self._y = Scale(0.0, 1.0)
        self._titles = ("", "", "")
        self._is_log = self._is_square = False
        self._marks: tuple[tuple[float, float], ...] = ()
        self._levels: Floats = np.empty(0)
        self._text: Callable[[float], str] = lambda value: format_number(value, 3)
        self.cell: tuple[int, int] | None = None
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(220, 80)

    def sizeHint(self) -> QSize:
        return QSize(480, 320)

    def show_values(
        self,
        values: Floats,
        x: Scale,
        y: Scale,
        titles: tuple[str, str, str],
        *,
        is_log: bool = False,
        is_square: bool = False,
        levels: int = 0,
        marks: tuple[tuple[float, float], ...] = (),
    ) -> None:
        """`titles` are those of x, y and the colours. `is_log`: colours stand for the logarithm of
        the numbers above 0. `is_square`: both axes are equally long. `levels` lines join places of
        equal numbers; `marks` are points (x, y)."""
        self.values, self._x, self._y, self._titles = values, x, y, titles
        self._is_log, self._is_square, self._marks = is_log, is_square, marks
        low, high = self.span()
        shares = (np.arange(levels) + 1) / (levels + 1)
        self._levels = low + (high - low) * shares if levels and high > low else np.empty(0)
        if self.cell is not None and not self._has_cell(*self.cell):
            self.cell = None
        self.update()

    def span(self) -> tuple[float, float]:
        """The lowest and the highest number that have a colour, as they are drawn (logarithms on a
        logarithmic scale); (0, 0) without any."""
        known = self._drawn()
        known = known[np.isfinite(known)]
        return (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)

    def _drawn(self) -> Floats:
        if not self._is_log:
            return self.values
        out = np.full_like(self.values, np.nan)
        return np.log10(self.values, where=self.values > 0, out=out)

    # -- painting --------------------------------------------------------------------------------

    def axes(self) -> Axes:
        area = area_of(self.width() - BAR - GAP - WORDS + 8, self.height())
        if self._is_square:
            side = min(area.width(), area.height())
            area = QRectF(area.left(), area.top(), side, side)
        return Axes(area, self._x, self._y)

    def paint(self, painter: QPainter) -> None:
        if not self.values.size:
            return
        axes, colors = self.axes(), theme.current()
        axes.paint(painter, self.font(), *self._titles[:2], has_grid=False)
        drawn, (low, high) = self._drawn(), self.span()
        painter.fillRect(axes.area, colors.color("muted", 24))
        painter.drawImage(axes.area, _image(drawn, low, high))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(colors.color("surface", 170), 1))
        for level in self._levels:
            for start, end in contour(drawn, float(level)):
                painter.drawLine(self._between(axes, *start), self._between(axes, *end))
        painter.setPen(QPen(colors.color("text"), 1.5))
        painter.setBrush(colors.color("surface"))
        for x, y in self._marks:
            painter.drawEllipse(axes.at(x, y), 4, 4)
        if self.cell is not None:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(self.cell_rect(*self.cell))
        self._paint_bar(painter, axes.area, low, high)

    def _between(self, axes: Axes, row: float, column: float) -> QPointF:
        """The pixel of a place between the middles of cells."""
        rows, columns = self.values.shape
        area = axes.area
        return QPointF(
            area.left() + (column + 0.5) * area.width() / columns,
            area.bottom() - (row + 0.5) * area.height() / rows,
        )

    def _paint_bar(self, painter: QPainter, area: QRectF, low: float, high: float) -> None:
        bar = QRectF(area.right() + GAP, area.top(), BAR, area.height())
        ramp = np.linspace(0.0, 1.0, SIZE)[:, None]
        painter.drawImage(bar, _image(ramp, 0.0, 1.0))
        set_small_font(painter, self.font())
        painter.setPen(theme.current().color("muted"))
        for value, y in ((high, area.top()), (low, area.bottom() - 14)):
            text = self._text(10**value if self._is_log else value)
            painter.drawText(QRectF(bar.right() + 4, y, WORDS, 14), 0, text)
        painter.save()
        painter.translate(bar.right() + 4, area.center().y())
        painter.rotate(-90)
        width = area.height() - 40
        painter.drawText(
            QRectF(-width / 2, 0, width, 14), Qt.AlignmentFlag.AlignCenter, self._titles[2]
        )
        painter.restore()

    def cell_rect(self, row: int, column: int) -> QRectF:
        rows, columns = self.values.shape
        area = self.axes().area
        wide, high = area.width() / columns, area.height() / rows
        return QRectF(area.left() + column * wide, area.bottom() - (row + 1) * high, wide, high)

    # -- pointing --------------------------------------------------------------------------------

    def _has_cell(self, row: int, column: int) -> bool:
        rows, columns = self.values.shape
        return 0 <= row < rows and 0 <= column < columns

    def cell_at(self, place: QPointF) -> tuple[int, int] | None:
        if not self.values.size:
            return None
        rows, columns = self.values.shape
        area = self.axes().area
        row = int((area.bottom() - place.y()) // (area.height() / rows))
        column = int((place.x() - area.left()) // (area.width() / columns))
        return (row, column) if self._has_cell(row, column) else None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.point_at(self.cell_at(event.position()))

    def leaveEvent(self, event) -> None:
        self.point_at(None)
        super().leaveEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrow keys go from cell to cell, from the middle on."""
        move = _MOVES.get(Qt.Key(event.key()))
        if event.key() == Qt.Key.Key_Escape and self.cell is not None:
            self.point_at(None)
        elif move is not None and self.values.size:
            rows, columns = self.values.shape
            row, column = self.cell or (rows // 2, columns // 2)
            if self.cell is not None:
                row = min(max(row + move[0], 0), rows - 1)
                column = min(max(column + move[1], 0), columns - 1)
            self.point_at((row, column))
        else:
            super().keyPressEvent(event)

    def point_at(self, cell: tuple[int, int] | None) -> None:
        if cell != self.cell:
            self.cell = cell
            self.pointed.emit(*(cell or (-1, -1)))
            self.update()


def _image(drawn: Floats, low: float, high: float) -> QImage:
    """One pixel a cell, the last row on top."""
    known = np.isfinite(drawn)
    shares = np.where(known, (drawn - low) / ((high - low) or 1.0), 0.0)
    table = sequential()
    colors = table[np.clip(np.rint(shares * (SIZE - 1)), 0, SIZE - 1).astype(int)]
    alpha = np.where(known, 255, 0).astype(np.uint8)[..., None]
    pixels = np.ascontiguousarray(np.concatenate([colors, alpha], axis=-1)[::-1])
    rows, columns = drawn.shape
    image = QImage(pixels.data, columns, rows, 4 * columns, QImage.Format.Format_RGBA8888)
    return image.copy()  # it owns its pixels


def contour(values: Floats, level: float) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Line pieces between (row, column) places where the numbers, joined by straight lines, have
    this level. Cells with a number that is not finite have none."""
    pieces = []
    rows, columns = values.shape
    for row in range(rows - 1):
        for column in range(columns - 1):
            corners = ((0, 0), (0, 1), (1, 1), (1, 0))
            four = [float(values[row + r, column + c]) for r, c in corners]
            if not np.isfinite(four).all() or max(four) < level or min(four) > level:
                continue
            crossings = []
            for i, (r, c) in enumerate(corners):
                (r2, c2), a, b = corners[(i + 1) % 4], four[i], four[(i + 1) % 4]
                if (a < level) != (b < level):
                    share = (level - a) / (b - a)
                    crossings.append((row + r + share * (r2 - r), column + c + share * (c2 - c)))
            pieces += list(zip(crossings[::2], crossings[1::2], strict=True))
    return pieces
