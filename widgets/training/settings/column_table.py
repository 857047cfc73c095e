"""The columns of a table: role, type and figures of each."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from engine.project.document import Column, replace
from engine.protocol import ColumnFigures, DataSnapshot
from widgets import make
from widgets.text import format_number
from widgets.training.settings.choices import Choice, show_choice

_ROLES = (
    ("feature", "feature", "The model gets it"),
    ("target", "target", "What the model has to predict"),
    ("ignore", "ignore", "Not used"),
)
_TYPES = (
    ("number", "number", "As it is"),
    ("category", "category", "Each text, or each number, becomes a column of 0 and 1"),
)
_HEADS = ("column", "role", "type", "range", "mean", "std")
_MAX_HEIGHT = 240


class ColumnTable(QTableWidget):
    """A row for each column of a file, with choices; without a file, one for each feature."""

    column_edited = Signal(str, object)
    """(name, the new Column)"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(0, len(_HEADS), parent)
        make.named(self, "data_columns", "Columns of the table", "Mean and std are over training.")
        self.setHorizontalHeaderLabels(_HEADS)
        self.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QTableWidget.SelectionMode.NoSelection)
        self.verticalHeader().hide()
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.setMaximumHeight(_MAX_HEIGHT)
        make.give_menu(self)

    def show_data(self, data: DataSnapshot) -> None:
        """Hidden if the data is no table."""
        figures = {figure.name: figure for figure in data.columns}
        asked = [(each.name, each.column) for each in data.roles]
        rows = asked or [(name, None) for name in figures]
        self.setRowCount(0)
        self.setRowCount(len(rows))
        for row, (name, column) in enumerate(rows):
            self.setItem(row, 0, QTableWidgetItem(name))
            if column is not None:
                self.setCellWidget(row, 1, self._choice(name, column, "role", _ROLES))
                self.setCellWidget(row, 2, self._choice(name, column, "type", _TYPES))
            if name in figures:
                for place, text in enumerate(_texts(figures[name]), 3):
                    self.setItem(row, place, QTableWidgetItem(text))
        for place in (1, 2):
            self.setColumnHidden(place, not asked)
        self.setVisible(bool(rows))

    def _choice(self, name: str, column: Column, field: str, rows: tuple) -> Choice:
        box = make.named(Choice(), f"data_{field}", f"{field} of {name}", f"{field} of {name}")
        make.add_choices(box, rows)
        show_choice(box, getattr(column, field))
        box.activated.connect(
            lambda: self.column_edited.emit(name, replace(column, **{field: box.currentData()}))
        )
        return box


def _texts(figures: ColumnFigures) -> tuple[str, str, str]:
    low, high = format_number(figures.minimum, 3), format_number(figures.maximum, 3)
    return f"{low} to {high}", format_number(figures.mean, 3), format_number(figures.deviation, 3)
