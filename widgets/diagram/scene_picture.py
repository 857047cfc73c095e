"""A picture of a scene's content, to be saved or copied."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from PySide6.QtCore import QMarginsF, QRectF, QSize
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QGraphicsItem, QGraphicsScene

from widgets import theme
from widgets.theme import GRID

if TYPE_CHECKING:  # the window shows before pictures are saved
    from widgets.save_picture import Paint

MAX_PICTURE_PX = 8192
"""The longest side of an image before PNG_SCALE that QImage and image viewers can handle."""
MAX_PICTURE_AREA_PX = 16_000_000
"""The largest area of such an image: at PNG_SCALE it takes 256 MB, the limit of Qt's reader."""


def scene_picture(scene: QGraphicsScene, rect: QRectF, bounded: bool = True) -> tuple[QSize, Paint]:
    """The part `rect` of a scene with a margin: its size in pixels, and a function that paints it.

    A pixel of the scene is one of the picture; with `bounded`, it is smaller if the picture would
    not fit in MAX_PICTURE_PX and MAX_PICTURE_AREA_PX.
    """
    if rect.isEmpty():
        rect = QRectF(0, 0, 16 * GRID, 16 * GRID)
    margin = 2 * GRID
    rect = QRectF(rect.marginsAdded(QMarginsF(margin, margin, margin, margin)).toAlignedRect())
    scale = 1.0
    if bounded:
        width, height = rect.width(), rect.height()
        by_area = math.sqrt(MAX_PICTURE_AREA_PX / (width * height))
        scale = min(scale, MAX_PICTURE_PX / max(width, height), by_area)
    size = (rect.size() * scale).toSize()

    def paint(painter: QPainter) -> None:
        whole = QRectF(0, 0, size.width(), size.height())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(whole, theme.current().color("canvas"))
        with _uncached(scene.items()):
            scene.render(painter, whole, rect)

    return size, paint


@contextmanager
def _uncached(items: Iterable[QGraphicsItem]) -> Iterator[None]:
    """Paint items without their caches, which have the screen's resolution and text as pixels."""
    modes = [(item, item.cacheMode()) for item in items]
    for item, _ in modes:
        item.setCacheMode(QGraphicsItem.CacheMode.NoCache)
    try:
        yield
    finally:
        for item, mode in modes:
            item.setCacheMode(mode)
