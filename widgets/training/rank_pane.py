"""The ranks of a run, and the end of what one of them has printed."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QBrush, QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QPlainTextEdit, QStackedWidget, QWidget

from engine.protocol import RankRow, RanksSnapshot
from widgets import make, theme
from widgets.table import ReadTable
from widgets.theme import GRID

_COLUMNS = (
    ("rank", "The number of the process among those that train together. Rank 0 tells and writes."),
    ("process", "Its number on its machine"),
    ("state", "Whether it runs, and how it ended"),
    ("last line", "What it printed last"),
)
_STATE = 2
_EMPTY = (
    "No ranks.\n\nOne process trains, unless Several processes, at the left, says otherwise. Then"
    " each process is listed here, with what it prints."
)


class RankPane(QStackedWidget):
    """`rank` is the one whose lines are shown. `asked()`: the reader has chosen another one.
    `came_in_sight()`: the pane is shown."""

    asked = Signal()
    came_in_sight = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "rank_pane", "Processes of the run")
        self.rank = 0
        self._rows: tuple[RankRow, ...] = ()
        self._is_told = False  # while the program fills the table
        self._empty = make.empty(_EMPTY, "ranks_empty")
        self.table = ReadTable("ranks_table", "Processes of the run", _COLUMNS)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setTabKeyNavigation(False)
        self.table.setShowGrid(False)
        self.lines = QPlainTextEdit(readOnly=True)
        make.named(self.lines, "ranks_lines", "What the rank printed")
        self.lines.setFont(theme.mono_font(9))
        self.lines.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.lines.setToolTip("The last lines that the selected rank has printed.")
        self._log = make.text("ranks_log", "muted")
        self._log.setContentsMargins(GRID, 0, GRID, GRID // 2)
        below = make.page((self.lines, 1), self._log, gap=GRID // 2)
        both = make.splitter(self.table, below, sizes=(120, 240), shares=(1, 2), upright=True)
        self.addWidget(self._empty)
        self.addWidget(both)
        self.table.itemSelectionChanged.connect(self._choose)
        theme.notifier.changed.connect(self._show_rows)

    @property
    def has_rows(self) -> bool:
        return bool(self._rows)

    def show_ranks(self, told: RanksSnapshot) -> None:
        """Show the ranks. What the reader has scrolled away from the end stays where it is."""
        self._rows = told.rows
        self.setCurrentIndex(1 if told.rows else 0)
        if not told.rows:
            self._empty.setText(_EMPTY)
        self._show_rows()
        text = "\n".join(told.lines)
        if text != self.lines.toPlainText():
            bar = self.lines.verticalScrollBar()
            at, at_end = bar.value(), bar.value() == bar.maximum()
            self.lines.setPlainText(text)
            bar.setValue(bar.maximum() if at_end else at)
        self._log.setText(f"All of it: {told.log}" if told.log else "")

    def show_trouble(self, text: str) -> None:
        """Say why there are no ranks to show."""
        self._empty.setText(text)
        self.setCurrentIndex(0)

    def _show_rows(self) -> None:
        self._is_told = True
        self.table.setRowCount(0)
        for place, row in enumerate(self._rows):
            where = f"{row.process}" if row.state != "elsewhere" else f"{row.process} on {row.host}"
            self.table.add_row([str(row.rank), where, _state(row), row.last])
            if row.state == "failed":
                error = QBrush(theme.current().color("error"))
                self.table.cell(place, _STATE).setForeground(error)
            if row.rank == self.rank:
                self.table.selectRow(place)
        self._is_told = False

    def _choose(self) -> None:
        chosen = self.table.selectionModel().selectedRows()
        if self._is_told or not chosen:
            return
        self.rank = self._rows[chosen[0].row()].rank
        self.asked.emit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.came_in_sight.emit()


def _state(row: RankRow) -> str:
    if row.state == "elsewhere":
        return "on another machine"
    return row.end or {"running": "runs", "ended": "has ended"}.get(row.state, row.state)
