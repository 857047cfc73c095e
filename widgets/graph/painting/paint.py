"""Tools of the painters of graphs: pens, batches of shapes, the legend."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import shiboken6
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen

from widgets import theme
from widgets.diagram.style import elided, font, text_width
from widgets.graph.painting.geometry import Floats

_PATH = re.compile(r"[\w.]+(?: [(×].*)?")
"""A dotted name, which may be followed by the number of a call or of repeats."""
PAD = 8.0
"""The gap between a box's edge and its words."""


def pen(
    role: str, width: float = 1.0, style: Qt.PenStyle = Qt.PenStyle.SolidLine, alpha: int = 255
) -> QPen:
    """A pen in a colour of the theme, as wide on screen at every zoom."""
    made = QPen(theme.current().color(role, alpha), width, style)
    made.setCosmetic(True)
    return made


def mixed(over: str, under: str, strength: float) -> QColor:
    """The colour of one role laid over another with a strength of 0 to 1, opaque."""
    top, ground = theme.current().color(over), theme.current().color(under)

    def part(a: int, b: int) -> int:
        return round(a * strength + b * (1 - strength))

    return QColor(
        part(top.red(), ground.red()),
        part(top.green(), ground.green()),
        part(top.blue(), ground.blue()),
    )


def shortened(name: str, face: QFont, width: float) -> str:
    """A name, cut to a width. Of a dotted one the first parts are left out, then the last one is
    elided; an expression, which has no such parts, is only elided."""
    while "." in name and _PATH.fullmatch(name) and text_width(name, face) > width:
        name = name.partition(".")[2]
    return elided(name, face, width)


def draw_lines(painter: QPainter, lines: Floats) -> None:
    """Draw an (N, 4) array of x1, y1, x2, y2 in one call, as Qt's own array of QLineF."""
    held = np.ascontiguousarray(lines, np.float64)
    if len(held):
        first: Any = shiboken6.wrapInstance(held.ctypes.data, QLineF)
        painter.drawLines(first, len(held))


def draw_rects(painter: QPainter, rects: Floats) -> None:
    """Draw an (N, 4) array of x, y, width, height in one call, as Qt's own array of QRectF."""
    held = np.ascontiguousarray(rects, np.float64)
    if len(held):
        first: Any = shiboken6.wrapInstance(held.ctypes.data, QRectF)
        painter.drawRects(first, len(held))


def cut_rects(rects: Floats, room: QRectF) -> Floats:
    """The parts of an (N, 4) array of x, y, width, height within `room`; each rect must meet it."""
    low = np.maximum(rects[:, :2], (room.left(), room.top()))
    high = np.minimum(rects[:, :2] + rects[:, 2:], (room.right(), room.bottom()))
    return np.hstack([low, high - low])


STEPS_LEGEND = (("accent", "next"), ("gradient", "has run"))


def paint_legend(
    painter: QPainter, room: QRectF, legend: tuple[tuple[str, str], ...], steps: bool
) -> None:
    """The colours with their texts (role, text) in the lower right corner of `room` (viewport
    pixels), if there is space for them. `steps`: a pass steps through the graph."""
    colors = theme.current()
    legend = legend + STEPS_LEGEND if steps else legend
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    face = font(11)
    painter.setFont(face)
    width = sum(text_width(text, face) + 26 for _, text in legend) + 8
    if width + 16 > room.width():
        return
    box = QRectF(room.right() - width - 8, room.bottom() - 34, width, 26)
    painter.setPen(QPen(colors.color("border"), 1))
    painter.setBrush(colors.color("surface"))
    painter.drawRoundedRect(box, 6, 6)
    x, y = box.left() + 10, box.center().y()
    for role, text in legend:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colors.color(role))
        painter.drawRoundedRect(QRectF(x, y - 4, 8, 8), 2, 2)
        painter.setPen(colors.color("muted"))
        painter.drawText(QPointF(x + 13, y + 4), text)
        x += text_width(text, face) + 26


def paint_chip(painter: QPainter, room: QRectF, text: str, at_left: bool = False) -> None:
    """Words on a plate at the upper edge of `room` (viewport pixels), centred or at the left."""
    colors = theme.current()
    face = font(12)
    text = elided(text, face, room.width() - 40)
    width = text_width(text, face) + 24
    left = room.left() + 8 if at_left else room.center().x() - width / 2
    box = QRectF(left, room.top() + 8, width, 26)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(colors.color("border"), 1))
    painter.setBrush(colors.color("surface", 235))
    painter.drawRoundedRect(box, 6, 6)
    painter.setPen(colors.color("muted" if at_left else "text"))
    painter.setFont(face)
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
