"""The table of runs: one row each, with a box to tick and a note to write."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QItemSelectionModel, Qt, Signal
from PySide6.QtGui import QBrush, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidgetItem

from engine.protocol import RunRow
from widgets import make, theme
from widgets.runs.run_words import sweep_words, texts, tips
from widgets.table import ReadTable

_COLUMNS = (
    ("run", "When the run began. A ticked run is drawn over the plots."),
    ("subject", "What was trained"),
    ("state", "How the run ended; one that is cut off has lost its process"),
    ("steps", "Optimizer steps done"),
    ("loss", "Training loss of the last epoch; before the first, of the last step"),
    ("validation", "Validation loss of the last epoch"),
    ("accuracy", "Validation accuracy of the last epoch"),
    ("note", "Your own words: double click, or F2"),
)
RUN, STATE, NOTE = 0, 2, 7
RUN_WIDTH = 160
_NUMBERS = range(3, 7)


class RunTable(ReadTable):
    """`ticked_changed()`: other runs are to be drawn over the plots. `noted(folder, note)`: the
    user has written a note. `opened(folder)`: Enter, or a double click on anything but the note.
    `delete_asked()`: the Delete key.

    The trials of a sweep stand together under a head, which Enter or a double click folds: then
    only the best one is shown."""

    ticked_changed = Signal()
    noted = Signal(str, str)
    opened = Signal(str)
    delete_asked = Signal()

    def __init__(self) -> None:
        super().__init__("runs_table", "Runs", _COLUMNS)
        self.rows: tuple[RunRow, ...] = ()
        self._lines: list[RunRow | str] = []  # of each line its run, or its sweep
        self._folded: set[str] = set()
        self.read_s = 0.0
        """When the rows were read, in seconds since 1970."""
        self.ticked: tuple[str, ...] = ()
        """The folders of the runs to draw over the plots, in the order of ticking."""
        self._is_told = False  # while the program fills the table
        self.setEditTriggers(
            QAbstractItemView.EditTrigger.DoubleClicked
            | QAbstractItemView.EditTrigger.EditKeyPressed
        )
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        header = self.horizontalHeader()
        header.setSectionResizeMode(RUN, QHeaderView.ResizeMode.Interactive)
        header.resizeSection(RUN, RUN_WIDTH)  # the width by contents forgets the box to tick
        self.itemChanged.connect(self._take)
        self.cellDoubleClicked.connect(self._open)
        make.shortcut(Qt.Key.Key_Return, self, lambda: self._open(self.currentRow(), RUN))
        make.shortcut(QKeySequence.StandardKey.Delete, self, self.delete_asked.emit)
        theme.notifier.changed.connect(self._restyle)

    @property
    def is_editing(self) -> bool:
        return self.state() == QAbstractItemView.State.EditingState

    def show_runs(self, rows: Sequence[RunRow]) -> None:
        """Show these runs. What is selected and ticked stays so, as far as it is there."""
        chosen, scrolled = set(self.chosen), self.verticalScrollBar().value()
        self.rows = tuple(rows)
        self._is_told = True
        self.setRowCount(0)
        self.clearSpans()
        self._lines.clear()
        for row in self._in_order():
            self._lines.append(row)
            if isinstance(row, str):
                self._add_head(row)
                continue
            self.add_row(texts(row, self.read_s), tips(row, self.read_s))
            at = self.rowCount() - 1
            for column in range(self.columnCount()):
                item = self.cell(at, column)
                if column != NOTE or row.state == "event files":
                    item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEditable)
                if column in _NUMBERS:
                    item.setTextAlignment(
                        Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
                    )
            if row.trial is not None and row.trial.state == "best":
                self.cell(at, STATE).setForeground(QBrush(theme.current().color("accent")))
            if row.state in ("failed", "cut off", "silent", "damaged"):
                self.cell(at, STATE).setForeground(QBrush(theme.current().color("error")))
            self._show_tick(self.cell(at, RUN), row)
            if row.folder in chosen:
                self.selectionModel().select(
                    self.model().index(at, 0),
                    QItemSelectionModel.SelectionFlag.Select
                    | QItemSelectionModel.SelectionFlag.Rows,
                )
        self.verticalScrollBar().setValue(scrolled)
        self._is_told = False

    def _in_order(self) -> list[RunRow | str]:
        """The runs, the trials of a sweep under its head where its newest one was."""
        lines: list[RunRow | str] = []
        for row in self.rows:
            sweep = row.trial.sweep if row.trial is not None else ""
            if not sweep:
                lines.append(row)
            elif sweep not in lines:
                lines.append(sweep)
                lines += [
                    one for one in self._trials(sweep)
                    if sweep not in self._folded or (one.trial and one.trial.state == "best")
                ]  # fmt: skip
        return lines

    def _trials(self, sweep: str) -> list[RunRow]:
        found = [row for row in self.rows if row.trial is not None and row.trial.sweep == sweep]
        return sorted(found, key=lambda row: row.trial.number if row.trial else 0)

    def _add_head(self, sweep: str) -> None:
        mark = "▸" if sweep in self._folded else "▾"
        words = sweep_words(self._trials(sweep))
        self.add_row([f"{mark} {words}", *[""] * (self.columnCount() - 1)], [words])
        at = self.rowCount() - 1
        self.setSpan(at, 0, 1, self.columnCount())
        item = self.cell(at, 0)
        item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEditable)
        font = item.font()
        font.setBold(True)
        item.setFont(font)

    def _fold(self, sweep: str) -> None:
        self._folded ^= {sweep}
        self.show_runs(self.rows)
        self.setCurrentCell(self._lines.index(sweep), RUN)

    def _show_tick(self, item: QTableWidgetItem, row: RunRow) -> None:
        if row.state == "damaged":
            return
        is_ticked = row.folder in self.ticked
        item.setCheckState(Qt.CheckState.Checked if is_ticked else Qt.CheckState.Unchecked)

    def _restyle(self) -> None:
        self.show_runs(self.rows)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The folders of the selected runs, from top to bottom."""
        at = sorted({index.row() for index in self.selectionModel().selectedRows()})
        lines = [self._lines[row] for row in at if row < len(self._lines)]
        return tuple(line.folder for line in lines if isinstance(line, RunRow))

    def _take(self, item: QTableWidgetItem) -> None:
        if self._is_told:
            return
        row = self._lines[item.row()]
        if isinstance(row, str):
            return
        if item.column() == NOTE and item.text() != row.note:
            self.noted.emit(row.folder, item.text())
        elif item.column() == RUN:
            others = tuple(folder for folder in self.ticked if folder != row.folder)
            is_ticked = item.checkState() == Qt.CheckState.Checked
            if is_ticked != (row.folder in self.ticked):
                self.ticked = (*others, row.folder) if is_ticked else others
                self.ticked_changed.emit()

    def _open(self, row: int, column: int) -> None:
        line = self._lines[row] if 0 <= row < len(self._lines) else None
        if isinstance(line, str):
            self._fold(line)
        elif line is not None and column != NOTE:
            self.opened.emit(line.folder)
