"""What is in a data set, in words and figures; or why it cannot be used."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from engine.protocol import DataSnapshot
from widgets import make
from widgets.theme import GRID
from widgets.training.settings.column_table import ColumnTable
from widgets.training.settings.sample_images import SampleImages

_SHOWN_CLASSES = 12
_SHOWN_SKIPPED = 5


class DataReport(QWidget):
    """Samples of both parts, class balance, columns, first rows, and what was skipped."""

    column_edited = Signal(str, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = make.label("", "muted", "data_facts", wrap=True)
        self._problem = make.label("", "error", "data_problem", wrap=True)
        self.columns = ColumnTable()
        self._skipped = make.label("", "muted", "data_skipped", wrap=True)
        self._images = SampleImages()
        parts = (self._problem, self._words, self._images, self.columns, self._skipped)
        make.column(*parts, on=self, gap=GRID // 2)
        self.columns.column_edited.connect(self.column_edited)
        self.clear()

    def clear(self) -> None:
        for label in (self._words, self._problem, self._skipped):
            make.tell(label, "")
        self.columns.hide()
        self._images.hide()

    def show_words(self, text: str) -> None:
        self.clear()
        make.tell(self._words, text)

    def show_problem(self, text: str) -> None:
        """Show why the data cannot be used. Columns stay, so that their roles can be changed."""
        make.tell(self._words, "")
        make.tell(self._skipped, "")
        self._images.hide()
        make.tell(self._problem, text)

    def show_data(self, data: DataSnapshot) -> None:
        make.tell(self._problem, "")
        make.tell(self._words, facts_text(data))
        self._images.show_data(data)
        self.columns.show_data(data)
        make.tell(self._skipped, skipped_text(data))


def facts_text(data: DataSnapshot) -> str:
    """Counts, shapes, class balance and the first rows."""
    lines = [
        f"{data.training:,} samples for training, {data.validation:,} for validation. Shape of a"
        f" sample: {data.sample_shape}, {data.dtype}."
    ]
    if data.targets == "numbers":
        lines.append("Targets are numbers.")
    else:
        what = "characters" if data.targets == "characters" else "classes"
        shown = data.classes[:_SHOWN_CLASSES]
        counts = ", ".join(f"{_name(c.name)} {c.training:,} + {c.validation:,}" for c in shown)
        more = ", …" if data.class_count > len(shown) else ""
        lines.append(f"{data.class_count:,} {what}, training + validation: {counts}{more}.")
    for row, target in list(zip(data.rows, data.target_rows, strict=True))[:3]:
        values = ", ".join(f"{value:.4g}" for value in row[:6])
        lines.append(f"({values}{', …' if len(row) > 6 else ''}) → {target}")
    return "\n".join(lines)


def skipped_text(data: DataSnapshot) -> str:
    if not data.skipped_count:
        return ""
    shown = data.skipped[:_SHOWN_SKIPPED]
    rest = data.skipped_count - len(shown)
    lines = [f"Skipped: {data.skipped_count:,}.", *shown]
    return "\n".join([*lines, f"… and {rest:,} more"] if rest else lines)


def _name(name: str) -> str:
    """A character that has no picture of its own is quoted."""
    return name if name.strip() else repr(name)
