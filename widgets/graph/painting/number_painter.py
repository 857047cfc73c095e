"""Paints a number on a graph's picture; a norm gets a mark in the colour of its size."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QFont, QPainter

from widgets import theme
from widgets.boxes.numbers import Shown, strength
from widgets.colormap import SIZE, sequential
from widgets.diagram.style import elided, text_width
from widgets.graph.painting.paint import pen

MARK = 7.0
_GAP = 4.0


def number_width(number: Shown, face: QFont) -> float:
    """The width of a number with its mark, in scene pixels."""
    mark = 0.0 if number.norm is None else MARK + _GAP
    return mark + text_width(number.text, face)


def draw_number(
    painter: QPainter, at: QPointF, number: Shown, face: QFont, role: str, room: float
) -> None:
    """Draw a number with its left end and baseline `at`, cut to the width `room`."""
    x, y = at.x(), at.y()
    color = theme.current().color("error" if number.is_bad else role)
    if number.norm is not None:
        painter.setPen(pen("muted", 0.75))
        painter.setBrush(color if number.is_bad else mark_color(number.norm))
        painter.drawRect(QRectF(x, y - MARK - 0.5, MARK, MARK))
        x, room = x + MARK + _GAP, room - MARK - _GAP
    painter.setFont(face)
    painter.setPen(color)
    painter.drawText(QPointF(x, y), elided(number.text, face, room))


def mark_color(norm: float) -> QColor:
    """The colour of a norm: dark for a small one, yellow for a large one."""
    return QColor(*sequential()[round(strength(norm) * (SIZE - 1))].tolist())
