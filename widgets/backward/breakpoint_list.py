"""The breakpoints of backward: a list with switches, and a form to add one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from engine.project.document import replace
from engine.protocol import Breakpoint, BreakpointState, breakpoint_words
from widgets import make
from widgets.backward.breakpoint_form import BreakpointForm
from widgets.theme import GRID

EMPTY = "No breakpoints. Add one here, or by a box's menu in the graph; Run (F12) stops at them."

NOWHERE = (
    "No node of this graph has that number, op or module: it may be misspelt. A module's path is "
    "what the box says (gpt.layers.3); it stays in the list for other graphs."
)


class BreakpointList(QWidget):
    """`changed(tuple of Breakpoint)` is emitted at every edit by the reader."""

    changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._states: tuple[BreakpointState, ...] = ()
        self.setObjectName("breakpoint_list")
        self._list = make.named(
            QTreeWidget(),
            "breakpoints",
            "Breakpoints",
            "Switch one off by its box; Delete removes the chosen one",
        )
        self._list.setColumnCount(2)
        self._list.setMinimumHeight(5 * GRID)
        self._list.setHeaderLabels(["stop at", "hits"])
        self._list.setRootIsDecorated(False)
        self._list.setUniformRowHeights(True)
        self._list.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        header = self._list.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        self._list.itemChanged.connect(self._on_item)
        self._remove = make.tool_button(
            "breakpoint_remove",
            "mdi6.delete-outline",
            "Remove the chosen breakpoint (Delete)",
            self._remove_chosen,
            accessible="Remove the chosen breakpoint",
        )
        self._list.currentItemChanged.connect(
            lambda current, _: self._remove.setEnabled(current is not None)
        )
        make.shortcut(QKeySequence.StandardKey.Delete, self._list, self._remove_chosen)
        self._empty = make.label(EMPTY, "muted", wrap=True)
        self._problem = make.label("", "error", "breakpoint_problem", wrap=True)
        self._problem.hide()
        self.form = BreakpointForm()
        self.form.added.connect(self.add)
        self.form.problem.connect(lambda text: make.tell(self._problem, text))
        remove = (self._remove, 0, Qt.AlignmentFlag.AlignBottom)
        row = make.row((self.form, 1), remove, gap=GRID // 2)
        parts = (row, self._problem, self._empty, (self._list, 1), make.Stretch(0))
        make.column(*parts, on=self, gap=GRID // 2, margins=(0, GRID, 0, 0))
        self._fill()

    @property
    def breakpoints(self) -> tuple[Breakpoint, ...]:
        return tuple(state.breakpoint for state in self._states)

    def show_states(self, states: Sequence[BreakpointState]) -> None:
        """Show breakpoints with their counts."""
        if tuple(states) != self._states:
            self._states = tuple(states)
            self._fill()

    def add(self, breakpoint: Breakpoint) -> None:
        """Add a breakpoint, or switch it on if it is in the list."""
        known = [replace(state.breakpoint, enabled=True) for state in self._states]
        if breakpoint in known:
            self._set(known.index(breakpoint), enabled=True)
            return
        self._change((*self._states, BreakpointState(breakpoint, 0)))

    def toggle(self, key: str) -> None:
        """Put a breakpoint on a box of the graph's picture, or remove it."""
        wanted = breakpoints_at(key)
        if all(breakpoint in self.breakpoints for breakpoint in wanted):
            self._change(tuple(s for s in self._states if s.breakpoint not in wanted))
        else:
            new = (BreakpointState(b, 0) for b in wanted if b not in self.breakpoints)
            self._change((*self._states, *new))

    def keys(self) -> frozenset[str]:
        """The keys of the graph's boxes with a breakpoint that is switched on."""
        found = set()
        for breakpoint in self.breakpoints:
            if breakpoint.enabled and breakpoint.on == "node":
                found.add(f"#{breakpoint.target}")
            elif breakpoint.enabled and breakpoint.on == "module":
                found.add(breakpoint.target)
        return frozenset(found)

    def _set(self, place: int, enabled: bool) -> None:
        state = self._states[place]
        switched = replace(state.breakpoint, enabled=enabled)
        changed = BreakpointState(switched, state.hits, state.places)
        self._change((*self._states[:place], changed, *self._states[place + 1 :]))

    def _change(self, states: tuple[BreakpointState, ...]) -> None:
        self._states = states
        self._fill()
        self.changed.emit(self.breakpoints)

    def _remove_chosen(self) -> None:
        place = self._list.currentIndex().row()
        if place >= 0:
            self._change((*self._states[:place], *self._states[place + 1 :]))

    def _fill(self) -> None:
        chosen = self._list.currentIndex().row()
        with QSignalBlocker(self._list):
            self._list.clear()
            for state in self._states:
                words = breakpoint_words(state.breakpoint)
                item = QTreeWidgetItem([words, f"{state.hits:,}"])
                item.setSizeHint(0, QSize(0, 3 * GRID))
                item.setToolTip(0, words)
                if state.places == 0:
                    item.setText(0, f"{words}: not in this graph")
                    item.setToolTip(0, NOWHERE)
                item.setToolTip(1, "How often it stopped or would stop this pass")
                on = Qt.CheckState.Checked if state.breakpoint.enabled else Qt.CheckState.Unchecked
                item.setCheckState(0, on)
                self._list.addTopLevelItem(item)
            if chosen >= 0:
                last = min(chosen, len(self._states) - 1)
                self._list.setCurrentIndex(self._list.model().index(last, 0))
        self._remove.setEnabled(self._list.currentItem() is not None)
        self._list.setVisible(bool(self._states))
        self._empty.setVisible(not self._states)

    def _on_item(self, item: QTreeWidgetItem) -> None:
        place = self._list.indexOfTopLevelItem(item)
        self._set(place, enabled=item.checkState(0) == Qt.CheckState.Checked)


def breakpoints_at(key: str) -> tuple[Breakpoint, ...]:
    """The breakpoints for a box of the graph's picture: its node (`"#17"`), its module, or every
    module of a fold (`"layers.[0-11]"`)."""
    if key.startswith("#"):
        return (Breakpoint(on="node", target=key[1:]),)
    parts = re.split(r"\[(\d+)-(\d+)\]", key)
    texts, firsts, lasts = parts[::3], parts[1::3], parts[2::3]
    numbers = [range(int(a), int(b) + 1) for a, b in zip(firsts, lasts, strict=True)]
    paths = []
    for chosen in product(*numbers):
        pairs = zip(texts, (*map(str, chosen), ""), strict=True)
        paths.append("".join(text + number for text, number in pairs))
    return tuple(Breakpoint(on="module", target=path) for path in paths)
