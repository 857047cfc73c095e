"""The elements of one parameter, or of its gradient, over the steps of a run: a heat map."""

from __future__ import annotations

from math import isfinite

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QComboBox, QStackedWidget, QWidget

from engine.protocol import HistogramKind, HistogramsSnapshot
from widgets import make
from widgets.charts.axes import Scale
from widgets.charts.heat_map import HeatMap
from widgets.flow_layout import FlowLayout
from widgets.text import format_number, format_percent
from widgets.theme import GRID
from widgets.training.over_time.resampling import (
    ROWS,
    counts_of,
    looks_at,
    shares,
    step_scale,
    value_scale,
)

EMPTY = (
    "No run yet.\n\nEvery run of Train is looked at from time to time, in at most 0.5 % of its"
    " time, whether this page is open or not. The histograms of each parameter and of its gradient"
    " appear here over the steps; a run that is opened again has them too."
    " A loop in a cell or file has them while it is the newest, and so has what it gives to"
    " lab.log(name=tensor). A script that is attached to is looked at from when this page or"
    " Modules is opened. Not looked at are models that FSDP2 shards: no process has a whole"
    " parameter."
)
NOTHING_LOGGED = "lab.log(name=tensor) in a loop of your code draws its elements here."
SOON = "The run has started: its first histograms come in a moment."
_KINDS = (
    ("weights", "weights", "The elements of the parameter after the step"),
    ("gradients", "gradients", "The elements of its gradient, before clipping"),
    ("logged", "logged", "The elements of a tensor that the loop has given to lab.log"),
)


class HistogramPane(QStackedWidget):
    """`asked()`: another parameter is wanted; `name` and `kind` say which. `chosen(name)`: the
    reader has chosen a parameter. `came_in_sight()`: the pane is shown."""

    asked = Signal()
    chosen = Signal(str)
    came_in_sight = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "histograms", "Histograms over time")
        self._found = HistogramsSnapshot(folder="")
        self._x = self._y = Scale(0.0, 1.0)
        self.name = ""
        self.trouble = make.empty(EMPTY, "histograms_trouble")
        self._names = make.combo(
            "histograms_name", "Tensor", "The parameter, or logged tensor, whose elements are shown"
        )
        self._names.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._names.activated.connect(self._choose)
        self._kind = make.combo(
            "histograms_kind", "Kind", "Weights, their gradients, or what your code logs", _KINDS
        )
        self._kind.activated.connect(lambda _: self.asked.emit())
        self._middle = make.check(
            "histograms_middle",
            "Middle 99 %",
            "Show only the values that 99 % of the elements have at each step: a few far ones"
            " would make the others a thin line.",
        )
        self._log = make.check(
            "histograms_log",
            "Logarithmic",
            "Colours stand for the logarithm of the share: rare values are seen beside a peak.",
            checked=True,
        )
        for box in (self._middle, self._log):
            box.toggled.connect(lambda _: self._draw())
        head = FlowLayout(GRID, even=False)
        for control in (self._names, self._kind, self._middle, self._log):
            head.addWidget(control)
        self._pointed = make.text("histograms_pointed", "muted")
        self._bad = make.text("histograms_bad", "error", wrap=True, width="own")
        self.map = HeatMap(
            "histograms_map",
            "Histograms over steps",
            "Each column is the histogram of one step: the colour is the share of elements with"
            " that value. Arrow keys go from cell to cell.",
        )
        self.map.pointed.connect(self._tell_cell)
        self.addWidget(self.trouble)
        self.addWidget(
            make.page(head, self._bad, self._pointed, (self.map, 1), margins=(0, GRID, GRID, 0))
        )

    @property
    def kind(self) -> HistogramKind:
        return self._kind.currentData()

    def show_histograms(self, found: HistogramsSnapshot) -> None:
        self._found, self.name = found, found.name
        self._kind.setCurrentIndex(self._kind.findData(found.kind))
        if not found.names and found.kind != "logged":
            self.show_trouble(SOON if found.folder else EMPTY)
            return
        known = [self._names.itemText(i) for i in range(self._names.count())]
        if known != list(found.names):
            self._names.clear()
            self._names.addItems(list(found.names))
        self._names.setCurrentText(found.name)
        make.tell(self._bad, _bad_words(found))
        self._draw()
        self.setCurrentIndex(1)

    def show_trouble(self, text: str) -> None:
        """Say why there are no histograms."""
        self.trouble.setText(text)
        self.setCurrentIndex(0)

    def show_chosen(self, name: str) -> None:
        """Show the parameter that another view has chosen, if this run has it; emits `asked`."""
        if self.kind == "logged":
            return
        if name != self.name and self._names.findText(name) >= 0:
            self.name = name
            self.asked.emit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.came_in_sight.emit()

    def _choose(self) -> None:
        self.name = self._names.currentText()
        self.asked.emit()
        if self.kind != "logged":
            self.chosen.emit(self.name)

    def _draw(self) -> None:
        found = self._found
        if not found.steps:
            nothing = f"{found.name} had no finite {_noun(found)} when it was looked at."
            self._pointed.setText(nothing if found.names else NOTHING_LOGGED)
            self.map.show_values(np.empty((0, 0)), self._x, self._y, ("", "", ""))
            return
        self._pointed.setText("")
        self._x = step_scale(found)
        self._y = value_scale(found, self._middle.isChecked())
        is_log = self._log.isChecked()
        self.map.show_values(
            shares(found, self._x, self._y),
            self._x,
            self._y,
            ("step", _noun(found), "share of elements"),
            is_log=is_log,
        )

    def _tell_cell(self, row: int, column: int) -> None:
        if row < 0 or not self._found.steps:
            self._pointed.setText("")
            return
        found = self._found
        look = int(looks_at(found, self._x)[column])
        low, high = (self._y.value((row + end) / ROWS) for end in (0, 1))
        share = float(self.map.values[row, column])
        count = int(counts_of(found)[look].sum())
        part = format_percent(share) if isfinite(share) else "none"
        between = f"{format_number(low, 3)} to {format_number(high, 3)}"
        self._pointed.setText(
            f"step {found.steps[look]:,}: {part} of {count:,} {_noun(found)} are in {between}"
        )


def _noun(found: HistogramsSnapshot) -> str:
    return "elements" if found.kind == "logged" else found.kind


def _bad_words(found: HistogramsSnapshot) -> str:
    """Where elements were not finite, in words."""
    bad = [(step, n) for step, n in zip(found.steps, found.others, strict=True) if n]
    if not bad:
        return ""
    step, count = bad[0]
    are = "element was" if count == 1 else "elements were"
    return f"{count:,} {are} NaN or infinite at step {step:,}; they are in no bin."
