"""File > Export: a window beside the main one, which stays usable."""

from __future__ import annotations

from PySide6.QtWidgets import QDialog, QWidget

from widgets import make
from widgets.exporting.export_view import ExportView


class ExportDialog(QDialog):
    """Esc hides it; an export that runs goes on."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("export_dialog")
        self.setWindowTitle("Export")
        self.resize(920, 680)
        self.view = ExportView()
        make.column(self.view, on=self)

    def open_beside(self) -> None:
        self.show()
        self.raise_()
        self.activateWindow()
        self.view.formats.setFocus()
