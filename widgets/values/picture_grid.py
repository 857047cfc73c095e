"""Where the cells of a tensor's picture are: geometry without painting."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.protocol import Picture

MAX_CELL = 56.0
"""The largest width and height of a cell, in pixels."""
MAX_STRETCH = 3.0
"""The largest ratio of a heat map's cells, width to height or height to width."""
MIN_STRIP = 24.0
"""The height (width) in pixels to which a heat map of one row (column) may stretch."""
TILE_GAP = 4.0
"""The gap between the images of an image grid, in pixels."""

Cell = tuple[int, ...]
"""(row, column), or (image, row, column)."""


def values_of(picture: Picture) -> NDArray[np.float32]:
    """The picture's numbers: float32, shape `picture.shape`. Raises ValueError unless `data` has
    4 bytes for each element."""
    return np.frombuffer(picture.data, "<f4").reshape(picture.shape)


def source_index(picture: Picture, cell: Cell) -> str:
    """The cell's index as Python code: in the tensor if the picture has all of its elements
    (`[0, 3, 5]`), else in the picture (`picture[3, 5]`)."""
    index = source_element(picture, cell)
    if index is None:
        return "picture[" + ", ".join(map(str, cell)) + "]"
    if not picture.source_shape:
        return "item()"
    return "[" + ", ".join(map(str, index)) + "]"


def source_element(picture: Picture, cell: Cell) -> tuple[int, ...] | None:
    """The index in the tensor of a cell's element; None if the picture leaves elements out."""
    if picture.sampled or math.prod(picture.source_shape) != math.prod(picture.shape):
        return None
    flat = int(np.ravel_multi_index(cell, picture.shape))
    return tuple(int(i) for i in np.unravel_index(flat, picture.source_shape))


def matrix_steps(picture: Picture, rows: int, columns: int) -> tuple[int, int]:
    """How many (rows, columns) of a matrix there are from one cell of its picture to the next."""
    return -(-rows // picture.shape[-2]), -(-columns // picture.shape[-1])


@dataclass(frozen=True)
class Grid:
    """Cells of `rows` x `columns` in each of `tiles` tiles, `tile_columns` tiles side by side.

    (`x`, `y`) is the top left corner, (`cell_w`, `cell_h`) a cell's size, all in pixels.
    """

    tiles: int
    rows: int
    columns: int
    tile_columns: int
    x: float
    y: float
    cell_w: float
    cell_h: float

    @property
    def tile_w(self) -> float:
        return self.columns * self.cell_w

    @property
    def tile_h(self) -> float:
        return self.rows * self.cell_h

    def tile_origin(self, tile: int) -> tuple[float, float]:
        """The (x, y) of the top left corner of a tile, in pixels."""
        row, column = divmod(tile, self.tile_columns)
        return (
            self.x + column * (self.tile_w + TILE_GAP),
            self.y + row * (self.tile_h + TILE_GAP),
        )

    def cell_rect(self, cell: Cell) -> tuple[float, float, float, float]:
        """(x, y, width, height) of a cell in pixels."""
        tile, row, column = cell if len(cell) == 3 else (0, *cell)
        x, y = self.tile_origin(tile)
        return x + column * self.cell_w, y + row * self.cell_h, self.cell_w, self.cell_h

    def cell_at(self, x: float, y: float) -> tuple[int, int, int] | None:
        """(tile, row, column) of the cell at a point; None outside of all cells."""
        tile_column, dx = divmod(x - self.x, self.tile_w + TILE_GAP)
        tile_row, dy = divmod(y - self.y, self.tile_h + TILE_GAP)
        if not 0 <= tile_column < self.tile_columns or tile_row < 0:
            return None
        tile = int(tile_row * self.tile_columns + tile_column)
        if tile >= self.tiles or dx >= self.tile_w or dy >= self.tile_h:
            return None
        return tile, int(dy / self.cell_h), int(dx / self.cell_w)


def fit_grid(shape: tuple[int, ...], width: float, height: float) -> Grid:
    """The largest grid that shows a picture of `shape` centred in `width` x `height` pixels.

    Images keep square cells; heat maps may stretch. Raises ValueError on an empty picture.
    """
    if len(shape) not in (2, 3) or 0 in shape:
        raise ValueError(f"A picture has shape (rows, columns) or (images, rows, columns): {shape}")
    tiles, rows, columns = shape if len(shape) == 3 else (1, *shape)
    if len(shape) == 2:
        cell_w, cell_h = _stretched(rows, columns, width, height)
        tile_columns = 1
    else:
        tile_columns, side = _tiling(tiles, rows, columns, width, height)
        cell_w = cell_h = side
    tile_rows = math.ceil(tiles / tile_columns)
    used_w = tile_columns * columns * cell_w + (tile_columns - 1) * TILE_GAP
    used_h = tile_rows * rows * cell_h + (tile_rows - 1) * TILE_GAP
    x = max(0.0, (width - used_w) / 2)
    y = max(0.0, (height - used_h) / 2)
    return Grid(tiles, rows, columns, tile_columns, x, y, cell_w, cell_h)


def _stretched(rows: int, columns: int, width: float, height: float) -> tuple[float, float]:
    cell_w = min(width / columns, MAX_CELL)
    cell_h = min(height / rows, MAX_CELL)
    if rows == 1:
        return cell_w, min(cell_h, max(MIN_STRIP, cell_w * MAX_STRETCH))
    if columns == 1:
        return min(cell_w, max(MIN_STRIP, cell_h * MAX_STRETCH)), cell_h
    return min(cell_w, cell_h * MAX_STRETCH), min(cell_h, cell_w * MAX_STRETCH)


def _tiling(tiles: int, rows: int, columns: int, width: float, height: float) -> tuple[int, float]:
    """(number of tiles side by side, cell size in pixels) with the largest cells; if several are
    equally large, the fewest tiles side by side."""
    best = (1, 0.0)
    for side_by_side in range(1, tiles + 1):
        high = math.ceil(tiles / side_by_side)
        room_w = (width - (side_by_side - 1) * TILE_GAP) / (side_by_side * columns)
        room_h = (height - (high - 1) * TILE_GAP) / (high * rows)
        side = min(room_w, room_h, MAX_CELL)
        if side > best[1]:
            best = (side_by_side, side)
    # Without room for any cell, cells have the smallest size.
    return best if best[1] > 0 else (math.ceil(math.sqrt(tiles)), 0.5)
