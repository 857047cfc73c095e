"""Two axes around a picture: from numbers to pixels and back, ticks, titles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil, floor, isfinite, log10

from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QPainter

from widgets import theme
from widgets.painted_widget import set_small_font
from widgets.text import format_number

LEFT, TOP, RIGHT, BOTTOM = 58, 10, 16, 34
"""Room for the numbers and titles beside the picture, in pixels."""
TICK_PX = 64
"""The distance between two ticks, roughly."""
ROW_PX = 14


class Scale(Struct, frozen=True):
    """The numbers of one axis, from `low` to `high`, which differ. `is_log`: equal distances are
    equal ratios; then both are above 0."""

    low: float
    high: float
    is_log: bool = False

    def share(self, value: float) -> float:
        """Where a number is, from 0 at `low` to 1 at `high`."""
        if self.is_log:
            low, high = log10(self.low), log10(self.high)
            return (log10(value) - low) / (high - low) if value > 0 else float("nan")
        return (value - self.low) / (self.high - self.low)

    def value(self, share: float) -> float:
        if self.is_log:
            low, high = log10(self.low), log10(self.high)
            return 10 ** (low + share * (high - low))
        return self.low + share * (self.high - self.low)

    def ticks(self, count: int) -> list[float]:
        """About `count` round numbers on the axis."""
        if self.is_log and (decades := self._decades(count)):
            return decades
        step = _round_up((self.high - self.low) / max(1, count))
        first = ceil(self.low / step - 1e-9)
        last = floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def _decades(self, count: int) -> list[float]:
        """Powers of ten, with 2 and 5 between few of them; none where the axis is short."""
        first, last = ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9)
        apart = max(1, ceil((last - first + 1) / max(1, count)))
        found = [10.0**power for power in range(first, last + 1, apart)]
        if len(found) < 3:  # then there is room between them
            near = [digit * 10.0**p for p in range(first - 1, last + 1) for digit in (1, 2, 5)]
            found = [v for v in near if self.low * (1 - 1e-9) <= v <= self.high * (1 + 1e-9)]
        return found if len(found) > 2 else []


def scale_of(values: Iterable[float], is_log: bool = False, room: float = 0.05) -> Scale:
    """A scale around the finite numbers (above 0 on a logarithmic one), with some room."""
    known = [v for v in values if isfinite(v) and (v > 0 or not is_log)]
    if not known:
        return Scale(1.0, 10.0, True) if is_log else Scale(0.0, 1.0)
    low, high = min(known), max(known)
    if is_log:
        ratio = max((high / low) ** room, 1.05)
        return Scale(low / ratio, high * ratio, True)
    gap = (high - low) * room or abs(high) * 0.1 or 1.0
    return Scale(low - gap, high + gap)


def _round_up(step: float) -> float:
    """The next of 1, 2, 5, 10, ... times a power of ten."""
    power = 10.0 ** floor(log10(step))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= step * (1 - 1e-9))


class Axes(Struct, frozen=True):
    """An area of a widget, in pixels, with a scale for each side."""

    area: QRectF
    x: Scale
    y: Scale

    def at(self, x: float, y: float) -> QPointF:
        return QPointF(self.x_px(x), self.y_px(y))

    def x_px(self, x: float) -> float:
        return self.area.left() + self.x.share(x) * self.area.width()

    def y_px(self, y: float) -> float:
        return self.area.bottom() - self.y.share(y) * self.area.height()

    def value_at(self, place: QPointF) -> tuple[float, float] | None:
        """The numbers under a pixel; None outside of the area."""
        if not self.area.contains(place):
            return None
        across = (place.x() - self.area.left()) / self.area.width()
        up = (self.area.bottom() - place.y()) / self.area.height()
        return self.x.value(across), self.y.value(up)

    def paint(
        self,
        painter: QPainter,
        font: QFont,
        x_title: str,
        y_title: str,
        y_text: Callable[[float], str] = lambda value: format_number(value, 3),
        *,
        has_grid: bool = True,
    ) -> None:
        """Paint numbers, titles and, behind what comes later, a grid."""
        colors, area = theme.current(), self.area
        set_small_font(painter, font)
        columns = max(2, int(area.width() / TICK_PX))
        rows = max(2, int(area.height() / TICK_PX * 1.6))
        for value in self.x.ticks(columns):
            x = self.x_px(value)
            if has_grid:
                painter.fillRect(QRectF(x, area.top(), 1, area.height()), colors.color("grid"))
            painter.setPen(colors.color("muted"))
            box = QRectF(x - TICK_PX / 2, area.bottom() + 3, TICK_PX, ROW_PX)
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, format_number(value, 4))
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for value in self.y.ticks(rows):
            y = self.y_px(value)
            if has_grid:
                painter.fillRect(QRectF(area.left(), y, area.width(), 1), colors.color("grid"))
            painter.setPen(colors.color("muted"))
            box = QRectF(ROW_PX, y - ROW_PX / 2, area.left() - ROW_PX - 5, ROW_PX)
            painter.drawText(box, right, y_text(value))
        below = QRectF(area.left(), area.bottom() + 3 + ROW_PX, area.width(), ROW_PX)
        painter.drawText(below, Qt.AlignmentFlag.AlignCenter, x_title)
        painter.save()
        painter.translate(0, area.bottom())
        painter.rotate(-90)
        painter.drawText(QRectF(0, 0, area.height(), ROW_PX), Qt.AlignmentFlag.AlignCenter, y_title)
        painter.restore()


def area_of(width: float, height: float) -> QRectF:
    """The part of a picture that is left for its numbers; at least a pixel."""
    return QRectF(LEFT, TOP, max(1.0, width - LEFT - RIGHT), max(1.0, height - TOP - BOTTOM))
