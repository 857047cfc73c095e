"""Lines over one axis, with the numbers under the pointer."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from msgspec import Struct
from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QWidget

from widgets import make, theme
from widgets.charts.axes import Axes, Scale, area_of, scale_of
from widgets.painted_widget import PaintedWidget
from widgets.text import format_number

NEAR_PX = 24.0
"""A line is under the pointer if it is not farther away."""


class Line(Struct, frozen=True):
    """A line in a colour (`#rrggbb`); numbers that are not finite are gaps."""

    name: str
    color: str
    x: Sequence[float]
    y: Sequence[float]


class LineChart(PaintedWidget):
    """`pointed(line, place)`: the line and the number of its point that is nearest to the pointer,
    (None, -1) away from all. `chosen(line)`: a click on a line, or Enter on the one that the arrow
    keys have reached."""

    pointed = Signal(object, int)
    chosen = Signal(str)

    def __init__(
        self, name: str, accessible: str, tip: str, x_title: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        make.named(self, name, accessible, tip)
        self.lines: tuple[Line, ...] = ()
        self._x_title, self._y_title, self._is_log = x_title, "", False
        self._nothing = ""
        self._point: tuple[int, int] | None = None  # (line, place) under the pointer
        self._lit = ""
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(200, 120)

    def sizeHint(self) -> QSize:
        return QSize(480, 280)

    def show_lines(
        self,
        lines: Sequence[Line],
        y_title: str,
        *,
        is_log: bool = False,
        nothing: str = "",
    ) -> None:
        """`nothing` is said where no line has a point that can be drawn."""
        self.lines, self._y_title, self._is_log = tuple(lines), y_title, is_log
        self._nothing, self._point = nothing, None
        self.setAccessibleDescription(", ".join(line.name for line in lines))
        self.update()

    def light(self, name: str) -> None:
        """Draw this line strongly: another view has chosen it. Empty: none."""
        if name != self._lit:
            self._lit = name
            self.update()

    # -- painting --------------------------------------------------------------------------------

    def axes(self) -> Axes:
        xs = [x for line in self.lines if len(line.x) for x in (line.x[0], line.x[-1])]
        x = Scale(min(xs), max(xs)) if xs and min(xs) < max(xs) else scale_of(xs)
        y = scale_of((y for line in self.lines for y in line.y), self._is_log)
        return Axes(area_of(self.width(), self.height()), x, y)

    def paint(self, painter: QPainter) -> None:
        drawn = any(map(self._can_draw, (y for line in self.lines for y in line.y)))
        if not drawn:
            self.paint_empty(painter, self._nothing)
            return
        axes, colors = self.axes(), theme.current()
        axes.paint(painter, self.font(), self._x_title, self._y_title)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setClipRect(axes.area.adjusted(-3, -3, 3, 3))
        under = self._point[0] if self._point is not None else -1
        for number, line in enumerate(self.lines):
            wide = 2.4 if line.name == self._lit or number == under else 1.3
            painter.setPen(QPen(QColor(line.color), wide))
            for part in self._parts(line, axes):
                if len(part) > 1:
                    painter.drawPolyline(part)
                else:
                    painter.drawPoint(part[0])
        if self._point is not None:
            line, place = self.lines[self._point[0]], self._point[1]
            at = axes.at(line.x[place], line.y[place])
            painter.setPen(QPen(colors.color("muted"), 1, Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(at.x(), axes.area.top()), QPointF(at.x(), axes.area.bottom()))
            painter.setPen(QPen(colors.color("surface"), 1))
            painter.setBrush(QColor(line.color))
            painter.drawEllipse(at, 4, 4)
        painter.setClipping(False)

    def _parts(self, line: Line, axes: Axes) -> list[list[QPointF]]:
        """The pieces of a line between its gaps."""
        parts: list[list[QPointF]] = []
        is_new = True
        for x, y in zip(line.x, line.y, strict=True):
            if not self._can_draw(y):
                is_new = True
                continue
            if is_new:
                parts.append([])
                is_new = False
            parts[-1].append(axes.at(x, y))
        return parts

    def _can_draw(self, y: float) -> bool:
        return isfinite(y) and (y > 0 or not self._is_log)

    # -- pointing --------------------------------------------------------------------------------

    def nearest(self, place: QPointF) -> tuple[int, int] | None:
        """(line, number of its point) nearest to a pixel, unless all are far from it."""
        axes = self.axes()
        if not axes.area.adjusted(-4, -4, 4, 4).contains(place):
            return None
        best, found = NEAR_PX, None
        for number, line in enumerate(self.lines):
            known = [i for i, y in enumerate(line.y) if self._can_draw(y)]
            if not known:
                continue
            i = min(known, key=lambda i, line=line: abs(axes.x_px(line.x[i]) - place.x()))
            gap = abs(axes.y_px(line.y[i]) - place.y())
            if gap < best:
                best, found = gap, (number, i)
        return found

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point_at(self.nearest(event.position()))

    def leaveEvent(self, event) -> None:
        self._point_at(None)
        super().leaveEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        found = self.nearest(event.position())
        if event.button() == Qt.MouseButton.LeftButton and found is not None:
            self.chosen.emit(self.lines[found[0]].name)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and right go along a line, up and down to the next line, Enter chooses it."""
        key, lines = event.key(), [n for n, line in enumerate(self.lines) if len(line.x)]
        moves = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        turns = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
        if key == Qt.Key.Key_Escape and self._point is not None:
            self._point_at(None)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._point is not None:
            self.chosen.emit(self.lines[self._point[0]].name)
        elif lines and key in (*moves, *turns):
            if self._point is None:
                number = lines[0]
                self._point_at((number, len(self.lines[number].x) - 1))
                return
            number, place = self._point
            if key in turns:
                number = lines[(lines.index(number) + turns[Qt.Key(key)]) % len(lines)]
            place = min(max(place + moves.get(Qt.Key(key), 0), 0), len(self.lines[number].x) - 1)
            self._point_at((number, place))
        else:
            super().keyPressEvent(event)

    def _point_at(self, point: tuple[int, int] | None) -> None:
        if point == self._point:
            return
        self._point = point
        if point is None:
            self.pointed.emit(None, -1)
        else:
            self.pointed.emit(self.lines[point[0]], point[1])
        self.update()


def point_text(line: Line | None, place: int, x_name: str) -> str:
    """A point of a line in words; empty without one."""
    if line is None:
        return ""
    x = format_number(float(line.x[place]), 6)
    y = line.y[place]
    return f"{line.name} at {x_name} {x}: {format_number(y, 4)}"
