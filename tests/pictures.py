"""Compare what a widget looks like with a picture kept beside this file, in `pictures/`.

The program's own fonts are drawn alike everywhere, so two pictures of one widget differ in single
pixels at most. What differs in a spot that a person can see is a fault, however small its share.
Text that differs from run to run (an elapsed time, the machine's memory) is fixed by the test.

`UPDATE_PICTURES=1 make test` takes the pictures anew; look at them before you commit them.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QWidget
from scipy import ndimage

FOLDER = Path(__file__).parent / "pictures"
SCALE = 2
"""A kept picture is smaller than the widget by this factor."""
TOLERANCE = 10
"""Of 255, in any channel of a kept pixel: how far another antialiasing may lie off."""
LARGEST_SPOT = 2
"""Kept pixels that differ and touch each other. A minus sign has more."""


def assert_same_picture(widget: QWidget, name: str) -> None:
    """Fail when `widget` does not look like `pictures/{name}.png`; the failure says where the new
    picture lies, in which the differing spots are outlined."""
    image = taken(widget)
    kept = FOLDER / f"{name}.png"
    if os.environ.get("UPDATE_PICTURES"):
        FOLDER.mkdir(exist_ok=True)
        assert image.save(str(kept))
        return
    assert kept.exists(), f"{kept} is missing: run with UPDATE_PICTURES=1 and look at it"
    spots = differing_spots(image, QImage(str(kept)))
    if spots:
        path = Path(tempfile.mkdtemp(prefix="picture-")) / kept.name
        _outlined(image, spots).save(str(path))
        places = ", ".join(
            f"{spot.width()}x{spot.height()} at {spot.x()},{spot.y()}" for spot in spots[:5]
        )
        pytest.fail(f"{len(spots)} spots of {kept} differ: {places}. See {path}", pytrace=False)


def taken(widget: QWidget) -> QImage:
    """The widget's picture as it is kept."""
    return shrunk(widget.grab().toImage())


def shrunk(image: QImage) -> QImage:
    return image.scaled(
        image.size() / SCALE,
        Qt.AspectRatioMode.IgnoreAspectRatio,
        Qt.TransformationMode.SmoothTransformation,
    )


def differing_spots(left: QImage, right: QImage) -> list[QRect]:
    """The bounds of all spots, largest first; the whole picture when the sizes differ."""
    if left.size() != right.size():
        return [left.rect()]
    off_HW = np.abs(_pixels(left) - _pixels(right)).max(axis=2) > TOLERANCE
    labels_HW = np.zeros(off_HW.shape, int)
    ndimage.label(off_HW, structure=np.ones((3, 3)), output=labels_HW)
    sizes = np.bincount(labels_HW.ravel())
    bounds = ndimage.find_objects(labels_HW)
    spots = [number for number in range(1, len(sizes)) if sizes[number] > LARGEST_SPOT]
    spots.sort(key=lambda number: -sizes[number])
    return [_rect(*bounds[number - 1]) for number in spots]


def _rect(rows: slice, columns: slice) -> QRect:
    return QRect(columns.start, rows.start, columns.stop - columns.start, rows.stop - rows.start)


def _pixels(image: QImage) -> np.ndarray:
    """Colours: int16 (rows, columns, 3)."""
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    pixels_HWC = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), -1, 4)
    return pixels_HWC[:, : image.width(), :3].astype(np.int16)


def _outlined(image: QImage, spots: list[QRect]) -> QImage:
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    painter = QPainter(image)
    painter.setPen(QColor("magenta"))
    for spot in spots:
        painter.drawRect(spot.adjusted(-2, -2, 1, 1))
    painter.end()
    return image
