"""A widget that is one picture. The screen and a copied or saved file show the same."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QContextMenuEvent, QFont, QPainter, QPaintEvent
from PySide6.QtWidgets import QMenu, QWidget

from widgets import make, theme
from widgets.save_picture import add_picture_actions


class PaintedWidget(QWidget):
    """A widget whose subclass paints it. It repaints when the theme changes, and its context menu
    copies and saves the picture."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.notifier.changed.connect(self.update)

    def paint(self, painter: QPainter) -> None:
        """Paint the widget's whole area, in its own coordinates."""
        raise NotImplementedError

    def paint_picture(self, painter: QPainter) -> None:
        """Paint what is copied or saved: as `paint`, on a background in the theme's colour."""
        painter.fillRect(self.rect(), theme.current().color("surface"))
        self.paint(painter)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self.paint(painter)
        painter.end()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = make.context_menu(self)
        self.fill_menu(menu)
        make.pop_up(menu, event.globalPos())

    def fill_menu(self, menu: QMenu) -> None:
        """Add actions that copy or save the picture."""
        add_picture_actions(menu, self, self.paint_picture)

    def paint_empty(self, painter: QPainter, text: str) -> None:
        """Paint a text in the middle, for when there is nothing to show."""
        painter.setPen(theme.current().color("muted"))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, text)


def set_small_font(painter: QPainter, font: QFont) -> None:
    """Set a font of 11 pixels, for labels of axes and legends."""
    small = QFont(font)
    small.setPixelSize(11)
    painter.setFont(small)
