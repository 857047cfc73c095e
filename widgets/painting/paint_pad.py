"""The plane in which points are painted."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from math import cos, hypot, pi, sin, sqrt
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.project.document import PaintedPoint
from engine.project.limits import MAX_POINTS
from widgets import make, theme
from widgets.painted_widget import PaintedWidget, set_small_font
from widgets.theme import GRID

_SIDE = 36 * GRID
_RADIUS = 3.0
_EDGE = GRID
"""Around the plane, so that points at its edge are whole."""
_KEY_STEP = 0.05
_DOT_APART = 0.06
"""A stroke puts its next points down after this way, in the unit of the plane."""
_KEYS = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, 1),
    Qt.Key.Key_Down: (0, -1),
}


class Brush(NamedTuple):
    """A dab paints `count` points of a class within `radius`, or erases those there."""

    label: int = 0
    count: int = 3
    radius: float = 0.1
    erases: bool = False


class PaintPad(PaintedWidget):
    """Shows points of the plane, -1 to 1 along both axes. A drag paints or erases with the brush,
    Esc in it takes it back. With the keyboard: arrows move a cross, Space uses the brush there,
    Delete erases there. While it goes on, a stroke shows, and is told at its end."""

    painted = Signal(object)
    """All points after a stroke: tuple[PaintedPoint, ...]."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(
            self,
            "paint_pad",
            "Plane to paint points in",
            "Drag to paint points of the chosen class; Esc takes the stroke back. Arrow keys move"
            " the cross, Space paints there, Delete erases there.",
        )
        self.brush = Brush()
        self._points: tuple[PaintedPoint, ...] = ()
        self._stroke: tuple[PaintedPoint, ...] | None = None
        self._last: tuple[float, float] | None = None
        self._cross = (0.0, 0.0)
        self._random = random.Random(0)
        self._is_number = False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.CrossCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(_SIDE, _SIDE)

    def show_points(self, points: Sequence[PaintedPoint], as_numbers: bool) -> None:
        """Show points in the colours of their classes; `as_numbers`, all in one."""
        self._points, self._is_number = tuple(points), as_numbers
        self._stroke = None
        self.update()

    # -- painting with the brush -----------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            super().mousePressEvent(event)
            return
        self._stroke = self._points
        self._dab(*self._place_of(event.position()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._stroke is None or self._last is None:
            return
        x, y = self._place_of(event.position())
        if hypot(x - self._last[0], y - self._last[1]) >= _DOT_APART:
            self._dab(x, y)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._finish()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if key == Qt.Key.Key_Escape and self._stroke is not None:
            self._stroke = self._last = None
            self.update()
        elif key in _KEYS:
            step_x, step_y = _KEYS[key]
            x, y = self._cross
            nearest = rounded(x + step_x * _KEY_STEP, y + step_y * _KEY_STEP, 0)
            self._cross = nearest[0], nearest[1]
            self.update()
        elif key in (Qt.Key.Key_Space, Qt.Key.Key_Delete):
            self._stroke = self._points
            before = self.brush
            self.brush = before._replace(erases=before.erases or key == Qt.Key.Key_Delete)
            self._dab(*self._cross)
            self.brush = before
            self._finish()
        else:
            super().keyPressEvent(event)

    def _dab(self, x: float, y: float) -> None:
        assert self._stroke is not None
        self._last = (x, y)
        brush = self.brush
        if brush.erases:
            self._stroke = erased(self._stroke, x, y, max(brush.radius, 0.03))
        else:
            new = [self._near(x, y) for _ in range(brush.count)]
            self._stroke = (*self._stroke, *new)[:MAX_POINTS]
        self.update()

    def _near(self, x: float, y: float) -> PaintedPoint:
        """A point in the brush's disc, each place of it as likely."""
        distance = self.brush.radius * sqrt(self._random.random())
        angle = 2 * pi * self._random.random()
        return rounded(x + distance * cos(angle), y + distance * sin(angle), self.brush.label)

    def _finish(self) -> None:
        stroke, self._stroke, self._last = self._stroke, None, None
        if stroke is not None and stroke != self._points:
            self._points = stroke
            self.painted.emit(stroke)
        self.update()

    # -- the picture -----------------------------------------------------------------------------

    def _plane(self) -> QRectF:
        side = min(self.width(), self.height()) - 2 * _EDGE
        return QRectF(_EDGE, _EDGE, side, side)

    def _place_of(self, position: QPointF) -> tuple[float, float]:
        plane = self._plane()
        x = 2 * (position.x() - plane.left()) / plane.width() - 1
        y = 1 - 2 * (position.y() - plane.top()) / plane.height()
        nearest = rounded(x, y, 0)
        return nearest[0], nearest[1]

    def _on_screen(self, x: float, y: float) -> QPointF:
        plane = self._plane()
        return QPointF(
            plane.left() + plane.width() * (x + 1) / 2, plane.top() + plane.height() * (1 - y) / 2
        )

    def paint(self, painter: QPainter) -> None:
        colours, plane = theme.current(), self._plane()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(colours.color("border"), 1))
        painter.setBrush(colours.color("surface"))
        painter.drawRect(plane)
        painter.setPen(QPen(colours.color("grid"), 1))
        for at in (-0.5, 0.0, 0.5):
            painter.drawLine(self._on_screen(at, -1), self._on_screen(at, 1))
            painter.drawLine(self._on_screen(-1, at), self._on_screen(1, at))
        self._paint_scale(painter)
        points = self._points if self._stroke is None else self._stroke
        painter.setPen(QPen(colours.color("surface"), 0.8))
        for x, y, label in points:
            painter.setBrush(class_color(0 if self._is_number else label))
            painter.drawEllipse(self._on_screen(x, y), _RADIUS, _RADIUS)
        if not points:
            painter.setPen(colours.color("muted"))
            painter.drawText(plane, Qt.AlignmentFlag.AlignCenter, "Drag here to paint points.")
        if self.hasFocus():
            place = self._on_screen(*self._cross)
            painter.setPen(QPen(colours.color("accent"), 1.5))
            painter.drawLine(place - QPointF(GRID, 0), place + QPointF(GRID, 0))
            painter.drawLine(place - QPointF(0, GRID), place + QPointF(0, GRID))

    def _paint_scale(self, painter: QPainter) -> None:
        """The ends of both axes."""
        plane = self._plane().adjusted(3, 1, -3, -1)
        set_small_font(painter, self.font())
        painter.setPen(theme.current().color("muted"))
        align = Qt.AlignmentFlag
        painter.drawText(plane, align.AlignBottom | align.AlignLeft, "−1")
        painter.drawText(plane, align.AlignBottom | align.AlignRight, "x 1")
        painter.drawText(plane, align.AlignTop | align.AlignLeft, "y 1")


def class_color(label: int) -> QColor:
    """The colour that the class has in the decision surface, too."""
    series = theme.current().series
    return QColor(series[label % len(series)])


def rounded(x: float, y: float, label: int) -> PaintedPoint:
    """The point of the plane nearest to (x, y), in steps of a thousandth."""
    return round(min(max(x, -1.0), 1.0), 3), round(min(max(y, -1.0), 1.0), 3), label


def erased(
    points: Iterable[PaintedPoint], x: float, y: float, radius: float
) -> tuple[PaintedPoint, ...]:
    """The points that are farther from (x, y) than the radius."""
    return tuple(p for p in points if hypot(p[0] - x, p[1] - y) > radius)
