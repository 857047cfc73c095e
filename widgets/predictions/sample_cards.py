"""Samples as cards: the picture or the first values, the target, the prediction, the loss."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QFrame, QWidget

from engine.protocol import PredictedSample
from widgets import make
from widgets.flow_layout import FlowLayout
from widgets.sample_picture import pixmap_of
from widgets.text import format_number, format_percent
from widgets.theme import GRID

_SIDE = 6 * GRID
_TEXT_WIDTH = 16 * GRID


class SampleCards(QWidget):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._flow = FlowLayout(GRID)
        make.set_margins(self._flow, 0)
        self.setLayout(self._flow)
        self.cards: list[QFrame] = []

    def show_samples(self, samples: Sequence[PredictedSample]) -> None:
        for card in self.cards:
            self._flow.removeWidget(card)
            card.hide()
            card.deleteLater()
        self.cards = [_card(sample) for sample in samples]
        for card in self.cards:
            self._flow.addWidget(card)


def sample_text(sample: PredictedSample) -> str:
    """The prediction, in one line: "8, not 3 (72.0 %)"."""
    text = sample.predicted if sample.is_right else f"{sample.predicted}, not {sample.target}"
    return text if sample.chance is None else f"{text} ({format_percent(sample.chance)})"


def _card(sample: PredictedSample) -> QFrame:
    card = make.named(QFrame(), f"sample_{sample.number}", f"Sample {sample.number}")
    card.setProperty("role", "card")
    if sample.image is not None:
        picture = make.label("")
        picture.setPixmap(pixmap_of(sample.image, _SIDE))
    else:
        picture = make.label(sample.text, "muted", wrap=True)
        picture.setFixedWidth(_TEXT_WIDTH)
    role = "" if sample.is_right or sample.chance is None else "error"
    words = make.label(sample_text(sample), role)
    loss = make.label(f"loss {format_number(sample.loss, 3)}", "muted")
    make.column(picture, words, loss, on=card, gap=2, margins=GRID // 2)
    right = "right" if sample.is_right else f"the target is {sample.target}"
    card.setToolTip(f"Sample {sample.number} of its part: predicted {sample.predicted}; {right}.")
    return card
