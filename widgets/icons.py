"""Icons by name, in the theme's colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import qtawesome
from PySide6.QtCore import QObject
from PySide6.QtGui import QIcon

from . import theme


class _HasIcon(Protocol):
    def setIcon(self, icon: QIcon, /) -> object: ...


def icon(name: str, role: str = "text") -> QIcon:
    """The icon `name` (`"mdi6.plus"`) in the colour of a theme role; greyed out when disabled."""
    colors = theme.current()
    return qtawesome.icon(name, color=colors.color(role), color_disabled=colors.color("muted", 110))


def set_icon(target: _HasIcon, name: str, role: str = "text") -> None:
    """Give a button or an action an icon that follows the theme for as long as it lives."""
    target.setIcon(icon(name, role))
    if isinstance(target, QObject):
        follow_theme(target, lambda: target.setIcon(icon(name, role)))


def follow_theme(owner: QObject, repaint: Callable[[], object]) -> None:
    """Call `repaint` after each change of theme until `owner` is destroyed."""
    connection = theme.notifier.changed.connect(repaint)
    owner.destroyed.connect(lambda: theme.notifier.changed.disconnect(connection))
