"""The rows of a tensor as lines: one line for a vector, several for a matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPen,
    QPolygonF,
)
from PySide6.QtWidgets import QWidget

from engine.protocol import LinesSnapshot
from widgets import make, theme
from widgets.painted_widget import PaintedWidget, set_small_font
from widgets.text import format_number
from widgets.theme import GRID

MAX_LINES = 6
"""The largest number of lines: as many as there are colours that can be distinguished."""
_LEFT, _TOP, _BOTTOM = 72, 28, 32
_DOTS_MIN_STEP = 10.0
"""Points that are at least this far apart, in pixels, are painted as dots."""


class LineView(PaintedWidget):
    """Paints the first MAX_LINES rows of a tensor, each as a line over the columns. If there are
    too many columns, one point of the line stands for a bin of neighbouring columns: a span from
    their smallest to their largest number, so that every spike is seen."""

    element_chosen = Signal(int, int)
    """(row, column) in the tensor's table of the element nearest to a click. Enter chooses the
    highest element of the point under the cursor."""
    more_wanted = Signal()
    """Emitted while elements of the tensor are still unread."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "line_view", "Rows of the tensor as lines")
        self.setToolTip(
            f"Each row is a line over the last dimension: the first {MAX_LINES} rows at most. If"
            " there are too many columns, neighbours share a point, drawn from their smallest to"
            " their largest number. Move the pointer or the arrow keys to read a point; click or"
            " press Enter to select its element."
        )
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._shown: LinesSnapshot | None = None
        self._low = self._high = np.zeros((0, 0))
        self._low_at = self._high_at = np.zeros((0, 0), np.int64)
        self._bin: int | None = None
        self._empty_text = "Nothing to draw yet"

    def show_lines(self, found: LinesSnapshot | None, empty_text: str = "") -> None:
        """Draw the points read so far; without any, show `empty_text`."""
        self._shown = found
        self._empty_text = (found.note if found else "") or empty_text or "Nothing to draw"
        if found is None or not found.lines or not found.columns:
            self._low = self._high = np.zeros((0, 0))
        else:
            ends, places = (found.low, found.high), (found.low_at, found.high_at)
            self._low, self._high = (np.frombuffer(e, "<f8").reshape(found.lines, -1) for e in ends)
            self._low_at, self._high_at = (
                np.frombuffer(place, "<i8").reshape(found.lines, -1) for place in places
            )
        if self._bin is not None and self._bin >= self._low.shape[-1]:
            self._bin = None
        self.update()
        if found is not None and found.done < found.total:
            self.more_wanted.emit()

    def spans(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The smallest and the largest number of each point: float64, shape (lines, points)."""
        return self._low, self._high

    def readout(self) -> str:
        """The point under the cursor in words (`column 12: 0.5, -0.25`)."""
        return f"{self._columns_text()} {', '.join(self._point_texts())}".strip()

    def point_at(self, row: int, point: int, highest: bool = True) -> QPointF:
        """The place of a point of a line, in the widget's pixels."""
        area, (low, high) = self._area(), self._range()
        numbers = self._high if highest else self._low
        share = (float(numbers[row, point]) - low) / (high - low)
        return QPointF(self._x_of(point), area.bottom() - area.height() * share)

    def _x_of(self, point: int) -> float:
        area = self._area()
        return area.x() + area.width() * point / max(1, self._low.shape[-1] - 1)

    def _columns_text(self) -> str:
        found = self._shown
        if self._bin is None or found is None:
            return ""
        first = self._bin * found.bin_columns
        if found.bin_columns == 1:
            return f"column {first:,}:"
        return f"columns {first:,} to {min(first + found.bin_columns, found.columns) - 1:,}:"

    def _point_texts(self) -> list[str]:
        """The text of the chosen point in each line."""
        if self._bin is None:
            return []
        ends = zip(self._low[:, self._bin], self._high[:, self._bin], strict=True)
        return [_span_text(float(low), float(high)) for low, high in ends]

    def sizeHint(self) -> QSize:
        return QSize(360, 200)

    def _area(self) -> QRectF:
        return QRectF(self.rect()).adjusted(_LEFT, _TOP, -2 * GRID, -_BOTTOM)

    def _range(self) -> tuple[float, float]:
        if not np.isfinite(self._low).any():
            return 0.0, 1.0
        low, high = float(np.nanmin(self._low)), float(np.nanmax(self._high))
        half = max(0.5, 1e-9 * abs(low))  # a large number takes in no 0.5
        return (low, high) if high > low else (low - half, high + half)

    def paint(self, painter: QPainter) -> None:
        colors = theme.current()
        painter.fillRect(self.rect(), colors.color("surface"))
        if not self._low.size:
            self.paint_empty(painter, self._empty_text)
            return
        self._paint_axes(painter)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for row in range(len(self._low)):
            self._paint_line(painter, row)
        if self._bin is not None:
            x = self._x_of(self._bin)
            painter.setPen(QPen(colors.color("muted"), 1, Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(x, self._area().top()), QPointF(x, self._area().bottom()))

    def _paint_axes(self, painter: QPainter) -> None:
        colors, area, (low, high) = theme.current(), self._area(), self._range()
        set_small_font(painter, self.font())
        for value in (low, 0.0, high) if low < 0 < high else (low, high):
            y = area.bottom() - area.height() * (value - low) / (high - low)
            painter.setPen(QPen(colors.color("border" if value == 0.0 else "grid"), 1))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            near_end = value == 0.0 and min(y - area.top(), area.bottom() - y) < 16
            if not near_end:
                painter.setPen(colors.color("muted"))
                rect = QRectF(0, y - 8, _LEFT - GRID, 16)
                painter.drawText(rect, Qt.AlignmentFlag.AlignRight, format_number(value, 4))
        found = self._shown
        assert found is not None
        painter.setPen(colors.color("muted"))
        foot = QRectF(area.x(), area.bottom() + 6, area.width(), 16)
        painter.drawText(foot, Qt.AlignmentFlag.AlignLeft, "0")
        painter.drawText(foot, Qt.AlignmentFlag.AlignRight, f"{found.columns - 1:,}")
        painter.drawText(foot, Qt.AlignmentFlag.AlignHCenter, _notes(found))
        self._paint_readout(painter, QRectF(area.x(), 4, area.width(), 16))

    def _paint_readout(self, painter: QPainter, area: QRectF) -> None:
        """Write the readout from right to left, each number in the colour of its line."""
        names = theme.current().series
        texts = [(self._columns_text(), theme.current().color("text"))]
        texts += [(t, QColor(names[i % len(names)])) for i, t in enumerate(self._point_texts())]
        right = area.right()
        for text, color in reversed(texts):
            painter.setPen(color)
            width = painter.fontMetrics().horizontalAdvance(text)
            painter.drawText(QPointF(right - width, area.bottom() - 4), text)
            right -= width + GRID

    def _paint_line(self, painter: QPainter, row: int) -> None:
        names = theme.current().series
        color = QColor(names[row % len(names)])
        there = np.isfinite(self._low[row])
        points = np.arange(len(there))
        dots = self._area().width() / max(1, len(points) - 1) >= _DOTS_MIN_STEP
        painter.setPen(QPen(color, 1.5))
        # A number that is not finite is a gap: each stretch between two gaps is a polyline.
        for stretch in np.split(points, np.flatnonzero(~there)):
            shown = self._polyline(row, [int(at) for at in stretch if there[at]])
            if len(shown) > 1:
                painter.drawPolyline(QPolygonF(shown))
            if dots or len(shown) == 1:
                painter.setBrush(color)
                for point in shown:
                    painter.drawEllipse(point, 2.5, 2.5)
                painter.setBrush(Qt.BrushStyle.NoBrush)

    def _polyline(self, row: int, points: list[int]) -> list[QPointF]:
        """A polyline through the smallest and the largest number of each point."""
        through: list[QPointF] = []
        for at in points:
            if self._low[row, at] != self._high[row, at]:
                through.append(self.point_at(row, at, highest=False))
            through.append(self.point_at(row, at))
        return through

    def _set_bin(self, point: int | None) -> None:
        if point != self._bin:
            self._bin = point
            self.setAccessibleDescription(self.readout())
            self.update()

    def _bin_at(self, x: float) -> int | None:
        if not self._low.size:
            return None
        last = self._low.shape[-1] - 1
        share = (x - self._area().x()) / max(1.0, self._area().width())
        point = round(share * last)
        return point if -0.05 <= share <= 1.05 and 0 <= point <= last else None

    def _choose(self, point: int, at_y: float | None = None) -> None:
        """Emit the element at the end of a span: the nearest to a height, or the uppermost."""
        ends = [
            (self.point_at(row, point, highest).y(), row, int(at[row, point]))
            for row in range(len(self._low))
            if np.isfinite(self._low[row, point])
            for highest, at in ((True, self._high_at), (False, self._low_at))
        ]
        if ends:
            _, row, column = min(ends, key=lambda end: abs(end[0] - (at_y or 0.0)))
            self.element_chosen.emit(row, column)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._set_bin(self._bin_at(event.position().x()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        point = self._bin_at(event.position().x())
        if point is not None:
            self._choose(point, event.position().y())

    def leaveEvent(self, event) -> None:
        self._set_bin(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(key)
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._bin is not None:
            self._choose(self._bin)
        elif step is not None and self._low.size:
            last = self._low.shape[-1] - 1
            self._set_bin(0 if self._bin is None else min(max(self._bin + step, 0), last))
        else:
            super().keyPressEvent(event)


def _span_text(low: float, high: float) -> str:
    if low == high or np.isnan(high):
        return format_number(high, 4)
    return f"{format_number(low, 4)} to {format_number(high, 4)}"


def _notes(found: LinesSnapshot) -> str:
    """Words on what the lines leave out: further rows, binned columns, numbers not finite."""
    notes = []
    if found.bin_columns > 1:
        notes.append(f"each point spans {found.bin_columns:,} columns, from their min to their max")
    if found.rows > found.lines:
        notes.append(f"the first {found.lines} of {found.rows:,} rows")
    if found.not_finite:
        notes.append(f"{found.not_finite:,} not finite")
    if found.done < found.total:
        notes.append(f"{found.done / found.total:.0%} read")
    return " · ".join(notes)
