"""Pictures that are copied look as on the screen, on a ground of their own."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication, QPainter
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from widgets import theme
from widgets.painted_widget import PaintedWidget


class Dot(PaintedWidget):
    def paint(self, painter: QPainter) -> None:
        painter.fillRect(0, 0, 10, 10, theme.current().color("accent"))


@pytest.mark.parametrize("shown", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_a_copied_picture_has_the_ground_of_the_theme(
    qapp: QApplication, qtbot: QtBot, shown: theme.Theme
) -> None:
    theme.apply(qapp, shown)
    dot = Dot()
    qtbot.addWidget(dot)
    dot.resize(40, 20)
    dot.show()
    menu = QMenu(dot)
    dot.fill_menu(menu)
    next(a for a in menu.actions() if a.text() == "Copy picture").trigger()
    image = QGuiApplication.clipboard().image()
    assert image.size().width() == 80, "twice the pixels of the screen"
    assert image.pixelColor(5, 5) == theme.current().color("accent")
    assert image.pixelColor(70, 30) == theme.current().color("surface")


def test_the_reason_for_an_empty_picture_is_painted(qtbot: QtBot) -> None:
    class Empty(PaintedWidget):
        def paint(self, painter: QPainter) -> None:
            self.paint_empty(painter, "Nothing yet")

    empty = Empty()
    qtbot.addWidget(empty)
    empty.resize(200, 40)
    image = empty.grab().toImage()
    ground = image.pixelColor(0, 0)
    shades = {image.pixelColor(x, y).name() for x in range(200) for y in range(40)}
    assert len(shades) > 1 and ground.name() in shades
