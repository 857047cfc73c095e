"""The bar of a Python file that is run cell by cell."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QToolButton, QWidget

from engine.project.cells import FileCell, split_cells
from widgets import make, theme


class FileStrip(QFrame):
    """A bar above the console's input while a file is open. It shows which cell is next, and has
    buttons to go through the cells. `cell_shown(FileCell)` is emitted with the cell to put into the
    input."""

    cell_shown = Signal(object)
    run_next_requested = Signal()
    run_rest_requested = Signal()
    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("console_file")
        self.path = ""
        self.cells: tuple[FileCell, ...] = ()
        self.position = 0
        self._title = make.label(name="console_file_title")
        self._place = make.label("", "muted", "console_file_place")
        self._back = self._button("back", "chevron-left", "Previous cell", self._show_previous)
        self._back.setToolTip("Show the cell before, without running.")
        self._skip = self._button("skip", "chevron-right", "Next cell", self._show_next)
        self._skip.setToolTip("Show the next cell, without running.")
        run, rest = self.run_next_requested, self.run_rest_requested
        self._run = self._button("run", "play-outline", "Run this cell", run)
        self._run.setToolTip("Run the cell below, then go to the next one (Shift+Enter).")
        self._rest = self._button("rest", "fast-forward-outline", "Run from here", rest)
        self._rest.setToolTip("Run this cell and all after it, up to the first that fails.")
        self._close = self._button("close", "close", "Close the file", self.close_file)
        self._close.setToolTip("Close the file. Its variables stay.")
        buttons = (self._back, self._skip, self._run, self._rest, self._close)
        half = theme.GRID // 2
        parts = (self._title, self._place, make.STRETCH, *buttons)
        make.row(*parts, on=self, gap=half, margins=(theme.GRID, 2, half, 2))
        self.hide()

    def open_file(self, path: str, text: str) -> bool:
        """Show the first cell of a file. Returns False if the file has no code."""
        cells = split_cells(text)
        if not cells:
            return False
        self.path, self.cells = path, cells
        self._title.setText(Path(path).name)
        self._title.setToolTip(path)
        self.show()
        self.show_cell(0)
        return True

    def close_file(self) -> None:
        self.path, self.cells, self.position = "", (), 0
        self.hide()
        self.closed.emit()

    @property
    def current(self) -> FileCell | None:
        """The cell in the input; None if no file is open or all cells are done."""
        return self.cells[self.position] if self.position < len(self.cells) else None

    def show_cell(self, position: int) -> None:
        """Go to cell number `position`, from 0; the number after the last is the end."""
        self.position = max(0, min(position, len(self.cells)))
        current = self.current
        if current is None:
            self._place.setText(f"all {len(self.cells)} cells done")
        else:
            self._place.setText(
                f"cell {self.position + 1} of {len(self.cells)}, from line {current.first_line}"
            )
        self._back.setEnabled(self.position > 0)
        for button in (self._skip, self._run, self._rest):
            button.setEnabled(current is not None)
        self.cell_shown.emit(current)

    def _button(self, name: str, icon: str, what: str, slot: make.Slot) -> QToolButton:
        return make.tool_button(f"console_file_{name}", f"mdi6.{icon}", slot=slot, accessible=what)

    def _show_previous(self) -> None:
        self.show_cell(self.position - 1)

    def _show_next(self) -> None:
        self.show_cell(self.position + 1)
