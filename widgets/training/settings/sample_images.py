"""A row of sample images with their targets, and below it what the transforms make of them."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from engine.protocol import DataSnapshot, SampleImage
from widgets import make
from widgets.sample_picture import pixmap_of
from widgets.theme import GRID

_SIDE = 5 * GRID
"""The side of an image on screen, in pixels."""


class SampleImages(QWidget):
    """Nothing is shown for data that is not images."""

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
