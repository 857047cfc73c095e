"""A sample's image as a pixmap."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QImage, QPixmap

from engine.protocol import SampleImage


def pixmap_of(image: SampleImage, side: int) -> QPixmap:
    """As large as fits into `side` pixels; each pixel of the sample is a sharp square."""
    kind = QImage.Format.Format_Grayscale8 if image.is_grey else QImage.Format.Format_RGB888
    line = image.width * (1 if image.is_grey else 3)
    drawn = QImage(image.pixels, image.width, image.height, line, kind)
    return QPixmap.fromImage(drawn.scaled(side, side, Qt.AspectRatioMode.KeepAspectRatio))
