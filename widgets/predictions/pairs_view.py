"""Predicted numbers beside their targets, as points around the line where both are equal."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QWidget

from widgets import make, theme
from widgets.painted_widget import set_small_font
from widgets.predictions.square_view import SquareView
from widgets.text import format_number

_MARGIN = 40


class PairsView(SquareView):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        tip = "Predictions by targets: on the line both are equal; above it the prediction is too"
        make.named(self, "pairs", "Predictions by targets", f"{tip} large.")
        self._pairs: tuple[tuple[float, float], ...] = ()

    def show_pairs(self, pairs: tuple[tuple[float, float], ...]) -> None:
        """(target, prediction) each."""
        self._pairs = tuple(pair for pair in pairs if all(abs(v) < float("inf") for v in pair))
        self.setVisible(bool(pairs))
        self.update()

    def paint(self, painter: QPainter) -> None:
        if not self._pairs:
            self.paint_empty(painter, "No prediction is finite.")
            return
        colors = theme.current()
        side = min(self.width(), self.height()) - _MARGIN
        square = QRectF(_MARGIN, 0, side, side)
        least = min(min(pair) for pair in self._pairs)
        span = max(max(pair) for pair in self._pairs) - least or 1.0
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(colors.color("border"))
        painter.drawRect(square)
        painter.setPen(QPen(colors.color("muted"), 1, Qt.PenStyle.DashLine))
        painter.drawLine(square.bottomLeft(), square.topRight())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colors.color("accent", 150))
        for target, prediction in self._pairs:
            x = square.left() + side * (target - least) / span
            y = square.bottom() - side * (prediction - least) / span
            painter.drawEllipse(QPointF(x, y), 2.5, 2.5)
        set_small_font(painter, self.font())
        painter.setPen(colors.color("muted"))
        low, high = format_number(least, 3), format_number(least + span, 3)
        below = QRectF(_MARGIN, side + 4, side, 16)
        for flag, text in (("AlignLeft", low), ("AlignHCenter", "target"), ("AlignRight", high)):
            painter.drawText(below, Qt.AlignmentFlag[flag], text)
        painter.rotate(-90)
        beside = QRectF(-side, _MARGIN - 20, side, 16)
        for flag, text in (
            ("AlignLeft", low), ("AlignHCenter", "prediction"), ("AlignRight", high),
        ):  # fmt: skip
            painter.drawText(beside, Qt.AlignmentFlag[flag], text)
        painter.rotate(90)
