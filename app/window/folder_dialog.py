"""The question for a file or a folder of the engine's machine, where that is another one."""

from __future__ import annotations

from PySide6.QtWidgets import QDialog, QWidget

from widgets import make
from widgets.folders.folder_view import FolderView, Wanted
from widgets.theme import GRID


class FolderDialog(QDialog):
    """`path` is what was chosen; empty if the user cancels."""

    def __init__(
        self, parent: QWidget, title: str, machine: str, wanted: Wanted, name: str = ""
    ) -> None:
        super().__init__(parent)
        self.setObjectName("folder_dialog")
        self.setWindowTitle(f"{title}: {machine}")
        self.resize(80 * GRID, 64 * GRID)
        self.path = ""
        self.view = FolderView(machine, wanted, name)
        self.view.chosen.connect(self._take)
        make.column(self.view, on=self, margins=2 * GRID)

    def _take(self, path: str) -> None:
        self.path = path
        self.accept()
