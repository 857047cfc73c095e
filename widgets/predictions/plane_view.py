"""The decision surface: the predicted class at each point of the plane, and the samples."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen
from PySide6.QtWidgets import QWidget

from engine.protocol import Plane
from widgets import make, theme
from widgets.painted_widget import set_small_font
from widgets.predictions.square_view import SquareView
from widgets.text import format_number

_RADIUS = 2.5


class PlaneView(SquareView):
    """The colour of a point is that of its likeliest class, the stronger the likelier. Samples are
    dots in the colour of their own class; those predicted wrongly have a ring."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        tip = "Decision surface: the predicted class over the plane. Dots are samples in the colour"
        make.named(self, "plane", "Decision surface", f"{tip} of their class; wrong ones have a"
                   " ring.")  # fmt: skip
        self._plane: Plane | None = None

    def show_plane(self, plane: Plane | None) -> None:
        self._plane = plane
        self.setVisible(plane is not None)
        self.update()

    def paint(self, painter: QPainter) -> None:
        plane = self._plane
        if plane is None:
            return
        side = min(self.width(), self.height())
        square = QRectF(0, 0, side, side)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.drawImage(square, _image(plane))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        wrong = set(plane.wrong)
        for number, (x, y, label) in enumerate(plane.points):
            place = QPointF(
                side * (x - plane.left) / (plane.right - plane.left),
                side * (plane.top - y) / (plane.top - plane.bottom),
            )
            painter.setPen(QPen(theme.current().color("surface"), 0.8))
            painter.setBrush(_color(label))
            painter.drawEllipse(place, _RADIUS, _RADIUS)
            if number in wrong:
                painter.setPen(QPen(theme.current().color("text"), 1.4))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawEllipse(place, 2 * _RADIUS, 2 * _RADIUS)
        self._paint_scale(painter, plane, square.adjusted(3, 1, -3, -1))

    def _paint_scale(self, painter: QPainter, plane: Plane, inside: QRectF) -> None:
        """The ends of both axes."""
        set_small_font(painter, self.font())
        painter.setPen(theme.current().color("text"))
        left, right, low, high = (
            format_number(end, 3) for end in (plane.left, plane.right, plane.bottom, plane.top)
        )
        align = Qt.AlignmentFlag
        painter.drawText(inside, align.AlignBottom | align.AlignLeft, f"x {left}, y {low}")
        painter.drawText(inside, align.AlignBottom | align.AlignRight, f"x {right}")
        painter.drawText(inside, align.AlignTop | align.AlignLeft, f"y {high}")


def _color(label: int) -> QColor:
    series = theme.current().series
    return QColor(series[label % len(series)])


def _rgb(color: QColor) -> tuple[int, int, int]:
    return color.red(), color.green(), color.blue()


def _image(plane: Plane) -> QImage:
    """The picture of the plane, a pixel for each point: in the colour of the likeliest class,
    fading to the surface's colour where two classes are equally likely."""
    classes = np.frombuffer(plane.classes, np.uint8)
    chances = np.frombuffer(plane.chances, np.uint8)[:, None] / 255.0
    count = int(classes.max()) + 1
    table = np.array([_rgb(_color(label)) for label in range(count)])
    ground = np.array(_rgb(theme.current().color("surface")))
    least = 1.0 / max(2, count)
    strength = 0.15 + 0.45 * np.clip((chances - least) / (1.0 - least), 0.0, 1.0)
    pixels = np.ascontiguousarray(
        (ground + (table[classes] - ground) * strength).round().astype(np.uint8)
    )
    image = QImage(pixels.data, plane.side, plane.side, 3 * plane.side, QImage.Format.Format_RGB888)
    return image.copy()  # it owns its pixels
