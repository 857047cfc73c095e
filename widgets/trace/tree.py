"""The tree of calls of a trace, with the current one marked."""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import QModelIndex, Signal
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QHeaderView, QTreeView, QWidget

from engine.protocol import TraceSnapshot
from widgets import make, theme
from widgets.trace.model import CALL, EMPTY, LINE, MARKS, NODES, RESULT, TraceModel

OPEN_WHOLE = 200
"""A trace of at most this many calls opens with all of them in sight."""
_CHARACTERS = {CALL: 30, LINE: 5, NODES: 5, MARKS: 10}
"""The first widths of the columns; the result takes the rest. They do not fit their contents, which
may be 50,000 rows."""


class TraceTree(QTreeView):
    """`call_chosen(number)` when the reader selects a call by mouse or keys."""

    call_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "trace_tree", "What torch ran")
        self.setUniformRowHeights(True)
        self.setAllColumnsShowFocus(True)
        self.setFrameShape(QTreeView.Shape.NoFrame)
        self.setIndentation(3 * theme.GRID // 2)
        self._is_told = False  # true while the code, not the user, sets the current row
        self.calls = TraceModel(self)
        self.setModel(self.calls)
        header = self.header()
        header.setStretchLastSection(False)
        header.setMinimumSectionSize(4 * theme.GRID)
        header.setSectionResizeMode(RESULT, QHeaderView.ResizeMode.Stretch)
        character = self.fontMetrics().averageCharWidth()
        for column, characters in _CHARACTERS.items():
            self.setColumnWidth(column, characters * character + theme.GRID)
        make.give_menu(self)
        self.selectionModel().currentChanged.connect(self._on_current)
        theme.notifier.changed.connect(self.viewport().update)

    def show_trace(self, trace: TraceSnapshot | None) -> None:
        """Show the calls of a trace, closed if they are many; none for None."""
        self._is_told = True
        self.calls.show_trace(trace or EMPTY)
        self._is_told = False
        if len(self.calls.trace.calls) <= OPEN_WHOLE:
            self.expandAll()

    def show_position(self, position: int) -> None:
        """Mark a call and open the calls around it; -1 is before the first. Emits nothing."""
        self.calls.position = position
        self._is_told = True
        if position < 0:
            self.selectionModel().clear()
            self.scrollToTop()
        else:
            self.setCurrentIndex(self.calls.index_of(position))
            self.scrollTo(self.calls.index_of(position))
        self._is_told = False
        self.viewport().update()

    def show_chosen(self, calls: Collection[int]) -> None:
        """Light the calls that another view has chosen. The current call stays; the tree scrolls to
        the first of them unless it has the focus."""
        self.calls.chosen = frozenset(calls)
        if calls and not self.hasFocus():
            self.scrollTo(self.calls.index_of(min(calls)))
        self.viewport().update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        # If no row is current, Qt makes the first one current: the user has not chosen it.
        self._is_told = True
        super().focusInEvent(event)
        if self.calls.position < 0:
            self.selectionModel().clear()
        self._is_told = False

    def _on_current(self, index: QModelIndex) -> None:
        if index.isValid() and not self._is_told:
            self.call_chosen.emit(index.internalId())
