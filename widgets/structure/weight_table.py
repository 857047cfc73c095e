"""The table of parameters and buffers, with a search over it."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from engine.protocol import InitialValues, StructureSnapshot, WeightRow
from widgets import make
from widgets.sorting import let_sort
from widgets.structure.module_tree import ROW_HEIGHT
from widgets.structure.sparkline import Sparkline
from widgets.structure.weights_model import (
    COLUMNS,
    COUNT,
    DTYPE,
    GRADIENT,
    HISTOGRAM,
    KIND,
    MEAN,
    NAME,
    OPTIMIZER,
    ROW_ROLE,
    SHAPE,
    SHARED,
    SIZE,
    STD,
    TRAINABLE,
    UPDATE,
    WeightFilter,
    WeightsModel,
)
from widgets.theme import GRID

_WIDTHS = (168, 80, 80, 80, 80, 72, 72, 72, 72, 72, 72, 64, 80, 120)
_WIDEST = 280
_NOT_OF_A_RUN = (COUNT, SIZE, DTYPE, KIND)
"""Columns that no step changes."""
_FIRST_OF_A_RUN = (NAME, GRADIENT, UPDATE, OPTIMIZER, TRAINABLE, MEAN, STD, SHAPE)
_NARROW, _DIGITS = 48, 3
"""The least width of these columns in pixels, and the digits of their numbers: the table stands
beside plots."""


class WeightTable(QWidget):
    """`rows_chosen()` when the selected rows have changed; `chosen` has them. `of_run`: it
    stands beside the plots of a run, with only the columns that steps change."""

    rows_chosen = Signal()

    def __init__(self, parent: QWidget | None = None, *, of_run: bool = False) -> None:
        super().__init__(parent)
        self._of_run = of_run
        self.model = WeightsModel(self, _DIGITS if of_run else None)
        self.filter = WeightFilter(self)
        self.filter.setSourceModel(self.model)
        self.search = make.field(
            "weights_search",
            "Search parameters and buffers",
            "Show only the rows whose name, shape, dtype or kind holds this text.",
            placeholder="Search parameters and buffers…",
        )
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self.filter.search)
        self._widths: list[int] = list(_WIDTHS)
        self.table = self._make_table()
        if of_run:
            self._arrange_for_run()
        self.count = make.label("", "muted", "weights_count")
        self.copy_button = make.tool_button(
            "weights_copy",
            "mdi6.content-copy",
            "Copy the selected rows, or all, with tabs between their columns (Ctrl+C in the"
            " table).",
            self.copy,
            accessible="Copy the table",
        )
        self.empty = make.empty("This module has no parameter and no buffer.", "weights_empty")
        top = make.row((self.search, 1), self.count, self.copy_button, gap=GRID // 2)
        parts = (top, (self.empty, 1), (self.table, 1))
        right = 0 if of_run else GRID
        make.column(*parts, on=self, gap=GRID // 2, margins=(GRID, 0, right, 0))
        for changed in (self.filter.layoutChanged, self.filter.modelReset):
            changed.connect(self._show_count)
        self._show_count()

    def _make_table(self) -> QTableView:
        table = make.named(QTableView(), "weights_table", "Parameters and buffers")
        table.setModel(self.filter)
        table.setItemDelegateForColumn(HISTOGRAM, Sparkline(table))
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        table.setShowGrid(False)
        table.setWordWrap(False)
        table.setTabKeyNavigation(False)
        table.verticalHeader().hide()
        table.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        table.horizontalHeader().setHighlightSections(False)
        let_sort(table, _WIDTHS, self.copy)
        table.selectionModel().selectionChanged.connect(self.rows_chosen)
        return table

    def _arrange_for_run(self) -> None:
        header = self.table.horizontalHeader()
        for column in _NOT_OF_A_RUN:
            header.setSectionHidden(column, True)
        for place, column in enumerate(_FIRST_OF_A_RUN):
            self._widths[column] = _NARROW
            header.moveSection(header.visualIndex(column), place)
            header.resizeSection(column, _NARROW)

    @property
    def chosen(self) -> tuple[WeightRow, ...]:
        """The selected rows, in the order of the structure."""
        rows = {index.row() for index in self.table.selectionModel().selectedRows()}
        names = {self.filter.index(row, NAME).data(ROW_ROLE).name for row in rows}
        return tuple(row for row in self.model.rows if row.name in names)

    def choose(self, name: str) -> None:
        """Select the row of a parameter or buffer alone, if it is shown; scrolls only while the
        table does not have the focus."""
        for row in range(self.filter.rowCount()):
            index = self.filter.index(row, NAME)
            if index.data(ROW_ROLE).name == name:
                self.table.setAutoScroll(not self.table.hasFocus())
                self.table.selectRow(row)
                self.table.setAutoScroll(True)
                return

    def show_structure(self, whole: StructureSnapshot) -> None:
        self.model.show_structure(whole)
        self.table.setColumnHidden(OPTIMIZER, not whole.optimizers)
        if self._of_run:
            is_usual = all(row.trainable or row.kind == "buffer" for row in whole.weights)
            self.table.setColumnHidden(TRAINABLE, is_usual)
        self.table.setColumnHidden(UPDATE, all(row.update is None for row in whole.weights))
        self.table.setColumnHidden(SHARED, not any(row.shared_with for row in whole.weights))
        self._make_room()

    def show_module(self, path: str) -> None:
        """Show only what is inside this module, and select nothing."""
        self.table.clearSelection()
        self.filter.show_module(path)

    def show_preview(self, preview: Mapping[str, InitialValues]) -> None:
        self.model.show_preview(preview)
        self._make_room()

    def copy(self) -> None:
        """Copy the selected rows, or all that are shown."""
        chosen = {index.row() for index in self.table.selectionModel().selectedRows()}
        lines = []
        for row in sorted(chosen) or range(self.filter.rowCount()):
            cells = (self.filter.index(row, column).data() for column in range(len(COLUMNS)))
            lines.append("\t".join(cells))
        QGuiApplication.clipboard().setText("\n".join(lines))

    def _make_room(self) -> None:
        """Make columns as wide as their texts, up to _WIDEST. Those that a run changes all the time
        do not become narrower."""
        narrow = (OPTIMIZER, TRAINABLE) if self._of_run else ()
        for column in (NAME, SHAPE, MEAN, STD, GRADIENT, UPDATE, *narrow):
            texts = self.table.sizeHintForColumn(column) + (GRID // 2 if self._of_run else GRID)
            title = self._width_of_title(column) if self._of_run else 0
            wanted = min(max(texts, title), _WIDEST)
            least = self._widths[column]
            if column in (GRADIENT, UPDATE):
                least = max(least, self.table.columnWidth(column))
            self.table.setColumnWidth(column, max(least, wanted))

    def _width_of_title(self, column: int) -> int:
        words = COLUMNS[column].title
        return self.table.horizontalHeader().fontMetrics().horizontalAdvance(words) + GRID

    def _show_count(self) -> None:
        shown, known = self.filter.rowCount(), len(self.model.rows)
        self.count.setText(f"{shown:,} of {known:,}" if shown != known else f"{known:,}")
        self.table.setVisible(shown > 0)
        self.empty.setVisible(shown == 0)
        self.empty.setText(
            "Nothing has this text."
            if self.search.text()
            else "This module has no parameter and no buffer."
        )


assert len(_WIDTHS) == len(COLUMNS)
