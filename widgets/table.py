"""A read-only table whose rows can be copied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QTableWidget,
    QTableWidgetItem,
)

from widgets import make
from widgets.theme import GRID, mono_font, sans_font

ROW_HEIGHT = 3 * GRID


class ReadTable(QTableWidget):
    """A read-only table; `columns` has the (title, tooltip) of each. Ctrl+C copies the selected
    rows as tab-separated text, or all rows if none is selected. A `tight` table has low rows and
    left-aligned titles, and its last column takes the width that is left."""

    def __init__(
        self,
        name: str,
        accessible: str,
        columns: Sequence[tuple[str, str]],
        *,
        tight: bool = True,
        mono: bool = False,
    ) -> None:
        super().__init__(0, len(columns))
        make.named(self, name, accessible)
        for column, (title, tip) in enumerate(columns):
            item = QTableWidgetItem(title)
            item.setToolTip(tip)
            self.setHorizontalHeaderItem(column, item)
        self.verticalHeader().hide()
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        make.shortcut(QKeySequence.StandardKey.Copy, self, self.copy)
        if mono:
            self.setFont(mono_font(9))
            self.horizontalHeader().setFont(sans_font(QGuiApplication.font().pointSizeF()))
        if tight:
            self._tighten()

    def _tighten(self) -> None:
        self.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        self.setWordWrap(False)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)

    def show_rows(self, rows: Iterable[Sequence[str]]) -> None:
        """Replace the rows."""
        self.setRowCount(0)
        for row in rows:
            self.add_row(row)

    def add_row(self, texts: Sequence[str], tips: Sequence[str] = ()) -> None:
        """Add a row. A cell without a tooltip in `tips` has its text as tooltip."""
        row = self.rowCount()
        self.insertRow(row)
        for column, text in enumerate(texts):
            item = QTableWidgetItem(text)
            item.setToolTip(tips[column] if column < len(tips) and tips[column] else text)
            self.setItem(row, column, item)

    def cell(self, row: int, column: int) -> QTableWidgetItem:
        """The item of a cell. Raises IndexError if there is no such cell."""
        item = self.item(row, column)
        if item is None:
            raise IndexError(f"no cell {row}, {column}")
        return item

    def rows(self) -> list[list[str]]:
        """The texts of all cells."""
        columns = range(self.columnCount())
        return [
            [self.cell(row, column).text() for column in columns] for row in range(self.rowCount())
        ]

    def copy(self) -> None:
        """Put the selected rows on the clipboard, or all rows if none is selected."""
        chosen = sorted({index.row() for index in self.selectedIndexes()})
        rows = self.rows()
        lines = [rows[row] for row in chosen] if chosen else rows
        QGuiApplication.clipboard().setText("\n".join("\t".join(line) for line in lines))
