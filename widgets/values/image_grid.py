"""A tensor as images: (H, W), (C, H, W) or (N, C, H, W), in grey or in colour."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from engine.protocol import Picture
from widgets import make, theme
from widgets.painted_widget import PaintedWidget, set_small_font
from widgets.text import format_number
from widgets.theme import GRID
from widgets.values.picture_grid import fit_grid, values_of
from widgets.values.picture_paint import paint_cells

_FOOT = 24


class ImageGrid(PaintedWidget):
    """Paints images side by side. Three channels make one image of red, green and blue, one channel
    a grey image. With any other number, each channel is a grey image of its own."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "image_grid", "The tensor as images")
        self.setToolTip(
            "The last three dimensions are channels, height and width (CHW), all before them a"
            " batch. Three channels make a colour image."
        )
        self._images: NDArray[np.uint8] = np.zeros((0, 0, 0, 3), np.uint8)
        self._words = ""
        self._empty_text = "Nothing to show yet"

    def show_picture(self, picture: Picture | None, empty_text: str = "") -> None:
        """Show `picture`; without one, `empty_text`. Raises ValueError on a damaged picture."""
        self._empty_text = empty_text or "Nothing to show"
        if picture is None or len(picture.source_shape) < 2:
            if picture is not None:
                self._empty_text = "An image needs at least two dimensions: height and width"
            self._images = np.zeros((0, 0, 0, 3), np.uint8)
        else:
            self._images, self._words = _as_images(picture)
        self.update()

    def images(self) -> NDArray[np.uint8]:
        """The painted colours: uint8 red, green, blue, shape (images, rows, columns, 3)."""
        return self._images

    def words(self) -> str:
        """The number of images, and the values painted black and white, in words."""
        return self._words

    def sizeHint(self) -> QSize:
        return QSize(360, 240)

    def paint(self, painter: QPainter) -> None:
        colors = theme.current()
        painter.fillRect(self.rect(), colors.color("surface"))
        if not self._images.size:
            self.paint_empty(painter, self._empty_text)
            return
        room = QRectF(self.rect()).adjusted(GRID, GRID, -GRID, -_FOOT)
        grid = fit_grid(self._images.shape[:3], max(1.0, room.width()), max(1.0, room.height()))
        grid = replace(grid, x=grid.x + room.x(), y=grid.y + room.y())
        paint_cells(painter, grid, self._images)
        set_small_font(painter, self.font())
        painter.setPen(colors.color("muted"))
        foot = QRectF(GRID, self.height() - _FOOT + 4, self.width() - 2 * GRID, 16)
        painter.drawText(foot, Qt.AlignmentFlag.AlignLeft, self._words)


def _as_images(picture: Picture) -> tuple[NDArray[np.uint8], str]:
    values = values_of(picture)
    planes_NHW = values.reshape(-1, *values.shape[-2:])
    low, high, words = _range(planes_NHW)
    scaled = (planes_NHW.astype(np.float64) - low) / (high - low)
    bytes_NHW = np.rint(np.nan_to_num(np.clip(scaled, 0, 1)) * 255).astype(np.uint8)
    shape = picture.source_shape
    if len(shape) > 2 and shape[-3] == 3:
        whole = len(bytes_NHW) // 3
        colored = bytes_NHW[: whole * 3].reshape(whole, 3, *bytes_NHW.shape[1:])
        images, kind = colored.transpose(0, 2, 3, 1), "in colour"
        there = int(np.prod(shape[:-3], dtype=np.int64))
    else:
        images, kind = np.repeat(bytes_NHW[..., None], 3, axis=-1), "in grey"
        there = int(np.prod(shape[:-2], dtype=np.int64))
    count = f"{len(images):,} of {there:,}" if len(images) < there else f"{there:,}"
    plural = "image" if there == 1 else "images"
    thinned = " · some pixels left out" if values.shape[-2:] != shape[-2:] else ""
    return images, f"{count} {plural} {kind} · {words}{thinned}"


def _range(values: NDArray[np.float32]) -> tuple[float, float, str]:
    """The numbers painted black and white, and the same in words: 0 and 1 if all finite numbers are
    within, 0 and 255 if all are integers within, else the smallest and the largest."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    elif low >= 0 and high <= 255 and np.array_equal(finite, np.rint(finite)):
        low, high = 0.0, 255.0
    elif low == high:
        high = low + 1.0
    return low, high, f"black is {format_number(low, 4)}, white {format_number(high, 4)}"
