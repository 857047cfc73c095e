"""A histogram of a tensor's finite elements."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPen,
)
from PySide6.QtWidgets import QWidget

from engine.protocol import Histogram
from widgets import make, theme
from widgets.painted_widget import PaintedWidget, set_small_font
from widgets.text import format_number
from widgets.theme import GRID

_LEFT, _TOP, _BOTTOM = 72, 28, 32


class HistogramView(PaintedWidget):
    """Paints a `Histogram` as bars. The pointer or the arrow keys choose a bar."""

    bar_changed = Signal(object)
    """The number of the chosen bar, from 0; None if no bar is chosen."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "histogram_view", "Histogram of the elements")
        self.setToolTip(
            "The number of elements in each range of values. NaN and infinities are left out."
        )
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._histogram: Histogram | None = None
        self._empty_text = "No numbers to count yet"
        self._bar: int | None = None

    def show_histogram(self, histogram: Histogram | None, empty_text: str = "") -> None:
        """Show a histogram; without one, `empty_text`."""
        self._histogram = histogram
        self._empty_text = empty_text or "No finite numbers to count"
        if histogram is None or (self._bar or 0) >= len(histogram.counts):
            self._bar = None
        self.update()

    def readout(self) -> str:
        """The chosen bar in words (`-0.25 ≤ x < 0.25: 1,204 elements`)."""
        shown, bar = self._histogram, self._bar
        if shown is None or bar is None:
            return ""
        low = shown.low + bar * shown.width
        ends = format_number(low, 4), format_number(low + shown.width, 4)
        count = shown.counts[bar]
        return f"{ends[0]} ≤ x < {ends[1]}: {count:,} element{'' if count == 1 else 's'}"

    def bar_rect(self, bar: int) -> QRectF:
        """The rect of a bar, in the widget's pixels."""
        assert self._histogram is not None
        area, counts = self._area(), self._histogram.counts
        width = area.width() / len(counts)
        height = area.height() * counts[bar] / (max(counts) or 1)
        # A few elements among millions have a visible bar, too.
        height = max(height, 1.0) if counts[bar] else 0.0
        return QRectF(area.x() + bar * width, area.bottom() - height, width, height)

    def sizeHint(self) -> QSize:
        return QSize(360, 200)

    def _area(self) -> QRectF:
        return QRectF(self.rect()).adjusted(_LEFT, _TOP, -2 * GRID, -_BOTTOM)

    def paint(self, painter: QPainter) -> None:
        colors = theme.current()
        painter.fillRect(self.rect(), colors.color("surface"))
        shown = self._histogram
        if shown is None:
            self.paint_empty(painter, self._empty_text)
            return
        area = self._area()
        gap = 1.0 if area.width() / len(shown.counts) > 4 else 0.0
        for bar in range(len(shown.counts)):
            color = colors.color("accent" if bar == self._bar else "storage")
            painter.fillRect(self.bar_rect(bar).adjusted(0, 0, -gap, 0), color)
        painter.setPen(QPen(colors.color("border"), 1))
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        set_small_font(painter, self.font())
        painter.setPen(colors.color("muted"))
        most = QRectF(0, area.y() - 8, _LEFT - GRID, 16)
        painter.drawText(most, Qt.AlignmentFlag.AlignRight, f"{max(shown.counts):,}")
        none = QRectF(0, area.bottom() - 12, _LEFT - GRID, 16)
        painter.drawText(none, Qt.AlignmentFlag.AlignRight, "0")
        foot = QRectF(area.x(), area.bottom() + 4, area.width(), 16)
        high = shown.low + shown.width * len(shown.counts)
        painter.drawText(foot, Qt.AlignmentFlag.AlignLeft, format_number(shown.low, 4))
        painter.drawText(foot, Qt.AlignmentFlag.AlignRight, format_number(high, 4))
        if shown.low < 0 < high:
            x = area.x() + area.width() * (-shown.low / (high - shown.low))
            if area.x() + 60 < x < area.right() - 60:
                painter.drawText(
                    QRectF(x - 20, foot.y(), 40, 16), Qt.AlignmentFlag.AlignCenter, "0"
                )
                painter.drawLine(QPointF(x, area.bottom()), QPointF(x, area.bottom() + 4))
        painter.setPen(colors.color("text"))
        head = QRectF(area.x(), 4, area.width(), 16)
        painter.drawText(head, Qt.AlignmentFlag.AlignRight, self.readout())

    def _set_bar(self, bar: int | None) -> None:
        if bar != self._bar:
            self._bar = bar
            self.setAccessibleDescription(self.readout())
            self.bar_changed.emit(bar)
            self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._histogram is None:
            return
        area, count = self._area(), len(self._histogram.counts)
        bar = int((event.position().x() - area.x()) / area.width() * count)
        inside = area.x() <= event.position().x() and bar < count
        self._set_bar(bar if inside else None)

    def leaveEvent(self, event) -> None:
        self._set_bar(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if step is None or self._histogram is None:
            super().keyPressEvent(event)
            return
        last = len(self._histogram.counts) - 1
        self._set_bar(0 if self._bar is None else min(max(self._bar + step, 0), last))
