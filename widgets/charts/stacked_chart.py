"""Areas on top of each other, over numbered places: what a whole is made of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from widgets import make, theme
from widgets.charts.axes import Axes, Scale, area_of
from widgets.painted_widget import PaintedWidget, set_small_font

Floats = NDArray[np.float64]
_LINES = (Qt.PenStyle.DashLine, Qt.PenStyle.DotLine)
_MOVES = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}


class Layer(Struct, frozen=True):
    """A part of the whole, in a colour (`#rrggbb`)."""

    name: str
    color: str
    values: Sequence[float]


class StackedChart(PaintedWidget):
    """`pointed(place)`: the place (from 0) under the pointer or reached by keys, -1 outside.
    `chosen(place)`: a click, or Enter."""

    pointed = Signal(int)
    chosen = Signal(int)

    def __init__(
        self,
        name: str,
        accessible: str,
        tip: str,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        make.named(self, name, accessible, tip)
        self._titles = ("", "")
        self.layers: tuple[Layer, ...] = ()
        self._x: tuple[int, ...] = ()
        self._bands: tuple[tuple[int, str], ...] = ()
        self._lines: tuple[Sequence[float], ...] = ()
        self.place, self.marked = -1, -1
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(200, 120)

    def sizeHint(self) -> QSize:
        return QSize(640, 300)

    def show_layers(
        self,
        x: Sequence[int],
        layers: Sequence[Layer],
        titles: tuple[str, str],
        bands: Sequence[tuple[int, str]] = (),
        lines: Sequence[Sequence[float]] = (),
        marked: int = -1,
    ) -> None:
        """`x` are the numbers of the places, rising; `titles` those of x and y. `bands` are (place
        at which it begins, title) of stretches. `lines` lie over the areas, dashed and dotted.
        `marked` is a place with a dot."""
        self._x, self.layers, self._titles = tuple(x), tuple(layers), titles
        self._bands, self._lines, self.marked = tuple(bands), tuple(lines), marked
        self.place = -1
        self.update()

    @property
    def totals(self) -> Floats:
        if not self.layers:
            return np.zeros(len(self._x))
        return np.sum([layer.values for layer in self.layers], axis=0)

    def axes(self) -> Axes:
        last = self._x[-1] + 1 if self._x else 1
        high = max(chain(self.totals.tolist(), *self._lines)) * 1.08 or 1.0
        x = Scale(float(self._x[0]) if self._x else 0.0, float(last))
        return Axes(area_of(self.width(), self.height()), x, Scale(0.0, high))

    # -- painting --------------------------------------------------------------------------------

    def paint(self, painter: QPainter) -> None:
        if not self._x:
            return
        axes, colors = self.axes(), theme.current()
        axes.paint(painter, self.font(), *self._titles)
        edges = np.array([*self._x, axes.x.high])
        below = np.zeros(len(self._x))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for layer in self.layers:
            above = below + np.asarray(layer.values, float)
            painter.setPen(Qt.PenStyle.NoPen)
            ground = QColor(layer.color)
            ground.setAlpha(190)
            painter.setBrush(ground)
            upper = _steps(axes, edges, above)
            painter.drawPolygon(QPolygonF([*upper, *reversed(_steps(axes, edges, below))]))
            below = above
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for line, style in zip(self._lines, _LINES, strict=False):
            painter.setPen(QPen(colors.color("text"), 1.4, style))
            painter.drawPolyline(_steps(axes, edges, np.array(line, float)))
        self._paint_bands(painter, axes)
        totals = self.totals
        if self.marked >= 0:
            at = axes.at(self._x[self.marked] + 0.5, float(totals[self.marked]))
            painter.setPen(QPen(colors.color("surface"), 1))
            painter.setBrush(colors.color("error"))
            painter.drawEllipse(at, 4, 4)
        if self.place >= 0:
            left, right = (axes.x_px(float(e)) for e in edges[self.place : self.place + 2])
            wide = max(1.5, right - left)
            lit = QRectF(left, axes.area.top(), wide, axes.area.height())
            painter.fillRect(lit, colors.color("text", 60))

    def _paint_bands(self, painter: QPainter, axes: Axes) -> None:
        colors = theme.current()
        set_small_font(painter, self.font())
        painter.setPen(QPen(colors.color("muted"), 1, Qt.PenStyle.DotLine))
        for place, _ in self._bands:
            x = axes.x_px(self._x[place])
            painter.drawLine(QPointF(x, axes.area.top()), QPointF(x, axes.area.bottom()))
        painter.setPen(colors.color("muted"))
        for x, title in self.titles_of_bands(axes, painter.fontMetrics()):
            painter.drawText(QPointF(x, axes.area.top() + 10), title)

    def titles_of_bands(self, axes: Axes, metrics: QFontMetrics) -> list[tuple[float, str]]:
        """The titles that have room, each with the x where it begins. Those of long stretches come
        first, so that a short one hides none of them."""
        begins = [axes.x_px(self._x[place]) for place, _ in self._bands]
        ends = [*begins[1:], axes.area.right()]
        found: list[tuple[float, float, str]] = []
        longest_first = sorted(range(len(begins)), key=lambda n: begins[n] - ends[n])
        for number in longest_first:
            left, title = begins[number] + 4, self._bands[number][1]
            right = left + metrics.horizontalAdvance(title)
            if right <= axes.area.right() and all(
                right + 4 <= other_left or other_right + 4 <= left
                for other_left, other_right, _ in found
            ):
                found.append((left, right, title))
        return [(left, title) for left, _, title in sorted(found)]

    # -- pointing --------------------------------------------------------------------------------

    def place_at(self, pixel: QPointF) -> int:
        """The newest place that is not after a pixel; -1 outside."""
        found = self.axes().value_at(pixel) if self._x else None
        return -1 if found is None else int(np.searchsorted(self._x, found[0], side="right")) - 1

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.point_at(self.place_at(event.position()))

    def leaveEvent(self, event) -> None:
        self.point_at(-1)
        super().leaveEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self.place_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and place >= 0:
            self.chosen.emit(place)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and right go from place to place, from the marked one on; Enter chooses."""
        key = Qt.Key(event.key())
        if key in _MOVES and self._x:
            start = self.place if self.place >= 0 else self.marked
            step = _MOVES[key] if self.place >= 0 else 0
            self.point_at(min(max(start + step, 0), len(self._x) - 1))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.place >= 0:
            self.chosen.emit(self.place)
        elif key == Qt.Key.Key_Escape and self.place >= 0:
            self.point_at(-1)
        else:
            super().keyPressEvent(event)

    def point_at(self, place: int) -> None:
        if place != self.place:
            self.place = place
            self.pointed.emit(place)
            self.update()


def _steps(axes: Axes, edges: Floats, values: Floats) -> list[QPointF]:
    """A line that is level from each edge to the next."""
    points = []
    for left, right, value in zip(edges[:-1], edges[1:], values, strict=True):
        y = axes.y_px(float(value))
        points += [QPointF(axes.x_px(float(left)), y), QPointF(axes.x_px(float(right)), y)]
    return points
