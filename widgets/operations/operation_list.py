"""The operations to pick from, in groups."""

from __future__ import annotations

from PySide6.QtCore import QItemSelectionModel, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QWidget

from widgets import make
from widgets.operations.operation_table import GROUPS, Operation
from widgets.theme import GRID, mono_font


class OperationList(QListWidget):
    """`picked(Operation)` is emitted when the user chooses an operation by mouse or arrow keys,
    also if it is the current one."""

    picked = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        tip = "Pick an operation: its line is written for the selected tensor."
        make.named(self, "operation_list", "Operations", tip)
        self.setFixedWidth(20 * GRID)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        bold = QFont(self.font())
        bold.setBold(True)
        for group, operations in GROUPS.items():
            heading = QListWidgetItem(group, self)
            heading.setFlags(Qt.ItemFlag.NoItemFlags)
            heading.setFont(bold)
            for operation in operations:
                item = QListWidgetItem(f" {operation.name}", self)
                item.setFont(mono_font())
                item.setToolTip(f"{operation.tip}.")
                item.setData(Qt.ItemDataRole.UserRole, operation)
        self.itemSelectionChanged.connect(self._tell)
        self.itemClicked.connect(self._tell)

    def item_of(self, name: str) -> QListWidgetItem:
        """The item of an operation, by its name. Raises KeyError for an unknown one."""
        for row in range(self.count()):
            operation = self.item(row).data(Qt.ItemDataRole.UserRole)
            if operation is not None and operation.name == name:
                return self.item(row)
        raise KeyError(name)

    def let_go(self) -> None:
        """Clear the selection, because the line is no longer that of the picked operation."""
        with QSignalBlocker(self):
            self.setCurrentRow(-1, QItemSelectionModel.SelectionFlag.Clear)

    def _tell(self) -> None:
        for item in self.selectedItems():
            operation = item.data(Qt.ItemDataRole.UserRole)
            assert isinstance(operation, Operation)
            self.picked.emit(operation)
