"""Icons follow the theme, and every icon of the catalogue exists."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QAction, QColor, QImage
from PySide6.QtWidgets import QToolButton

from engine.project import catalogue
from widgets import theme
from widgets.icons import icon, set_icon


def main_color(of) -> str:
    """The colour of the icon's most opaque pixel."""
    image = of.icon().pixmap(32, 32).toImage().convertToFormat(QImage.Format.Format_ARGB32)
    pixels = (image.pixelColor(x, y) for x in range(32) for y in range(32))
    return QColor(max(pixels, key=QColor.alpha).rgb()).name()


@pytest.mark.parametrize("kind", [QToolButton, QAction])
def test_an_icon_follows_the_theme_and_dies_with_its_owner(qapp, kind):
    receivers = theme.notifier.receivers("2changed()")
    target = kind()
    set_icon(target, "mdi6.square", "text")
    set_icon(target, "mdi6.square", "accent")
    assert main_color(target) == theme.LIGHT.accent
    theme.apply(qapp, theme.DARK)
    assert main_color(target) == theme.DARK.accent
    del target
    assert theme.notifier.receivers("2changed()") == receivers
    theme.apply(qapp, theme.LIGHT)


def test_every_icon_of_the_catalogue_exists(qapp):
    for kind in catalogue.kinds().values():
        assert not icon(kind.icon).pixmap(16, 16).isNull(), kind.key
