"""What a picture tells at a point, and the menu of the right button."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QAction, QContextMenuEvent, QHelpEvent
from PySide6.QtWidgets import QApplication, QMenu, QToolTip, QWidget


@pytest.fixture
def hover(monkeypatch) -> Callable[[QWidget, QPoint], str]:
    """Rest the pointer on a point of a widget. Returns the tooltip; empty where it is hidden."""
    told: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _at, text, _of: told.append(text))
    monkeypatch.setattr(QToolTip, "hideText", lambda: told.append(""))

    def at(widget: QWidget, point: QPoint) -> str:
        told.clear()
        event = QHelpEvent(QEvent.Type.ToolTip, point, widget.mapToGlobal(point))
        QApplication.sendEvent(widget, event)
        (text,) = told
        return text

    return at


@pytest.fixture
def menu_of(monkeypatch) -> Callable[[QWidget], dict[str, QAction]]:
    """Press the right button on the middle of a widget. Returns the menu's actions by text."""
    opened: list[QMenu] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, _at: opened.append(menu))

    def at(widget: QWidget) -> dict[str, QAction]:
        point = widget.rect().center()
        reason = QContextMenuEvent.Reason.Mouse
        QApplication.sendEvent(widget, QContextMenuEvent(reason, point, widget.mapToGlobal(point)))
        (menu,) = opened
        return {action.text(): action for action in menu.actions() if action.text()}

    return at
