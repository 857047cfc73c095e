"""File > Settings: a window beside the main one, which stays usable."""

from __future__ import annotations

from PySide6.QtWidgets import QDialog, QWidget

from widgets import make
from widgets.settings.engine_view import EngineView
from widgets.theme import GRID


class SettingsDialog(QDialog):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("settings_dialog")
        self.setWindowTitle("Settings")
        self.resize(80 * GRID, 48 * GRID)
        self.engine = EngineView()
        make.column(self.engine, on=self, margins=2 * GRID)

    def open_beside(self) -> None:
        self.show()
        self.raise_()
        self.activateWindow()
        self.engine.kind.setFocus()
