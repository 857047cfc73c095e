"""The rows of a picture as lines: a vector, or a few of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFont,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
)
from PySide6.QtWidgets import QMenu, QWidget

from engine.protocol import Picture
from widgets import theme
from widgets.save_picture import add_picture_actions
from widgets.tensor.picture_grid import values_of
from widgets.text import format_number
from widgets.theme import GRID

MAX_LINES = 6
"""As many as there are colours that can be told apart."""
_LEFT, _TOP, _BOTTOM = 72, 28, 32
_DOTS_MIN_STEP = 10.0
"""Points are dotted where they lie this far apart, in pixels."""


class LineView(QWidget):
    """Each row of a (rows, columns) picture is a line over its columns, at most MAX_LINES."""

    point_chosen = Signal(object)
    """A click: the (row, column) of the picture that is nearest."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("line_view")
        self.setAccessibleName("Rows of the tensor as lines")
        self.setToolTip(
            f"Each row is a line over the last dimension, the first {MAX_LINES} rows at most. "
            "The pointer or the arrow keys read a column."
        )
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._lines: NDArray[np.float32] = np.zeros((0, 0), np.float32)
        self._rows = 0
        self._step = 1
        self._column: int | None = None
        self._empty_text = "Nothing to draw yet"
        theme.notifier.changed.connect(self.update)

    def show_picture(
        self, picture: Picture | None, column_step: int = 1, empty_text: str = ""
    ) -> None:
        """`column_step` columns of the tensor lie between two of the picture."""
        self._empty_text = empty_text or "Nothing to draw"
        values = np.zeros((0, 0), np.float32)
        if picture is not None:
            values = values_of(picture).reshape(-1, picture.shape[-1])
        self._rows, self._lines, self._step = len(values), values[:MAX_LINES], column_step
        if self._column is not None and self._column >= self._lines.shape[-1]:
            self._column = None
        self.update()

    def lines(self) -> NDArray[np.float32]:
        """What is drawn, one row a line."""
        return self._lines

    def readout(self) -> str:
        """The column under the cursor in words (`column 12: 0.5, -0.25`)."""
        if self._column is None:
            return ""
        values = ", ".join(format_number(float(v), 4) for v in self._lines[:, self._column])
        return f"column {self._column * self._step:,}: {values}"

    def point_at(self, row: int, column: int) -> QPointF:
        """Where a number is drawn, in the widget's pixels."""
        area, (low, high) = self._area(), self._range()
        last = max(1, self._lines.shape[-1] - 1)
        share = (float(self._lines[row, column]) - low) / (high - low)
        return QPointF(
            area.x() + area.width() * column / last, area.bottom() - area.height() * share
        )

    def sizeHint(self) -> QSize:
        return QSize(360, 200)

    def _area(self) -> QRectF:
        return QRectF(self.rect()).adjusted(_LEFT, _TOP, -2 * GRID, -_BOTTOM)

    def _range(self) -> tuple[float, float]:
        finite = self._lines[np.isfinite(self._lines)].astype(np.float64)
        if not finite.size:
            return 0.0, 1.0
        low, high = float(finite.min()), float(finite.max())
        return (low, high) if high > low else (low - 0.5, high + 0.5)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self.paint(painter)
        painter.end()

    def paint(self, painter: QPainter) -> None:
        colors = theme.current()
        painter.fillRect(self.rect(), colors.color("surface"))
        if not self._lines.size:
            painter.setPen(colors.color("muted"))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self._empty_text)
            return
        self._paint_axes(painter)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for row in range(len(self._lines)):
            self._paint_line(painter, row)
        if self._column is not None:
            x = self._area().x() + self._area().width() * self._column / max(
                1, self._lines.shape[-1] - 1
            )
            painter.setPen(QPen(colors.color("muted"), 1, Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(x, self._area().top()), QPointF(x, self._area().bottom()))

    def _paint_axes(self, painter: QPainter) -> None:
        colors, area, (low, high) = theme.current(), self._area(), self._range()
        font = QFont(self.font())
        font.setPixelSize(11)
        painter.setFont(font)
        for value in (low, 0.0, high) if low < 0 < high else (low, high):
            y = area.bottom() - area.height() * (value - low) / (high - low)
            painter.setPen(QPen(colors.color("border" if value == 0.0 else "grid"), 1))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            near_end = value == 0.0 and min(y - area.top(), area.bottom() - y) < 16
            if not near_end:
                painter.setPen(colors.color("muted"))
                rect = QRectF(0, y - 8, _LEFT - GRID, 16)
                painter.drawText(rect, Qt.AlignmentFlag.AlignRight, format_number(value, 4))
        painter.setPen(colors.color("muted"))
        foot = QRectF(area.x(), area.bottom() + 6, area.width(), 16)
        last = (self._lines.shape[-1] - 1) * self._step
        painter.drawText(foot, Qt.AlignmentFlag.AlignLeft, "0")
        painter.drawText(foot, Qt.AlignmentFlag.AlignRight, f"{last:,}")
        notes = [f"every {self._step:,}th column"] if self._step > 1 else []
        if self._rows > MAX_LINES:
            notes.append(f"the first {MAX_LINES} of {self._rows:,} rows")
        painter.drawText(foot, Qt.AlignmentFlag.AlignHCenter, " · ".join(notes))
        painter.setPen(colors.color("text"))
        head = QRectF(area.x(), 4, area.width(), 16)
        painter.drawText(head, Qt.AlignmentFlag.AlignRight, self.readout())

    def _paint_line(self, painter: QPainter, row: int) -> None:
        names = theme.current().series
        color = QColor(names[row % len(names)])
        finite = np.isfinite(self._lines[row])
        columns = np.arange(self._lines.shape[-1])
        dots = self._area().width() / max(1, len(columns) - 1) >= _DOTS_MIN_STEP
        painter.setPen(QPen(color, 1.5))
        # Gaps where numbers are not finite: a polyline for each stretch between them.
        for stretch in np.split(columns, np.flatnonzero(~finite)):
            shown = [self.point_at(row, int(at)) for at in stretch if finite[at]]
            if len(shown) > 1:
                painter.drawPolyline(QPolygonF(shown))
            if dots or len(shown) == 1:
                painter.setBrush(color)
                for point in shown:
                    painter.drawEllipse(point, 2.5, 2.5)
                painter.setBrush(Qt.BrushStyle.NoBrush)

    def _set_column(self, column: int | None) -> None:
        if column != self._column:
            self._column = column
            self.setAccessibleDescription(self.readout())
            self.update()

    def _column_at(self, x: float) -> int | None:
        if not self._lines.size:
            return None
        last = self._lines.shape[-1] - 1
        share = (x - self._area().x()) / max(1.0, self._area().width())
        return (
            round(share * last)
            if -0.05 <= share <= 1.05 and 0 <= round(share * last) <= last
            else None
        )

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._set_column(self._column_at(event.position().x()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        column = self._column_at(event.position().x())
        if column is None:
            return
        at_y = event.position().y()
        finite = [row for row in range(len(self._lines)) if np.isfinite(self._lines[row, column])]
        if finite:
            nearest = min(finite, key=lambda row: abs(self.point_at(row, column).y() - at_y))
            self.point_chosen.emit((nearest, column))

    def leaveEvent(self, event) -> None:
        self._set_column(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if step is None or not self._lines.size:
            super().keyPressEvent(event)
            return
        last = self._lines.shape[-1] - 1
        self._set_column(0 if self._column is None else min(max(self._column + step, 0), last))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        add_picture_actions(menu, self, self.paint)
        menu.popup(event.globalPos())
