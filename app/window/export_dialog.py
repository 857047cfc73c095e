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
        self.side = make.combo(
            "export_side", "Machine of the file", "On which machine the file is written."
        )
        self._whose = make.label("Write to", of=self.side)
        row = make.row(self._whose, self.side, make.STRETCH, margins=(16, 16, 16, 0))
        make.column(row, (self.view, 1), on=self)
        self.show_machine("")

    def show_machine(self, machine: str) -> None:
        """Offer the engine's machine beside this one; with "", it is this one."""
        if machine != self.side.itemData(1):
            self.side.clear()
            make.add_choices(self.side, (("this machine", ""), (machine, machine)))
        for widget in (self._whose, self.side):
            widget.setVisible(bool(machine))

    def open_beside(self) -> None:
        self.show()
        self.raise_()
        self.activateWindow()
        self.view.formats.setFocus()
