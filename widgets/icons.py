"""Icons by name, in the theme's colours.

They are characters of the font that qtawesome brings. That package is not imported: it would load
eleven fonts more, and wrappers of all of Qt.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import msgspec
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import (
    QAction,
    QColor,
    QFont,
    QFontDatabase,
    QIcon,
    QIconEngine,
    QPainter,
    QPixmap,
)
from PySide6.QtWidgets import QAbstractButton

from . import theme

HEIGHT_SHARE = 0.875
"""The height of the font in that of an icon: 14 of 16 pixels."""


def icon(name: str, role: str = "text", *, selected: str = "") -> QIcon:
    """The icon `name` (`"mdi6.plus"`) in the colour of a theme role; grey when disabled, and in the
    colour of the role `selected`, if given, in a selected item. It follows the theme. Raises
    KeyError for a name that the font has not."""
    return _icon(name, role, selected or role)


def picture(name: str, color: QColor, pixels: int) -> QPixmap:
    """The icon `name` as a square with a side of `pixels`. Raises KeyError as `icon` does."""
    return QIcon(_Character(name, lambda mode: color)).pixmap(QSize(pixels, pixels))


@lru_cache(maxsize=4_096)
def _icon(name: str, role: str, selected: str) -> QIcon:
    def color(mode: QIcon.Mode) -> QColor:
        if mode == QIcon.Mode.Disabled:
            return theme.current().color("muted", 110)
        return theme.current().color(selected if mode == QIcon.Mode.Selected else role)

    return QIcon(_Character(name, color))


class _Character(QIconEngine):
    """Paints a character of the icons' font."""

    def __init__(self, name: str, color: Callable[[QIcon.Mode], QColor]) -> None:
        super().__init__()
        self._character = chr(int(_codes()[name.removeprefix("mdi6.")], 16))
        self._color = color

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        font = QFont(_family())
        font.setPixelSize(round(HEIGHT_SHARE * rect.height()))
        painter.save()
        painter.setPen(self._color(mode))
        painter.setFont(font)
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, self._character)
        painter.restore()

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        made = QPixmap(size)
        made.fill(Qt.GlobalColor.transparent)
        painter = QPainter(made)
        self.paint(painter, QRect(QPoint(0, 0), size), mode, state)
        painter.end()
        return made


def _file(pattern: str) -> Path:
    """The file of qtawesome's fonts whose name has this pattern."""
    spec = find_spec("qtawesome")
    assert spec is not None and spec.submodule_search_locations
    (found,) = Path(spec.submodule_search_locations[0], "fonts").glob(pattern)
    return found


@cache
def _family() -> str:
    number = QFontDatabase.addApplicationFont(str(_file("materialdesignicons6-*.ttf")))
    return QFontDatabase.applicationFontFamilies(number)[0]


@cache
def _codes() -> dict[str, str]:
    """The code of each character, as `0xf01c9`."""
    return msgspec.json.decode(_file("materialdesignicons6-*charmap*.json").read_bytes())


def set_icon(target: QAbstractButton | QAction, name: str, role: str = "text") -> None:
    """Give a button or an action an icon."""
    target.setIcon(icon(name, role))
