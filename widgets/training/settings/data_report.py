"""What is in a data set, in words and figures; or why it cannot be used."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from engine.protocol import DataSnapshot, SampleImage
from widgets import make
from widgets.sample_picture import pixmap_of
from widgets.theme import GRID
from widgets.training.settings.column_table import ColumnTable

_SHOWN_CLASSES = 12
_SHOWN_SKIPPED = 5
_SIDE = 5 * GRID
"""Of an image on screen, in pixels."""


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
    if data.stored:
        lines.append("Too large for memory: the samples of a batch are read from their files.")
    if data.targets == "numbers":
        lines.append("Targets are numbers.")
    else:
        what = "characters" if data.targets == "characters" else "classes"
        shown = data.classes[:_SHOWN_CLASSES]
        counts = ", ".join(f"{_name(c.name)}: {c.training:,} + {c.validation:,}" for c in shown)
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


class SampleImages(QWidget):
    """A row of sample images with their targets, and below it what the transforms make of them.
    Nothing is shown for data that is not images."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._grid = make.grid(self, across=GRID // 2, down=GRID // 4)
        self._shown: list[QWidget] = []
        self.hide()

    def show_data(self, data: DataSnapshot) -> None:
        for widget in self._shown:
            self._grid.removeWidget(widget)
            widget.hide()
            widget.deleteLater()
        self._shown = []
        self._row(0, data.images, [f"Sample of class {name}" for name in data.image_targets])
        for column, name in enumerate(data.image_targets):
            self._place(make.label(name, "muted"), 1, column)
        if data.transformed:
            words = "The same after the transforms of a batch; each epoch draws others:"
            label = make.label(words, "muted", "data_transformed", wrap=True)
            self._grid.addWidget(label, 2, 0, 1, max(1, len(data.transformed)))
            self._shown.append(label)
        self._row(3, data.transformed, [f"{n}, transformed" for n in data.image_targets])
        self.setVisible(bool(data.images))

    def _row(self, row: int, images: Sequence[SampleImage], names: Sequence[str]) -> None:
        for column, (image, name) in enumerate(zip(images, names, strict=False)):
            label = make.named(make.label(""), f"data_image_{row}_{column}", name, name)
            label.setPixmap(pixmap_of(image, _SIDE))
            self._place(label, row, column)

    def _place(self, widget: QWidget, row: int, column: int) -> None:
        self._grid.addWidget(widget, row, column, Qt.AlignmentFlag.AlignCenter)
        self._shown.append(widget)
