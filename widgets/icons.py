"""Icons by name, in the theme's colours.

They are characters of the font that qtawesome brings. That package is not imported: it would load
eleven fonts more, and wrappers of all of Qt.
"""

from __future__ import annotations

import json
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from PySide6.QtCore import QObject, QPoint, QRect, QSize, Qt
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
    colour of the role `selected`, if given, in a selected item. Raises KeyError for a name that the
    font has not."""
    colors = theme.current()
    color = colors.color(role)
    chosen = colors.color(selected) if selected else color
    return _icon(name, color.rgba(), colors.color("muted", 110).rgba(), chosen.rgba())


def picture(name: str, color: QColor, pixels: int) -> QPixmap:
    """The icon `name` as a square of so many pixels. Raises KeyError as `icon` does."""
    return _icon(name, color.rgba()).pixmap(QSize(pixels, pixels))


@lru_cache(maxsize=4_096)
def _icon(name: str, *argb: int) -> QIcon:
    return QIcon(_Character(_characters()[name.removeprefix("mdi6.")], *map(QColor.fromRgba, argb)))


class _Character(QIconEngine):
    """Paints a character of the icons' font."""

    def __init__(self, character: str, color: QColor, *others: QColor) -> None:
        super().__init__()
        self._character, self._color = character, color
        modes = (QIcon.Mode.Disabled, QIcon.Mode.Selected)
        self._others: dict[QIcon.Mode, QColor] = dict(zip(modes, others, strict=False))

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        font = QFont(_family())
        font.setPixelSize(round(HEIGHT_SHARE * rect.height()))
        painter.save()
        painter.setPen(self._others.get(mode, self._color))
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
def _characters() -> dict[str, str]:
    codes = json.loads(_file("materialdesignicons6-*charmap*.json").read_text())
    return {name: chr(int(code, 16)) for name, code in codes.items()}


def set_icon(target: QAbstractButton | QAction, name: str, role: str = "text") -> None:
    """Give a button or an action an icon. When the theme changes, so does the icon's colour."""
    for earlier in target.findChildren(_IconFollower):
        earlier.deleteLater()
    _IconFollower(target, name, role).paint()


class _IconFollower(QObject):
    """Recolours the icon of its target. It is a child of the target, and is deleted with it."""

    def __init__(self, target: QAbstractButton | QAction, name: str, role: str) -> None:
        super().__init__(target)
        self._name, self._role = name, role
        theme.notifier.changed.connect(self.paint)

    def paint(self) -> None:
        target = self.parent()
        assert isinstance(target, QAbstractButton | QAction)
        target.setIcon(icon(self._name, self._role))
