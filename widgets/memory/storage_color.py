"""The colour of a piece of memory: one for each storage number, the same in every view."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from widgets import theme
from widgets.colormap import distinct_colors

CHIP_HEIGHT = 16
COLORS = 48
"""The number of storages that have a colour of their own."""


def storage_color(number: int) -> QColor:
    """The colour of storage `number` (from 1): one of the theme's series, then others. They repeat
    after COLORS storages: a colour alone does not identify a storage."""
    current = theme.current()
    colors = distinct_colors(current.series, current.surface, COLORS)
    return QColor(colors[(number - 1) % len(colors)])


def paint_storage_chip(painter: QPainter, rect: QRectF, number: int) -> None:
    """Paint a filled pill with the storage's number, centred in `rect`."""
    width = max(CHIP_HEIGHT * 1.5, painter.fontMetrics().horizontalAdvance(str(number)) + 12)
    chip = QRectF(0, 0, min(width, rect.width()), CHIP_HEIGHT)
    chip.moveCenter(rect.center())
    color = storage_color(number)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)
    painter.drawRoundedRect(chip, CHIP_HEIGHT / 2, CHIP_HEIGHT / 2)
    painter.setPen(QColor("#000000" if _is_light(color) else "#ffffff"))
    painter.drawText(chip, Qt.AlignmentFlag.AlignCenter, str(number))
    painter.restore()


def _is_light(color: QColor) -> bool:
    """Whether black has more contrast on a colour than white (relative luminance of WCAG 2)."""
    channels = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (color.redF(), color.greenF(), color.blueF())
    ]
    luminance = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), channels, strict=True))
    return luminance > 0.179
