"""The window as a person uses it: opened, its dialogs answered, its widgets clicked and typed into.

The flows and the tour share these; a gesture that a user could not make is an AssertionError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QDeadlineTimer, QEventLoop, QPoint, QPointF, QSettings, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from app.application import Application, build
from app.processes.engine_link import EngineLink
from app.processes.link import Link
from app.settings import Settings
from app.window.dialogs import Dialogs, UnsavedAnswer

PATIENCE_S = 120.0
LEFT, NO_MODIFIER = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
_DRAG_MOVES = 8

W = TypeVar("W", bound=QWidget)


class Answers(Dialogs):
    """Answers the dialogs in place of a person; whoever opens the window sets the answers."""

    def __init__(self) -> None:
        super().__init__(native=False)
        self.open, self.save = "", ""
        self.leave: UnsavedAnswer = "discard"

    def open_path(self, *_args) -> str:
        return self.open

    def save_path(self, *_args) -> str:
        return self.save

    def unsaved(self, *_args) -> UnsavedAnswer:
        return self.leave

    def confirm(self, *_args) -> bool:
        return True


@contextmanager
def started(link: type[Link], answers: Answers, folder: Path) -> Iterator[Application]:
    """The program, shown and started; its settings and recovery files are in `folder`."""
    settings = Settings(QSettings(str(folder / "settings.ini"), QSettings.Format.IniFormat))
    application = build(link, answers, settings, folder / "recovery")
    application.window.show()
    application.start()
    try:
        yield application
    finally:
        application.window.close()
        if isinstance(application.bench.link, EngineLink):
            application.bench.link.wait_closed()
        application.window.deleteLater()
        application.deleteLater()


# -- mouse -----------------------------------------------------------------------------------------


def click(widget: QWidget | None, at: QPoint | None = None) -> None:
    """Click a widget that can be clicked, in its middle or `at` a point of it."""
    assert widget is not None and widget.isVisible(), f"{_name(widget)} is not visible"
    assert widget.isEnabled(), f"{_name(widget)} is disabled"
    QTest.mouseClick(widget, LEFT, NO_MODIFIER, at or widget.rect().center())
    settle()


def find(parent: QWidget, kind: type[W], name: str) -> W:
    """The visible child of this type and object name."""
    shown = [child for child in parent.findChildren(kind, name) if child.isVisible()]
    assert shown, f"nothing called “{name}” is visible"
    return shown[0]


def click_button(parent: QWidget, name: str) -> None:
    """Click the visible button of this object name."""
    click(find(parent, QAbstractButton, name))


def drag(start: QWidget, start_at: QPoint, end: QWidget, end_at: QPoint) -> None:
    """Press at `start_at`, move in steps, release at `end_at`, each in its widget's coordinates. As
    on a desktop, the pressed widget receives all mouse events until the release."""
    goal = start.mapFromGlobal(end.mapToGlobal(end_at))
    QTest.mousePress(start, LEFT, NO_MODIFIER, start_at)
    for move in range(1, _DRAG_MOVES + 1):
        part = QPointF(goal - start_at) * (move / _DRAG_MOVES)
        QTest.mouseMove(start, start_at + part.toPoint())
    QTest.mouseRelease(start, LEFT, NO_MODIFIER, goal)
    settle()


def _name(widget: QWidget | None) -> str:
    return f"“{widget.objectName() or type(widget).__name__}”" if widget else "what is clicked"


# -- keyboard --------------------------------------------------------------------------------------


def press_key(widget: QWidget, key: Qt.Key, modifier: Qt.KeyboardModifier = NO_MODIFIER) -> None:
    """Press a key in a widget."""
    QTest.keyClick(widget, key, modifier)
    settle()


def type_text(field: QWidget, text: str) -> None:
    """Type text at the cursor of a field."""
    QTest.keyClicks(field, text)
    settle()


def write(field: QWidget, text: str) -> None:
    """Click into a field, replace its text, and press Enter."""
    click(field)
    QTest.keySequence(field, "Ctrl+A")
    type_text(field, text)
    press_key(field, Qt.Key.Key_Return)


# -- waiting ---------------------------------------------------------------------------------------


def settle() -> None:
    """Process the window's pending events."""
    QApplication.processEvents()


def until(condition: Callable[[], object], what: str) -> None:
    """Process events until `condition` holds."""
    deadline = QDeadlineTimer(int(PATIENCE_S * 1000))
    clock = QTimer(interval=10)  # wakes the event loop to look again
    clock.start()
    while not condition():
        assert not deadline.hasExpired(), f"waited {PATIENCE_S:g} s in vain for {what}"
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
