"""The parameters with their `.grad` during backward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QAction, QColor, QFocusEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QTableWidgetItem,
)

from engine.protocol import ParameterGradient
from widgets import make, theme
from widgets.table import ReadTable
from widgets.text import format_number, format_shape
from widgets.values.value_card import bad_numbers

_COLUMNS = (
    ("", "● backward has reached this parameter, ✕ it gets no gradient in this pass"),
    ("parameter", "Name in the state_dict"),
    ("shape", "Shape of the parameter and of its gradient"),
    ("‖grad‖", "2-norm of .grad: how much the loss depends on this parameter"),
    ("difference", "Largest absolute difference from what loss.backward() gives"),
)

MISSING: Mapping[str, tuple[str, str]] = {
    "not_required": ("frozen", "Its requires_grad is False: autograd does not follow it"),
    "late": ("too late", "It did not require grad yet when it was used"),
    "cut": ("cut off", "A detach() or no_grad stands between it and the root"),
    "no_path": ("not used", "The graph has no path to it: the root was computed without it"),
    "not_yet": ("None came", "The graph has a path to it, and a function on it gave None"),
}
"""Why a pass gives a parameter no gradient: in the row, and when the row is pointed at."""


class GradientTable(ReadTable):
    """One row per parameter; choosing a row asks for its gradient."""

    inspect_requested = Signal(str, str)
    """("gradient", parameter name) if it has a gradient, else ("parameter", name)"""
    opened = Signal(str)
    """Asks for the graph of this parameter's gradient, made with create_graph."""

    def __init__(self) -> None:
        super().__init__("gradient_table", "Parameters and their gradients", _COLUMNS)
        self._gradients: tuple[ParameterGradient, ...] = ()
        self._more = 0
        self._differences: Mapping[str, float] = {}
        self._rows: list[tuple[ParameterGradient, float | None, theme.Theme]] = []
        self._changed = False
        self.setShowGrid(False)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setTabKeyNavigation(False)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setHighlightSections(False)
        self.setColumnHidden(4, True)
        self.currentCellChanged.connect(self._on_cell)
        self._open = QAction("Step through this gradient's own graph", self)
        self._open.setObjectName("gradient_open")
        self._open.setToolTip("Second derivatives: needs a pass with create_graph (see Options)")
        self._open.triggered.connect(self._on_open)
        self.addAction(self._open)
        make.give_menu(self)
        self._has_graphs = False
        theme.notifier.changed.connect(self._fill)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Clear the selection: Qt would select the first row when Tab enters the table."""
        if self.currentRow() >= 0:
            super().focusInEvent(event)
            return
        with QSignalBlocker(self):
            super().focusInEvent(event)
            self.selectionModel().clearCurrentIndex()

    def show_gradients(
        self, gradients: Sequence[ParameterGradient], more: int = 0, has_graphs: bool = False
    ) -> None:
        """Show the gradients. `more` is the number left out; `has_graphs` says that they were made
        with create_graph."""
        self._gradients, self._more, self._has_graphs = tuple(gradients), more, has_graphs
        self._differences = {}
        self._fill()

    def show_chosen(self, name: str | None) -> None:
        """Select the row of a parameter that another view has chosen; None leaves the rows as they
        are. Asks for nothing, and scrolls only while the table does not have the focus."""
        rows = [row for row, each in enumerate(self._gradients) if each.name == name]
        if not rows or rows[0] == self.currentRow():
            return
        with QSignalBlocker(self):
            self.setAutoScroll(not self.hasFocus())
            self.setCurrentCell(rows[0], 1)
            self.setAutoScroll(True)
        self._show_open()

    def choose(self, name: str) -> None:
        """Select the row of a parameter as the reader would: its gradient is asked for again."""
        with QSignalBlocker(self):
            self.setCurrentCell(-1, -1)
        for row, each in enumerate(self._gradients):
            if each.name == name:
                self.setCurrentCell(row, 1)

    def show_differences(self, differences: Mapping[str, float]) -> None:
        """Add the column that compares with `loss.backward()`."""
        self._differences = dict(differences)
        self._fill()

    def _fill(self) -> None:
        """Write only the rows that differ: a step changes one or two of hundreds."""
        colors = theme.current()
        shown, self._rows = self._rows, []
        self._changed = False
        self.blockSignals(True)
        self.setRowCount(len(self._gradients) + (self._more > 0))
        self.setColumnHidden(4, not self._differences)
        for row, parameter in enumerate(self._gradients):
            difference = self._differences.get(parameter.name)
            self._rows.append((parameter, difference, colors))
            if row < len(shown) and shown[row] == self._rows[row]:
                continue
            gradient = parameter.gradient
            bad = bad_numbers(gradient) if gradient else ""
            norm = bad or (format_number(gradient.norm) if gradient else "–")
            why, told = MISSING.get(parameter.missing or "", ("", ""))
            if why:
                norm = why if gradient is None else f"{norm} from before ({why})"
            texts = (
                "✕" if why else "●" if gradient else "○",
                f"{parameter.name} (retain_grad)" if parameter.retained else parameter.name,
                format_shape(parameter.shape),
                norm,
                format_number(difference) if difference is not None else "–",
            )
            for column, text in enumerate(texts):
                role = "text" if gradient else "muted"
                if why:
                    role = "warning" if column in (0, 3) else "muted"
                elif column == 0 and gradient:
                    role = "gradient"
                elif column == 3 and bad:
                    role = "error"
                tip = told if column in (0, 3) else ""
                self._show_cell(row, column, text, colors.color(role), tip)
        if self._more:
            words = f"and {self._more:,} more, not shown"
            for column in range(self.columnCount()):
                text = words if column == 1 else ""
                self._show_cell(len(self._gradients), column, text, colors.color("muted"))
        self.blockSignals(False)
        if self._changed:
            self.resizeColumnsToContents()
        self._show_open()

    def _show_cell(self, row: int, column: int, text: str, color: QColor, tip: str = "") -> None:
        item = self.item(row, column)
        if item is None:
            item = QTableWidgetItem()
            self.setItem(row, column, item)
        if item.text() != text:
            item.setText(text)
            self._changed = True
        if item.toolTip() != (tip or text):
            item.setToolTip(tip or text)
        if item.foreground().color() != color or item.foreground().style() == Qt.BrushStyle.NoBrush:
            item.setForeground(color)

    def _show_open(self) -> None:
        row = self.currentRow()
        found = 0 <= row < len(self._gradients) and self._gradients[row].gradient is not None
        self._open.setEnabled(found and self._has_graphs)

    def _on_open(self) -> None:
        row = self.currentRow()
        if 0 <= row < len(self._gradients) and self._gradients[row].gradient is not None:
            self.opened.emit(self._gradients[row].name)

    def _on_cell(self, row: int, _column: int, before: int, _before_column: int) -> None:
        self._show_open()
        if not 0 <= row < len(self._gradients) or row == before:
            return
        parameter = self._gradients[row]
        of = "gradient" if parameter.gradient is not None else "parameter"
        self.inspect_requested.emit(of, parameter.name)
