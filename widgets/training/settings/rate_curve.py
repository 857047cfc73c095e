"""The learning rate over a run, drawn small before it is trained."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.protocol import RatesSnapshot
from widgets import make, theme
from widgets.text import format_number
from widgets.theme import GRID

HEIGHT = 10 * GRID


class RateCurve(QWidget):
    """Shows a RatesSnapshot: the curve, the highest rate at its left, the last step at its right;
    or words where there is none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rates: RatesSnapshot | None = None
        self.words = ""
        make.named(
            self,
            "setup_rate_curve",
            "Learning rate over the run",
            "The learning rate of each step of the run, computed by torch's scheduler without"
            " training.",
        )
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        theme.notifier.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(30 * GRID, HEIGHT)

    def show_rates(self, rates: RatesSnapshot) -> None:
        self._rates = rates
        low, high = (format_number(f(rates.rates), 3) for f in (min, max))
        of = rates.steps[-1]
        self.words = f"lr {low} to {high} over {of:,} steps"
        if of < rates.total_steps:
            self.words = f"lr {low} to {high} in the first {of:,} of {rates.total_steps:,} steps"
        self.setAccessibleDescription(self.words)
        self.update()

    def show_words(self, words: str) -> None:
        """Say why there is no curve."""
        self._rates, self.words = None, words
        self.setAccessibleDescription(words)
        self.update()

    def curve(self, area: QRectF) -> list[tuple[float, float]]:
        """The points of the curve in an area: the lowest shown rate is 0."""
        if self._rates is None:
            return []
        first, last = self._rates.steps[0], self._rates.steps[-1]
        high = max(self._rates.rates) or 1.0
        across = max(1, last - first)
        return [
            (
                area.left() + area.width() * (step - first) / across,
                area.bottom() - area.height() * rate / high,
            )
            for step, rate in zip(self._rates.steps, self._rates.rates, strict=True)
        ]

    def paintEvent(self, event: QPaintEvent) -> None:
        colors = theme.current()
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            line = painter.fontMetrics().height()
            area = QRectF(self.rect()).adjusted(1, 1, -1, -1)
            painter.setPen(QPen(colors.color("muted")))
            wrapped = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignBottom
            if self._rates is None:
                painter.drawText(area, wrapped, self.words)
                return
            painter.drawText(area, Qt.AlignmentFlag.AlignBottom, self.words)
            area.adjust(0, 2, 0, -line - GRID / 2)
            painter.setPen(QPen(colors.color("grid")))
            painter.drawLine(area.bottomLeft(), area.bottomRight())
            painter.setPen(QPen(colors.color("accent"), 1.5))
            painter.drawPolyline(QPolygonF([QPointF(x, y) for x, y in self.curve(area)]))
