"""A window of a tensor as cells: their places, their marks, and stretching. No Qt."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.protocol import Cells

Index = tuple[int, ...]
Marks = dict[Index, str]
"""Element -> its mark: `selected`, `read`, `picked`, `repeated` (written more than once), `winner`
or `ghost`."""

CELL_HEIGHT = 24
MIN_CELL_WIDTH = 28
MAX_CELL_WIDTH = 88
HEADER = 20
"""The height of the column numbers and the width of the row numbers, in pixels."""
CAPTION = 20
CAPTION_LETTER = 7
GAP = 16
MAX_ROW_WIDTH = 960


def indices(cells: Cells) -> Iterator[Index]:
    """The indices of all elements of the window, in C order."""
    return itertools.product(
        *(range(at, at + n) for at, n in zip(cells.start, cells.size, strict=True))
    )


def reads_mark(cells: Cells, reads: Sequence[int | None]) -> Marks:
    """Mark the elements that are read. `reads` has for each dimension an index, or None for all."""
    return {
        index: "read"
        for index in indices(cells)
        if all(at is None or at == i for at, i in zip(reads, index, strict=True))
    }


def stretched(cells: Cells, result: Cells) -> tuple[Cells, Marks]:
    """An operand after broadcasting: `cells` repeated to the shape and window of `result`. The
    repetitions, which exist in no memory, are marked `ghost`."""
    own = len(cells.shape)
    missing = len(result.shape) - own
    texts = dict(zip(indices(cells), cells.texts, strict=False))
    ghosts: Marks = {}
    repeated: list[str] = []
    for index in indices(result):
        read = tuple(
            0 if size == 1 else at for at, size in zip(index[missing:], cells.shape, strict=True)
        )
        first = result.start[:missing] + tuple(
            start if size == 1 else at
            for at, start, size in zip(read, result.start[missing:], cells.shape, strict=True)
        )
        if index != first:
            ghosts[index] = "ghost"
        repeated.append(texts.get(read, ""))
    return Cells(result.shape, result.start, result.size, tuple(repeated if texts else ())), ghosts


def selected(element: Index | None) -> Marks:
    """The mark of the selected element; no mark without one."""
    return {} if element is None else {element: "selected"}


def written(index: Sequence[int | None]) -> str:
    """An index as Python code, with `:` for None (`[0, :, 2]`); empty for a scalar."""
    return f"[{', '.join(':' if at is None else str(at) for at in index)}]" if index else ""


@dataclass(frozen=True)
class Geometry:
    """Where the cells of a window are, in pixels. There is a tile of rows x columns for each index
    of the leading dimensions."""

    cells: Cells
    cell_width: int

    @property
    def rows(self) -> int:
        return self.cells.size[-2] if len(self.cells.size) > 1 else 1

    @property
    def columns(self) -> int:
        return self.cells.size[-1] if self.cells.size else 1

    @property
    def tiles(self) -> int:
        return math.prod(self.cells.size[:-2])

    @property
    def caption_height(self) -> int:
        return CAPTION if len(self.cells.shape) > 2 else 0

    @property
    def header_height(self) -> int:
        return HEADER if self.cells.shape else 0

    @property
    def header_width(self) -> int:
        return HEADER if len(self.cells.shape) > 1 else 0

    @property
    def tile_size(self) -> tuple[int, int]:
        """The (width, height) of a tile, in pixels."""
        return (
            max(self.header_width + self.columns * self.cell_width, self._caption_width),
            self.caption_height + self.header_height + self.rows * CELL_HEIGHT,
        )

    @property
    def _caption_width(self) -> int:
        """The width of the longest caption, that of the last tile (`[7, 11, :, :]`)."""
        if len(self.cells.shape) <= 2:
            return 0
        last = (max(size - 1, 0) for size in self.cells.shape[:-2])
        return self.header_width + CAPTION_LETTER * len(written((*last, None, None)))

    @property
    def tile_columns(self) -> int:
        """The number of tiles in a row: one for each index of dimension -3, if they fit."""
        width = self.tile_size[0] + GAP
        whole = self.cells.size[-3] if len(self.cells.size) > 2 else 1
        whole = whole if whole > 1 else self.tiles
        return max(1, min(whole, MAX_ROW_WIDTH // width))

    @property
    def size(self) -> tuple[int, int]:
        """The (width, height) of all tiles, in pixels."""
        width, height = self.tile_size
        tile_rows = math.ceil(self.tiles / self.tile_columns)
        return (
            self.tile_columns * (width + GAP) - GAP + 1,
            tile_rows * (height + GAP) - GAP + 1,
        )

    def tile_origin(self, tile: int) -> tuple[int, int]:
        """The (x, y) of the top left corner of a tile, in pixels."""
        row, column = divmod(tile, self.tile_columns)
        width, height = self.tile_size
        return column * (width + GAP), row * (height + GAP)

    def leading(self) -> Iterator[Index]:
        """The leading index of each tile."""
        cells = self.cells
        return indices(Cells(cells.shape[:-2], cells.start[:-2], cells.size[:-2]))

    def cell_origin(self, place: int) -> tuple[int, int]:
        """The (x, y) of the cell that is number `place` in C order."""
        tile, within = divmod(place, self.rows * self.columns)
        row, column = divmod(within, self.columns)
        x, y = self.tile_origin(tile)
        return (
            x + self.header_width + column * self.cell_width,
            y + self.caption_height + self.header_height + row * CELL_HEIGHT,
        )

    def index_at(self, x: float, y: float) -> Index | None:
        """The index of the element whose cell is at a point; None outside of all cells."""
        for place, index in enumerate(indices(self.cells)):
            left, top = self.cell_origin(place)
            if left <= x < left + self.cell_width and top <= y < top + CELL_HEIGHT:
                return index
        return None


def moved(shape: Sequence[int], index: Index, dim: int, by: int) -> Index:
    """The element `by` steps from `index` along dimension -1 or -2, at most at the edge. For any
    other `dim`, the element at the same place `by` tiles on, through all leading dimensions."""
    at = list(index)
    if dim > -3:
        at[dim] = min(max(at[dim] + by, 0), shape[dim] - 1)
        return tuple(at)
    leading = shape[:-2]
    flat = 0
    for place, size in zip(at, leading, strict=False):
        flat = flat * size + place
    flat = min(max(flat + by, 0), math.prod(leading) - 1)
    for d in reversed(range(len(leading))):
        flat, at[d] = divmod(flat, leading[d])
    return tuple(at)


def text_of(cells: Cells, index: Index) -> str:
    """The text of an element; empty if it is outside of the window or has no data."""
    return dict(zip(indices(cells), cells.texts, strict=False)).get(index, "")
