"""A Python file that is run cell by cell."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QWidget

from engine.project.cells import FileCell, split_cells
from widgets import theme
from widgets.icons import set_icon


class FileStrip(QFrame):
    """Stands above the console's input while a file is open: which cell is next, and buttons to
    step through them. `cell_shown(FileCell)` tells the cell that should stand in the input."""

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
        self._title = QLabel(self)
        self._title.setObjectName("console_file_title")
        self._place = QLabel(self)
        self._place.setObjectName("console_file_place")
        self._place.setProperty("role", "muted")
        self._back = self._button(
            "back", "mdi6.chevron-left", "Previous cell", "Show the cell before, without running."
        )
        self._skip = self._button(
            "skip", "mdi6.chevron-right", "Next cell", "Show the next cell, without running."
        )
        self._run = self._button(
            "run",
            "mdi6.play-outline",
            "Run this cell",
            "Run the cell that stands below, and go on to the next (Shift+Enter there).",
        )
        self._rest = self._button(
            "rest",
            "mdi6.fast-forward-outline",
            "Run from here",
            "Run this cell and all after it, one by one; the first that fails ends it.",
        )
        self._close = self._button(
            "close", "mdi6.close", "Close the file", "Close the file. Its variables stay."
        )
        layout = QHBoxLayout(self)
        layout.setContentsMargins(theme.GRID, 2, theme.GRID // 2, 2)
        layout.setSpacing(theme.GRID // 2)
        layout.addWidget(self._title)
        layout.addWidget(self._place)
        layout.addStretch(1)
        for button in (self._back, self._skip, self._run, self._rest, self._close):
            layout.addWidget(button)
        self._back.clicked.connect(lambda: self.show_cell(self.position - 1))
        self._skip.clicked.connect(lambda: self.show_cell(self.position + 1))
        self._run.clicked.connect(self.run_next_requested)
        self._rest.clicked.connect(self.run_rest_requested)
        self._close.clicked.connect(self.close_file)
        self.hide()

    def open_file(self, path: str, text: str) -> bool:
        """Show the first cell of the file; False when there is nothing in it to run."""
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
        """The cell that stands below; None when no file is open or all are done."""
        return self.cells[self.position] if self.position < len(self.cells) else None

    def show_cell(self, position: int) -> None:
        """Go to a cell; the place after the last is the end."""
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

    def _button(self, name: str, icon: str, text: str, hint: str) -> QToolButton:
        button = QToolButton(self)
        button.setObjectName(f"console_file_{name}")
        button.setAutoRaise(True)
        button.setToolTip(hint)
        button.setAccessibleName(text)
        set_icon(button, icon)
        return button
