"""The window as it is at first: in its theme, and where it was when it was closed."""

from __future__ import annotations

from PySide6.QtCore import QMargins, QRect, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from app.settings import Settings, ThemeChoice
from app.window.main_window import MainWindow
from widgets import theme

_FRAME = QMargins(8, 32, 8, 8)
"""Room for the frame and the title that the desktop draws around the window."""


def make_window(settings: Settings) -> MainWindow:
    apply_theme(settings.theme)
    window = MainWindow()
    geometry = settings.bytes("geometry")
    if not geometry.isEmpty():
        window.restoreGeometry(geometry)
    return window


def apply_theme(choice: ThemeChoice) -> None:
    """Set the application's theme; `system` means the theme of the desktop."""
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    dark = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
    wanted = {"light": theme.LIGHT, "dark": theme.DARK}.get(
        choice, theme.DARK if dark else theme.LIGHT
    )
    theme.apply(application, wanted)


def fit_screen(window: MainWindow, free: QRect) -> None:
    """Bring the window, with its frame, inside the free area of its screen. It becomes smaller only
    if it must."""
    room = free.size().shrunkBy(_FRAME)
    window.resize(window.size().boundedTo(room))
    box = QRect(window.pos(), window.size().grownBy(_FRAME))
    if not free.contains(box):
        box.moveCenter(free.center())
        window.move(box.topLeft())
