"""The gradients of one training run: a heat map of layers by steps, and words on each layer."""

from __future__ import annotations

import numpy as np
from msgspec import structs
from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import (
    QHeaderView,
    QSizePolicy,
    QTableWidgetItem,
    QWidget,
)

from engine.protocol import WHOLE_SUBJECT, FlowHistogram, FlowSnapshot, Histogram, Picture
from widgets import make, theme
from widgets.table import ROW_HEIGHT, ReadTable
from widgets.text import format_number, format_percent
from widgets.theme import GRID
from widgets.values.histogram_view import HistogramView
from widgets.values.picture_view import PictureView

INITIALISATIONS = {
    "default": (
        "torch's default",
        "Each layer's own reset_parameters(): Kaiming uniform for Linear",
    ),
    "kaiming_normal": ("Kaiming normal", "Normal with std √(2/fan_in): keeps ReLU nets in scale"),
    "xavier_uniform": ("Xavier uniform", "Uniform within √(6/(fan_in+fan_out)): for tanh, sigmoid"),
    "orthogonal": ("orthogonal", "Orthogonal weight matrices: they keep the length of a vector"),
    "normal_0.01": (
        "normal, std 0.01",
        "Small weights: signals and gradients shrink from layer to layer",
    ),
    "normal_1": ("normal, std 1", "Large weights: signals and gradients grow from layer to layer"),
    "zeros": ("zeros", "All weights zero: no gradient gets past the last layer"),
}
MOSTLY_DEAD = 0.5
"""An activation with at least this fraction of dead units is marked."""
_COLUMNS = (
    ("layer", "A module with parameters of its own, or an activation with flat parts."),
    ("‖grad‖", "2-norm of its gradients in the last step."),
    (
        "dead",
        "Share of the units whose activation is flat, with gradient 0, for every sample of"
        " the batch.",
    ),
    (
        "",
        "vanishing: the gradient (RMS) is at most 1/1000 of the largest layer's; exploding: its"
        " norm is 1,000 or more; dying: at least half of the units are dead.",
    ),
)


