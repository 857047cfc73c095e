"""The curve of a learning-rate range test: the loss over the logarithm of the rate."""

from __future__ import annotations

from math import ceil, floor, log10

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from engine.protocol import RateCurve
from widgets import make, theme
from widgets.painted_widget import PaintedWidget, set_small_font
from widgets.text import format_number

HEIGHT = 160
_LEFT, _TOP, _RIGHT, _BOTTOM = 48, 8, 8, 32
SHOWN = 1.25
"""The axis of the loss ends at this many times the first smoothed loss; points above it are not
shown."""


class RateCurveView(PaintedWidget):
    """Points are the losses of single batches, the line is smoothed; the suggestion is marked."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(
            self,
            "rate_curve",
            "Learning-rate range test",
            "One step at each rate, from low to high, on a copy of the weights. A good rate is"
            " where the loss falls steepest, well before it rises.",
        )
        self._curve = RateCurve()
        self.setMinimumHeight(HEIGHT)

    def sizeHint(self) -> QSize:
        return QSize(360, HEIGHT)

    def show_curve(self, curve: RateCurve) -> None:
        self._curve = curve
        said = f"{len(curve.rates)} rates"
        if curve.suggestion:
            said += f", suggestion {curve.suggestion:g}"
        self.setAccessibleDescription(said)
        self.update()

    def paint(self, painter: QPainter) -> None:
        curve, colors = self._curve, theme.current()
        if len(curve.rates) < 2:
            self.paint_empty(painter, "No rate of the test gave a finite loss.")
            return
        area = QRectF(self.rect()).adjusted(_LEFT, _TOP, -_RIGHT, -_BOTTOM)
        low, high = log10(curve.rates[0]), log10(curve.rates[-1])
        shown = [min(loss, SHOWN * curve.smooth[0]) for loss in (*curve.losses, *curve.smooth)]
        bottom, top = min(shown), max(shown)

        def at(rate: float, loss: float) -> QPointF:
            across = (log10(rate) - low) / (high - low)
            up = (loss - bottom) / ((top - bottom) or 1.0)
            return QPointF(area.left() + across * area.width(), area.bottom() - up * area.height())

        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        set_small_font(painter, self.font())
        painter.setPen(colors.color("muted"))
        for exponent in range(ceil(low), floor(high) + 1):
            x = at(10.0**exponent, bottom).x()
            painter.fillRect(QRectF(x, area.top(), 1, area.height()), colors.color("muted", 40))
            box = QRectF(x - 24, area.bottom() + 2, 48, 14)
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, f"1e{exponent}")
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for loss in (bottom, top):
            box = QRectF(0, at(curve.rates[0], loss).y() - 7, _LEFT - 6, 14)
            painter.drawText(box, right, format_number(loss, 3))
        below = QRectF(area.left(), area.bottom() + 16, area.width(), 14)
        painter.drawText(below, Qt.AlignmentFlag.AlignCenter, "learning rate")
        painter.setClipRect(area.adjusted(-2, -2, 2, 2))
        painter.setPen(QPen(colors.color("muted", 160), 3))
        painter.drawPoints(QPolygonF(list(map(at, curve.rates, curve.losses))))
        painter.setPen(QPen(colors.color("accent"), 2))
        painter.drawPolyline(QPolygonF(list(map(at, curve.rates, curve.smooth))))
        if curve.suggestion:
            x = at(curve.suggestion, bottom).x()
            painter.fillRect(QRectF(x, area.top(), 2, area.height()), colors.color("success"))
