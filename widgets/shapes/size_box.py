"""Paints a box with a dimension's size, and words beside it: all pictures of shapes use them."""

from __future__ import annotations

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QPainter, QPen

from widgets import theme

ROLES = {
    "same": ("border", "surface", 255),
    "stretched": ("gradient", "gradient", 60),
    "added": ("muted", "window", 255),
    "conflict": ("error", "error", 60),
    "result": ("accent", "accent", 40),
}
"""Role -> the theme's roles for the edge and the fill of a box, and the fill's alpha."""


def paint_box(painter: QPainter, box: QRect, text: str, role: str, points: int = 11) -> None:
    """Paint a box with a text in it. Raises KeyError for a role that is not in `ROLES`."""
    colors = theme.current()
    edge, fill, alpha = ROLES[role]
    pen = QPen(colors.color(edge), 1)
    if role == "added":
        pen.setStyle(Qt.PenStyle.DashLine)
    painter.setPen(pen)
    painter.setBrush(colors.color(fill, alpha))
    painter.drawRoundedRect(box, 4, 4)
    paint_text(painter, box, text, "muted" if role == "added" else "text", points)


def paint_text(
    painter: QPainter,
    box: QRect,
    text: str,
    role: str,
    points: int,
    align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignCenter,
    elide: Qt.TextElideMode = Qt.TextElideMode.ElideNone,
) -> None:
    """Paint monospace text in a colour of the theme, cut short if the box is too narrow and `elide`
    says so."""
    painter.setFont(theme.mono_font(points))
    painter.setPen(theme.current().color(role))
    painter.drawText(box, align, painter.fontMetrics().elidedText(text, elide, box.width()))
