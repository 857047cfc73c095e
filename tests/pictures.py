"""Compare what a widget looks like with a picture kept beside this file, in `pictures/`.

`UPDATE_PICTURES=1 make test` takes the pictures anew; look at them before you commit them.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QWidget

FOLDER = Path(__file__).parent / "pictures"
SCALE = 2
"""A kept picture is smaller than the widget by this factor."""
CELL = 4
"""Side in kept pixels of the squares that are averaged, then compared: a glyph that lies half a
pixel off is no difference."""
TOLERANCE = 20
"""Of 255, in any channel of a cell's mean."""
ALLOWED_FRACTION = 0.004
"""Of cells that may differ: elapsed times, a blinking caret."""


def assert_same_picture(widget: QWidget, name: str) -> None:
    """Fail when `widget` does not look like `pictures/{name}.png`; the failure says where the new
    picture lies."""
    image = widget.grab().toImage()
    image = image.scaled(
        image.size() / SCALE,
        Qt.AspectRatioMode.IgnoreAspectRatio,
        Qt.TransformationMode.SmoothTransformation,
    )
    kept = FOLDER / f"{name}.png"
    if os.environ.get("UPDATE_PICTURES"):
        FOLDER.mkdir(exist_ok=True)
        assert image.save(str(kept))
        return
    assert kept.exists(), f"{kept} is missing: run with UPDATE_PICTURES=1 and look at it"
    differing = differing_fraction(image, QImage(str(kept)))
    if differing > ALLOWED_FRACTION:
        folder = Path(tempfile.mkdtemp(prefix="picture-"))
        image.save(str(folder / kept.name))
        pytest.fail(f"{differing:.1%} of {kept} differs from {folder / kept.name}", pytrace=False)


def differing_fraction(left: QImage, right: QImage) -> float:
    """The fraction of cells (0 to 1) whose mean colours differ by more than TOLERANCE; 1 when the
    sizes differ."""
    if left.size() != right.size():
        return 1.0
    off_HWC = np.abs(_cells(left) - _cells(right))
    return float((off_HWC.max(axis=2) > TOLERANCE).mean())


def _cells(image: QImage) -> np.ndarray:
    """Mean colours of the image's cells: float32 (rows, columns, 3)."""
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    height, width = image.height() // CELL * CELL, image.width() // CELL * CELL
    pixels_HWC = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), -1, 4)
    colors_HWC = pixels_HWC[:height, :width, :3].astype(np.float32)
    return colors_HWC.reshape(height // CELL, CELL, width // CELL, CELL, 3).mean(axis=(1, 3))
