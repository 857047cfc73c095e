"""A line that opens and closes what is below it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton, QWidget

from widgets import make


def fold(name: str, text: str, tip: str, body: QWidget, *, accessible: str = "") -> QToolButton:
    """A button with an arrow: `body` is shown while it is checked. It is closed at first."""

    def show(is_open: bool) -> None:
        body.setVisible(is_open)
        button.setArrowType(Qt.ArrowType.DownArrow if is_open else Qt.ArrowType.RightArrow)

    button = make.tool_button(name, text=text, tip=tip, toggled=show, accessible=accessible)
    button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
    show(False)
    return button
