"""A folder of another machine, and choosing a file or a folder of it."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Literal

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QTableWidgetItem

from widgets import make
from widgets.icons import icon
from widgets.table import ReadTable
from widgets.text import format_bytes
from widgets.theme import GRID

Wanted = Literal["file", "folder", "save"]
_TITLES = {"file": "Open", "folder": "Use this folder", "save": "Save here"}


class FolderView(QFrame):
    """`folder_wanted(path)`: show that folder. `chosen(path)`: the user has chosen a file, a folder
    or, to `save`, the path of a file to write."""

    folder_wanted = Signal(str)
    chosen = Signal(str)

    def __init__(self, machine: str, wanted: Wanted, name: str = "") -> None:
        super().__init__()
        self._wanted: Wanted = wanted
        self._folder = self._parent = ""
        self._is_folder: list[bool] = []
        whose = make.label(f"Files of {machine}, where the engine runs.", "muted", "whose_files")
        self.path = make.field(
            "folder_path",
            "Folder",
            f"A folder of {machine}; Enter shows it.",
            entered=lambda: self.folder_wanted.emit(self.path.text().strip()),
        )
        self.up = make.tool_button(
            "folder_up", "mdi6.arrow-up", "The folder above.", self._go_up, framed=True
        )
        self.table = ReadTable(
            "folder_entries",
            f"Files of {machine}",
            (("Name", "Enter or a double click opens it."), ("Size", "")),
        )
        self.table.itemActivated.connect(self._open)
        self.table.itemSelectionChanged.connect(self._show_selected)
        self.name = make.field(
            "file_name", "File name", "The name of the file.", placeholder="Name"
        )
        self.name.setText(name)
        self.name.setVisible(wanted != "folder")
        self.name.setReadOnly(wanted == "file")
        self.name.textChanged.connect(self._show_enabled)
        self.name.returnPressed.connect(self._choose)
        self.button = make.button("folder_choose", _TITLES[wanted], slot=self._choose, primary=True)
        self._note = make.paragraph("folder_note", "error")
        make.tell(self._note, "")
        make.column(
            whose,
            make.row(self.up, (self.path, 1)),
            (self.table, 1),
            self._note,
            make.row((self.name, 1), *(() if wanted != "folder" else (make.STRETCH,)), self.button),
            on=self,
            gap=GRID,
        )
        self._show_enabled()

    def show_folder(
        self, path: str, parent: str, entries: Sequence[tuple[str, bool, int]], left: int
    ) -> None:
        """Show a folder: (name, whether it is a folder, bytes) of each entry."""
        self._folder, self._parent = path, parent
        self.path.setText(path)
        self.up.setEnabled(bool(parent))
        self._is_folder = [is_folder for _, is_folder, _ in entries]
        self.table.setRowCount(len(entries))
        for row, (name, is_folder, size_bytes) in enumerate(entries):
            item = QTableWidgetItem(name)
            item.setIcon(icon("mdi6.folder-outline" if is_folder else "mdi6.file-outline"))
            self.table.setItem(row, 0, item)
            size = "" if is_folder else format_bytes(size_bytes)
            self.table.setItem(row, 1, QTableWidgetItem(size))
        self.table.clearSelection()
        make.set_role(self._note, "muted")
        make.tell(
            self._note, f"{left:,} more entries: type the path of the folder." if left else ""
        )
        self._show_enabled()

    def has(self, path: str) -> bool:
        """Whether the folder that is shown has such a file or folder."""
        folder, name = posixpath.split(path)
        rows = range(self.table.rowCount())
        return folder == self._folder.rstrip("/") and name in map(self._name_of, rows)

    def tell(self, error: str) -> None:
        """Say why a folder cannot be shown."""
        make.set_role(self._note, "error")
        make.tell(self._note, error)

    def _row(self) -> int:
        rows = self.table.selectionModel().selectedRows()
        return rows[0].row() if rows else -1

    def _name_of(self, row: int) -> str:
        item = self.table.item(row, 0)
        return item.text() if item is not None else ""

    def _go_up(self) -> None:
        if self._parent:
            self.folder_wanted.emit(self._parent)

    def _open(self) -> None:
        row = self._row()
        if row >= 0 and self._is_folder[row]:
            self.folder_wanted.emit(posixpath.join(self._folder, self._name_of(row)))
        elif row >= 0:
            self._choose()

    def _show_selected(self) -> None:
        row = self._row()
        if row >= 0 and not self._is_folder[row]:
            self.name.setText(self._name_of(row))
        elif self._wanted == "file":
            self.name.clear()
        self._show_enabled()

    def _show_enabled(self) -> None:
        has_name = self._wanted == "folder" or bool(self.name.text().strip())
        self.button.setEnabled(bool(self._folder) and has_name)

    def _choose(self) -> None:
        if not self.button.isEnabled():
            return
        row = self._row()
        name = self.name.text().strip()
        if self._wanted == "folder":
            name = self._name_of(row) if row >= 0 and self._is_folder[row] else ""
        self.chosen.emit(posixpath.join(self._folder, name) if name else self._folder)
