"""How a weights file fits the subject, and what of it may be loaded."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from app.window.card import Card
from engine.protocol import FitSnapshot, KeyFit
from widgets import make
from widgets.theme import GRID

_LINES = 8


class WeightsPanel(Card):
    """`load_requested()`: load what the panel says that fits."""

    load_requested = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__("weights", "Close the report about the weights", parent)
        self._words = make.paragraph("weights_words")
        self.names = make.named(
            QPlainTextEdit(),
            "weights_names",
            "Tensors that do not fit",
            "The tensors that are not loaded: their names and shapes.",
        )
        self.names.setReadOnly(True)
        self.names.setFixedHeight(_LINES * self.names.fontMetrics().lineSpacing() + 2 * GRID)
        self.load = make.button("weights_load", "Load", slot=self._load, primary=True)
        foot = make.row(make.STRETCH, self.load)
        parts = (self.head, self._words, self.names, foot)
        make.column(*parts, on=self, margins=(2 * GRID, GRID, GRID, 2 * GRID))

    def show_fit(self, fit: FitSnapshot) -> None:
        """Show what fits and what does not; unless the weights are loaded, offer to load them."""
        name = Path(fit.path).name
        missing, unexpected, misshapen = fit.counts
        own = fit.matched + missing + misshapen
        done = "loaded into" if fit.loaded else "of"
        self.title.setText(f"{name}: {fit.matched:,} of {own:,} tensors {done} {fit.title}")
        words = [f"{fit.renaming}." if fit.renaming else ""]
        if not fit.loaded:
            words.append("Nothing is loaded yet.")
        make.tell(self._words, " ".join(word for word in words if word))
        kinds = (
            (missing, "missing in the file", fit.missing),
            (misshapen, "of another shape", fit.misshapen),
            (unexpected, "not in the subject", fit.unexpected),
        )
        self.names.setPlainText("\n".join(_lines(*kind) for kind in kinds if kind[0]))
        self.names.setVisible(any(fit.counts))
        self.load.setVisible(not fit.loaded)
        self.load.setEnabled(fit.matched > 0)
        whole = not missing and not misshapen
        self.load.setText("Load with these names" if whole else "Load what fits")
        self.load.setToolTip(f"Copy {fit.matched:,} tensors into {fit.title}.")
        self.show_card()

    def _load(self) -> None:
        self.hide()
        self.load_requested.emit()


def _lines(count: int, what: str, keys: tuple[KeyFit, ...]) -> str:
    told = [f"{count:,} {what}:"]
    for key in keys:
        instead = f", the subject has {key.own_shape}" if what == "of another shape" else ""
        told.append(f"  {key.name}  {key.shape}{instead}")
    if count > len(keys):
        told.append(f"  and {count - len(keys):,} more")
    return "\n".join(told)
