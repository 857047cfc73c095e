"""The user's hand: real mouse and key events on the widgets of the real window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from PySide6.QtCore import QDeadlineTimer, QEventLoop, QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLineEdit, QMenu, QMenuBar, QWidget

PATIENCE_S = 120.0
_POLL_MS = 10
_DRAG_MOVES = 8


class TourFailure(Exception):
    """The window did not do what a user expects of it."""


class Hand:
    """What has not happened after PATIENCE_S is a TourFailure."""

    # -- mouse -----------------------------------------------------------------------------------

    def click(self, widget: QWidget, at: QPoint | None = None) -> None:
        """Click a widget, in its middle or `at` a point of it. Fails if a user could not click
        there."""
        if not widget.isVisible() or not widget.isEnabled():
            what = widget.objectName() or type(widget).__name__
            state = "disabled" if widget.isVisible() else "not visible"
            raise TourFailure(f"“{what}” cannot be clicked: it is {state}")
        QTest.mouseClick(
            widget,
            Qt.MouseButton.LeftButton,
            Qt.KeyboardModifier.NoModifier,
            at or widget.rect().center(),
        )
        self.settle()

    def drag(self, start: QWidget, start_at: QPoint, end: QWidget, end_at: QPoint) -> None:
        """Press at `start_at`, move in steps, release at `end_at`, each in its widget's
        coordinates. As on a desktop, the pressed widget receives all mouse events until the
        release."""
        left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        goal = start.mapFromGlobal(end.mapToGlobal(end_at))
        QTest.mousePress(start, left, none, start_at)
        for move in range(1, _DRAG_MOVES + 1):
            part = QPointF(goal - start_at) * (move / _DRAG_MOVES)
            QTest.mouseMove(start, start_at + part.toPoint())
        QTest.mouseRelease(start, left, none, goal)
        self.settle()

    def choose(self, bar: QMenuBar, action: QAction) -> None:
        """Open the menu of an action, and click the action."""
        title, menu = _menu_of(bar, action)
        QTest.mouseClick(
            bar,
            Qt.MouseButton.LeftButton,
            Qt.KeyboardModifier.NoModifier,
            bar.actionGeometry(title).center(),
        )
        self.until(menu.isVisible, f"the menu {title.text()} to open")
        self.click(menu, menu.actionGeometry(action).center())

    # -- keyboard --------------------------------------------------------------------------------

    def write(self, field: QWidget, text: str) -> None:
        """Click into a field, replace its text, and press Enter."""
        self.click(field)
        QTest.keySequence(field, "Ctrl+A")
        QTest.keyClicks(field, text)
        self.press(field, Qt.Key.Key_Return)

    def press(
        self,
        widget: QWidget,
        key: Qt.Key,
        modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier,
    ) -> None:
        QTest.keyClick(widget, key, modifier)
        self.settle()

    @contextmanager
    def answering_file_dialog(self, path: str) -> Iterator[None]:
        """Type `path` into the Qt file dialog that opens in this context, and press Enter."""
        answered = False

        def answer() -> None:
            nonlocal answered
            dialog = QApplication.activeModalWidget()
            if not isinstance(dialog, QFileDialog):
                return
            field = dialog.findChild(QLineEdit, "fileNameEdit")
            assert isinstance(field, QLineEdit)
            if field.text() != path:
                field.selectAll()
                QTest.keyClicks(field, path)
            # If a list of completions is open, Enter closes only that; the timer tries again.
            QTest.keyClick(field, Qt.Key.Key_Return)
            answered = True

        timer = QTimer(interval=_POLL_MS)
        timer.timeout.connect(answer)
        timer.start()
        try:
            yield
        finally:
            timer.stop()
        if not answered:
            raise TourFailure("no file dialog opened")

    # -- waiting ---------------------------------------------------------------------------------

    def settle(self) -> None:
        """Process the window's pending events."""
        QApplication.processEvents()

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Process events until `condition` holds."""
        deadline = QDeadlineTimer(int(PATIENCE_S * 1000))
        clock = QTimer(interval=_POLL_MS)  # wakes the event loop to look again
        clock.start()
        while not condition():
            if deadline.hasExpired():
                raise TourFailure(f"waited {PATIENCE_S:g} s in vain for {what}")
            QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)


def _menu_of(bar: QMenuBar, action: QAction) -> tuple[QAction, QMenu]:
    for title in bar.actions():
        menu = title.menu()
        if isinstance(menu, QMenu) and action in menu.actions():
            return title, menu
    raise TourFailure(f"no menu holds “{action.text()}”")
