"""Icons by name, in the theme's colours."""

from __future__ import annotations

import qtawesome
from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QIcon
from PySide6.QtWidgets import QAbstractButton

from . import theme


def icon(name: str, role: str = "text") -> QIcon:
    """The icon `name` (`"mdi6.plus"`) in the colour of a theme role; grey when disabled."""
    colors = theme.current()
    return qtawesome.icon(name, color=colors.color(role), color_disabled=colors.color("muted", 110))


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