class FlowColumn(QWidget):
    """Emits `chosen(layer, step)` when a cell of the heat map is chosen, `layer_chosen(name)` when
    a row of the table is, and `measured()` when its numbers have changed."""

    chosen = Signal(str, int)
    layer_chosen = Signal(str)
    measured = Signal()

    def __init__(self, number: int, initialisation: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._snapshot: FlowSnapshot | None = None
        self._box = make.combo(
            f"flow_initialisation_{number}",
            f"Initialisation of run {number}",
            "How the weights are initialised. Biases start at 0, except with torch's default.",
            ((title, key, f"{tip}.") for key, (title, tip) in INITIALISATIONS.items()),
        )
        self._box.setCurrentIndex(self._box.findData(initialisation))
        # what is shown belongs to the old choice
        self._box.currentIndexChanged.connect(lambda: self.clear())
        self._loss = make.text(f"flow_loss_{number}", "muted")
        self._loss.setToolTip("The loss of the first batch and of the last.")
        self._ended = make.text(f"flow_ended_{number}", "error", wrap=True)
        words = "log₁₀ of each layer's gradient (RMS), one column per step"
        caption = make.label(words, "muted", wrap=True)
        caption.setToolTip("All three heat maps share one colour scale.")
        self.picture = PictureView()
        self.picture.setObjectName(f"flow_picture_{number}")
        self.picture.setToolTip(
            "Click a cell for a histogram of this layer's gradients in this step."
        )
        self.picture.set_cell_names(self._cell_name)
        self.picture.cell_chosen.connect(self._choose)
        self.table = self._make_table(number)
        self.histogram = HistogramView()
        self.histogram.setToolTip(
            "The number of gradient elements by size, in powers of ten; exact zeros are left out."
        )
        shown = ((self.picture, 3), (self.table, 3), (self.histogram, 2))
        make.column(self._box, self._loss, self._ended, caption, *shown, on=self, gap=GRID // 2)
        theme.notifier.changed.connect(self._show_table)
        self.clear()

    def _make_table(self, number: int) -> ReadTable:
        name, title = f"flow_layers_{number}", f"Layers of run {number}"
        table = ReadTable(name, title, _COLUMNS, tight=False)
        table.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        table.setSelectionMode(ReadTable.SelectionMode.SingleSelection)
        table.itemSelectionChanged.connect(self._choose_layer)
        make.give_menu(table)
        table.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        header = table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        return table

    @property
    def initialisation(self) -> str:
        return self._box.currentData()

    def choose_initialisation(self, key: str) -> None:
        """Show another initialisation without emitting."""
        with QSignalBlocker(self._box):
            self._box.setCurrentIndex(self._box.findData(key))

    def show_flow(self, snapshot: FlowSnapshot) -> None:
        self._snapshot = snapshot
        losses = snapshot.losses
        ends = (format_number(losses[0]), format_number(losses[-1])) if losses else ("–", "–")
        self._loss.setText(
            f"loss {ends[0]} → {ends[1]} after {snapshot.step:,} of {snapshot.steps:,} steps"
        )
        make.tell(self._ended, snapshot.ended)
        self.picture.show_picture(
            log10(snapshot.rms), "This model has no parameters: add a Linear block"
        )
        self.measured.emit()
        self._show_table()

    def mark(self, layer: str, step: int) -> None:
        """Frame the step of the layer whose histogram is shown."""
        known = self._snapshot is not None and layer in self._snapshot.layers
        row = self._snapshot.layers.index(layer) if self._snapshot is not None and known else -1
        self.picture.mark_cell((row, step))

    def show_histogram(self, run: FlowHistogram | None, low: float, high: float) -> None:
        """Show the histogram of a layer's gradients, in log10."""
        if run is None:
            self.histogram.show_histogram(None, "This run ended before this step")
            return
        width = (high - low) / len(run.counts)
        words = f"All {run.zeros:,} gradients are exactly zero" if not sum(run.counts) else ""
        shown = None if words else Histogram(low=low, width=width, counts=run.counts)
        self.histogram.show_histogram(shown, words)

    def clear(self) -> None:
        """Return to the empty state."""
        self._snapshot = None
        self._loss.clear()
        self._ended.hide()
        self.picture.show_picture(None, "Press Run")
        self.measured.emit()
        self.table.setRowCount(0)
        self.histogram.show_histogram(None, "Click a cell of the heat map above")

    def _show_table(self) -> None:
        snapshot = self._snapshot
        if snapshot is None:
            return
        colors = theme.current()
        dead = dict(zip(snapshot.activations, last_known(snapshot), strict=True))
        self.table.setRowCount(len(snapshot.order))
        for row, name in enumerate(snapshot.order):
            norm = verdict = fraction = ""
            if name in snapshot.layers:
                place = snapshot.layers.index(name)
                norm, verdict = format_number(snapshot.norms[place]), snapshot.verdicts[place]
            if name in dead:
                fraction = format_percent(dead[name])
            if dead.get(name, 0.0) >= MOSTLY_DEAD:
                verdict = "dying" if dead[name] < 1.0 else "dead"
            for column, text in enumerate((name or WHOLE_SUBJECT, norm, fraction, verdict)):
                item = QTableWidgetItem(text)
                if verdict:
                    item.setForeground(colors.color("error"))
                self.table.setItem(row, column, item)

    def _cell_name(self, cell: tuple[int, ...]) -> str:
        if self._snapshot is None:
            return ""
        name = self._snapshot.layers[cell[-2]] or WHOLE_SUBJECT
        return f"{name}, step {cell[-1] + 1}: log₁₀"

    def _choose_layer(self) -> None:
        rows = self.table.selectionModel().selectedRows()
        if self._snapshot is not None and rows:
            self.layer_chosen.emit(self._snapshot.order[rows[0].row()])

    def _choose(self, cell: tuple[int, ...]) -> None:
        if self._snapshot is not None:
            self.chosen.emit(self._snapshot.layers[cell[-2]], cell[-1])


def last_known(snapshot: FlowSnapshot) -> list[float]:
    """The dead fractions of the last step, by activation."""
    if snapshot.dead is None:
        return []
    numbers = np.frombuffer(snapshot.dead.data, "<f4").reshape(snapshot.dead.shape)
    return numbers[:, max(0, snapshot.step - 1)].tolist()


def log10(picture: Picture | None) -> Picture | None:
    """A picture of log10 of the numbers; zeros become minus infinity."""
    if picture is None:
        return None
    with np.errstate(divide="ignore"):
        numbers = np.log10(np.frombuffer(picture.data, "<f4"))
    return structs.replace(picture, data=numbers.astype("<f4").tobytes())
