"""The parameters of what is trained, beside the plots of the run."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from engine.protocol import StructureSnapshot
from widgets import make
from widgets.structure.weight_table import WeightTable
from widgets.theme import GRID
from widgets.training.element_view import ElementView

WIDTH = 250
"""The least width in pixels, so that no number of an element is cut."""


class ParameterPane(QStackedWidget):
    """`chosen(name)`: the reader has selected one row, whose `element` is below the table.
    `came_in_sight()`: the pane is shown."""

    chosen = Signal(str)
    came_in_sight = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "train_parameters", "Parameters of what is trained")
        self.setMinimumWidth(WIDTH)
        self.table = WeightTable(of_run=True)
        self.trouble = make.empty("", "train_parameters_trouble")
        self._is_told = False  # true while the code, not the reader, selects
        self.addWidget(self.trouble)
        self.element = ElementView()
        parts = (self.table, self.element)
        both = make.splitter(*parts, sizes=(200, 400), shares=(1, 2), upright=True)
        self._hint = make.label(
            "Choose a row to see what the optimizer does to it.",
            "muted",
            "train_parameters_hint",
            wrap=True,
        )
        self._hint.setContentsMargins(GRID, 0, GRID, GRID)
        self.addWidget(make.page((both, 1), self._hint, margins=(0, GRID, 0, 0)))
        self.table.rows_chosen.connect(self._tell)
        self.show_trouble("The parameters are being read.")

    def show_parameters(self, whole: StructureSnapshot) -> None:
        """Show the parameters. What is selected stays selected, by name."""
        self._is_told = True
        self.table.show_structure(whole)
        self._is_told = False
        if all(row.name != self.element.name for row in whole.weights):
            self._choose("")
        self.setCurrentIndex(1)

    def show_trouble(self, text: str) -> None:
        """Say why there are no parameters."""
        self.trouble.setText(text)
        self.setCurrentIndex(0)

    def show_chosen(self, name: str) -> None:
        """Select the row of a parameter that another view has chosen; emits nothing."""
        self._is_told = True
        self.table.choose(name)
        self._is_told = False

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.came_in_sight.emit()

    def _tell(self) -> None:
        chosen = self.table.chosen
        if len(chosen) != 1:
            return
        self._choose(chosen[0].name)
        if not self._is_told:
            self.chosen.emit(chosen[0].name)

    def _choose(self, name: str) -> None:
        self.element.choose(name)
        self._hint.setVisible(not name)
