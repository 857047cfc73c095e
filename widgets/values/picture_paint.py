"""Painting the parts of a tensor's picture: cells, numbers in them, a frame, the legend.

`values` and `rgb` have an entry for each cell: (rows, columns) or (images, rows, columns), and a
last dimension of 3 in `rgb`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QImage, QLinearGradient, QPainter, QPen

from widgets import theme
from widgets.painted_widget import set_small_font
from widgets.text import format_number
from widgets.values.picture_grid import Grid

LEGEND_HEIGHT = 40
NUMBERS_MIN_CELL = (38.0, 16.0)
"""Numbers are written into cells at least this wide and high, in pixels."""
HATCH_MIN_CELL = 5.0
MARK_MIN = 8.0
"""The frame of a marked cell is at least this wide and high, in pixels."""


def paint_cells(painter: QPainter, grid: Grid, rgb: NDArray[np.uint8]) -> None:
    """Paint each cell as a rectangle of its colour, without smoothing between cells."""
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    tiles = np.ascontiguousarray(rgb.reshape(grid.tiles, grid.rows, grid.columns, 3))
    for tile in range(grid.tiles):
        image = QImage(
            tiles[tile].data,
            grid.columns,
            grid.rows,
            3 * grid.columns,
            QImage.Format.Format_RGB888,
        )
        x, y = grid.tile_origin(tile)
        painter.drawImage(QRectF(x, y, grid.tile_w, grid.tile_h), image)


def paint_hatch(painter: QPainter, grid: Grid, values: NDArray[np.float32]) -> None:
    """Hatch the cells whose numbers are NaN or infinite."""
    if min(grid.cell_w, grid.cell_h) < HATCH_MIN_CELL:
        return
    brush = QBrush(theme.current().color("surface"), Qt.BrushStyle.BDiagPattern)
    for cell in np.argwhere(~np.isfinite(values)):
        painter.fillRect(QRectF(*grid.cell_rect(tuple(cell.tolist()))), brush)


def paint_numbers(
    painter: QPainter,
    grid: Grid,
    values: NDArray[np.float32],
    rgb: NDArray[np.uint8],
    font: QFont,
) -> None:
    """Write each number into its cell, black or white, if the cells are large enough. A number that
    is wider than its cell has one digit; if that is too wide as well, it is left out."""
    if grid.cell_w < NUMBERS_MIN_CELL[0] or grid.cell_h < NUMBERS_MIN_CELL[1]:
        return
    set_small_font(painter, font)
    for cell, value in np.ndenumerate(values):
        color = QColor(*rgb[cell].tolist())
        ink = "#000000" if _luminance(color) > 0.25 else "#ffffff"
        painter.setPen(QColor(ink))
        rect = QRectF(*grid.cell_rect(cell))
        if not np.isfinite(value):  # no hatch behind the letters
            painter.fillRect(QRectF(rect.x(), rect.center().y() - 8, rect.width(), 16), color)
        texts = (format_number(float(value), digits) for digits in (2, 1))
        width = painter.fontMetrics().horizontalAdvance
        text = next((text for text in texts if width(text) <= rect.width()), "")
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, text)


def paint_mark(painter: QPainter, cell: QRectF, role: str) -> None:
    """Frame a cell in the colour of a role. The frame of a small cell is larger than the cell."""
    colors = theme.current()
    more = max(0.0, (MARK_MIN - min(cell.width(), cell.height())) / 2)
    frame = cell.adjusted(-more, -more, more, more)
    for width, each in (
        (5, "surface"),
        (3, role),
    ):  # the wide edge in the surface's colour separates the frame from cells of any colour
        painter.setPen(QPen(colors.color(each), width))
        painter.drawRect(frame)


def paint_legend(
    painter: QPainter,
    area: QRectF,
    ends: tuple[float, float],
    table: NDArray[np.uint8],
    readout: str,
) -> None:
    """Paint the colour bar with the numbers at its `ends`, and the `readout` of the cell under the
    cursor. `table` is the colour map: `colormap.SIZE` rows of red, green, blue."""
    colors = theme.current()
    top = area.top()
    width = min(200.0, area.width() - 16.0)
    bar = QRectF(8, top + 4, width, 8)
    gradient = QLinearGradient(bar.topLeft(), bar.topRight())
    for stop, (r, g, b) in zip(np.linspace(0, 1, 17), table[::17][:17], strict=False):
        gradient.setColorAt(float(stop), QColor(int(r), int(g), int(b)))
    painter.fillRect(bar, gradient)
    painter.setPen(QPen(colors.color("border"), 1))
    painter.drawRect(bar)
    painter.setPen(colors.color("muted"))
    labels = QRectF(8, top + 14, width, 16)
    low, high = ends
    painter.drawText(labels, Qt.AlignmentFlag.AlignLeft, format_number(low, 3))
    painter.drawText(labels, Qt.AlignmentFlag.AlignRight, format_number(high, 3))
    if low < 0 < high:
        painter.drawText(labels, Qt.AlignmentFlag.AlignHCenter, "0")
    painter.setPen(colors.color("text"))
    if area.width() - width > 180:
        beside = QRectF(width + 24, top, area.width() - width - 32, 20)
        painter.drawText(beside, Qt.AlignmentFlag.AlignRight, readout)
    else:
        below = QRectF(8, top + 26, area.width() - 16, 16)
        painter.drawText(below, Qt.AlignmentFlag.AlignLeft, readout)


def _luminance(color: QColor) -> float:
    """Relative luminance, 0 to 1 (approximate gamma of 2.2)."""
    r, g, b = color.redF(), color.greenF(), color.blueF()
    return 0.2126 * r**2.2 + 0.7152 * g**2.2 + 0.0722 * b**2.2
