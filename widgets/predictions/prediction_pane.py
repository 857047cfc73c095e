"""Predictions of the model, beside the plots of its run."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from engine.protocol import SAMPLES_SHOWN, PredictionsSnapshot
from widgets import make
from widgets.predictions.confusion_view import Cell, ConfusionView
from widgets.predictions.pairs_view import PairsView
from widgets.predictions.plane_view import PlaneView
from widgets.predictions.sample_cards import SampleCards
from widgets.text import format_number, format_percent
from widgets.theme import GRID
from widgets.vertical_scroll import VerticalScroll

Part = Literal["validation", "training"]
_PARTS = (
    ("validation samples", "validation", "Samples that the model does not train on"),
    ("training samples", "training", "Samples that the model trains on, without transforms"),
)


class PredictionPane(QStackedWidget):
    """`asked()`: other samples are wanted; `part`, `cell` and `first` say which.
    `came_in_sight()`: the pane is shown."""

    asked = Signal()
    came_in_sight = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "predictions", "Predictions")
        self.cell: Cell | None = None
        self.first = 0
        self.trouble = make.empty("", "predictions_trouble")
        self._part = make.combo("predictions_part", "Samples", "Part of the data to predict")
        make.add_choices(self._part, _PARTS)
        self._part.activated.connect(lambda: self._choose(None))
        self._facts = make.label("", name="predictions_facts", wrap=True)
        self.plane, self.matrix, self.pairs = PlaneView(), ConfusionView(), PairsView()
        self.matrix.cell_chosen.connect(self._choose)
        self._chosen = make.label("", "muted", "predictions_chosen", wrap=True)
        self.cards = SampleCards()
        self._back = make.button(
            "predictions_back", "Back", slot=lambda: self._turn(-1), tip="Samples of a larger loss"
        )
        self._on = make.button(
            "predictions_on", "More", slot=lambda: self._turn(1), tip="Samples of a smaller loss"
        )
        body = make.page(
            make.row(self._part, make.STRETCH),
            self._facts,
            self.plane,
            self.matrix,
            self.pairs,
            self._chosen,
            self.cards,
            make.row(self._back, self._on, make.STRETCH),
            make.STRETCH,
            margins=(GRID, GRID, GRID, 0),
        )
        self.addWidget(self.trouble)
        self.addWidget(VerticalScroll(body))
        self.show_trouble("The samples are being predicted.")

    @property
    def part(self) -> Part:
        return self._part.currentData()

    def show_predictions(self, found: PredictionsSnapshot) -> None:
        self._facts.setText(facts_text(found))
        self.plane.show_plane(found.plane)
        self.matrix.show_counts(found.counts, found.classes, self.cell)
        self.pairs.show_pairs(found.pairs)
        self._chosen.setText(self._chosen_text(found))
        self.cards.show_samples(found.shown)
        self._back.setEnabled(self.first > 0)
        self._on.setEnabled(self.first + len(found.shown) < found.matching)
        self.setCurrentIndex(1)

    def show_trouble(self, text: str) -> None:
        """Say why there are no predictions."""
        self.trouble.setText(text)
        self.setCurrentIndex(0)

    def forget(self) -> None:
        """Another model has come, or other data: no cell and no page is chosen."""
        self.cell, self.first = None, 0

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        for picture in (self.plane, self.matrix, self.pairs):
            picture.show_room(event.size().height())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.came_in_sight.emit()

    def _chosen_text(self, found: PredictionsSnapshot) -> str:
        if not found.shown:
            return "No sample is left in this cell." if self.cell else ""
        last = self.first + len(found.shown)
        of = self.matrix.text_of(self.cell) if self.cell else f"{found.matching:,} samples"
        return f"{of}: {self.first + 1:,} to {last:,}, the largest loss first."

    def _choose(self, cell: Cell | None) -> None:
        self.cell, self.first = cell, 0
        self.asked.emit()

    def _turn(self, pages: int) -> None:
        self.first = max(0, self.first + pages * SAMPLES_SHOWN)
        self.asked.emit()


def facts_text(found: PredictionsSnapshot) -> str:
    """How many samples, and how well they are predicted."""
    count = f"{found.samples:,}" if found.samples == found.total else (
        f"the first {found.samples:,} of {found.total:,}"
    )  # fmt: skip
    words = f"After step {found.step:,}: {count} {found.part} samples, mean loss"
    words += f" {format_number(found.loss)}"
    if found.pairs:
        return f"{words}, R² {format_number(found.r2, 3)}."
    return f"{words}, accuracy {format_percent(found.accuracy)}."
