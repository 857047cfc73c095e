"""Icons follow the theme, and every icon of the catalogue exists."""

from __future__ import annotations

import pytest
import qtawesome
from PySide6.QtCore import QSize
from PySide6.QtGui import QAction, QColor, QIcon, QImage
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


@pytest.mark.parametrize("name", ["mdi6.plus", "mdi6.file-outline", "mdi6.fit-to-screen-outline"])
@pytest.mark.parametrize("size", [16, 20, 33, 64])
def test_an_icon_is_painted_as_qtawesome_paints_it(qapp, name, size):
    modes = (QIcon.Mode.Normal, QIcon.Mode.Active, QIcon.Mode.Disabled, QIcon.Mode.Selected)
    colors = theme.current()
    theirs = qtawesome.icon(
        name,
        color=colors.color("accent"),
        color_disabled=colors.color("muted", 110),
        color_selected=colors.color("on_accent"),
    )
    ours = icon(name, "accent", selected="on_accent")
    for mode in modes:
        pictures = [each.pixmap(QSize(size, size), mode).toImage() for each in (ours, theirs)]
        assert pictures[0] == pictures[1] and not is_empty(pictures[0])
    normal, selected = (ours.pixmap(QSize(size, size), mode).toImage() for mode in modes[::3])
    assert normal != selected


def is_empty(image: QImage) -> bool:
    blank = QImage(image.size(), image.format())
    blank.fill(0)
    return image == blank


def test_a_name_that_the_font_has_not_is_refused(qapp):
    with pytest.raises(KeyError):
        icon("mdi6.no-such-icon")
