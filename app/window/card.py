"""A card over the window, at the bottom right, until the user closes it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from widgets import make
from widgets.theme import GRID

_WIDTH = 640


class Card(QFrame):
    """`head` has the title and the button that closes the card, as Esc does."""

    def __init__(self, name: str, close: str, parent: QWidget) -> None:
        """`name` begins the names of the controls; `close` says what closing does."""
        super().__init__(parent)
        self._area = parent
        self.setObjectName(f"{name}_panel")
        self.setProperty("role", "card")
        self.setFixedWidth(_WIDTH)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.title = make.label("", "heading", f"{name}_title")
        button = make.tool_button(f"{name}_close", "mdi6.close", "Close (Esc).", self.hide)
        button.setAccessibleName(close)
        self.head: QHBoxLayout = make.row((self.title, 1), button, gap=-1)
        parent.installEventFilter(self)
        self.hide()

    def show_card(self) -> None:
        """Show the card in its place, in front."""
        self.adjustSize()
        self._place()
        self.show()
        self.raise_()
        self.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._place()
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.hide()
        else:
            super().keyPressEvent(event)

    def _place(self) -> None:
        area = self._area.rect()
        self.move(area.width() - self.width() - 3 * GRID, area.height() - self.height() - 6 * GRID)
