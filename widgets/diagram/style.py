"""Fonts, icons and group colours of the diagrams."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPixmap
from PySide6.QtWidgets import QApplication

from engine.project import catalogue
from widgets import icons, theme

ICON_PX = 64
"""Icons are drawn from a pixmap this large: sharp up to 250 % zoom."""


@lru_cache
def font(pixels: int, bold: bool = False, mono: bool = False) -> QFont:
    """A font measured in scene pixels; unhinted, so that text scales evenly with the zoom."""
    face = theme.mono_font() if mono else QFont(QApplication.font())
    face.setPixelSize(pixels)
    face.setBold(bold)
    face.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    return face


@lru_cache(maxsize=4096)
def text_width(text: str, face: QFont) -> float:
    """The width of a text in scene pixels."""
    return QFontMetricsF(face).horizontalAdvance(text)


@lru_cache(maxsize=4096)
def elided(text: str, face: QFont, width: float) -> str:
    """A text cut short to a width in scene pixels."""
    return QFontMetricsF(face).elidedText(text, Qt.TextElideMode.ElideRight, width)


@lru_cache(maxsize=512)
def fitting_font(text: str, largest: int, smallest: int, width: float) -> QFont:
    """The largest bold font, in whole pixels, in which a text fits a width."""
    sizes = range(largest, smallest, -1)
    fonts = (font(pixels, bold=True) for pixels in sizes)
    fitting = (face for face in fonts if text_width(text, face) <= width)
    return next(fitting, font(smallest, bold=True))


@lru_cache(maxsize=512)
def icon(name: str, color: str) -> QPixmap:
    """A `mdi6.*` icon in a colour."""
    pixmap = icons.picture(name, QColor(color), ICON_PX)
    pixmap.setDevicePixelRatio(1)
    return pixmap


@lru_cache
def _groups() -> dict[str, int]:
    order = dict.fromkeys(kind.group for kind in catalogue.kinds().values())
    return {group: index for index, group in enumerate(order)}


def group_color(group: str) -> QColor:
    """The colour of a group of the catalogue, by its place in it."""
    series = theme.current().series
    return QColor(series[_groups().get(group, 0) % len(series)])
