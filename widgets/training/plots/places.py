"""The places of plots in a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

UNITS = 6
"""The columns of the grid: a row of three plots, of two or of one fills them."""
WIDE_PX = 320
"""Three plots stand in a row where each is at least this wide."""


class Place(NamedTuple):
    row: int
    column: int
    units: int
    stretch: int


def columns_in(width_px: int, least_px: int, gap_px: int) -> int:
    """How many plots stand in a row, each at least `least_px` wide."""
    if width_px >= 3 * max(WIDE_PX, least_px) + 2 * gap_px:
        return 3
    return 2 if width_px >= 2 * least_px + gap_px else 1


def places(count: int, heads: int, columns: int) -> list[Place]:
    """The places of `count` plots. The first ones, `heads`, have rows of their own, two in each,
    and twice the height. The last row is filled, too."""
    rows = [*_rows(range(heads), min(columns, 2)), *_rows(range(heads, count), columns)]
    return [
        Place(row, column * UNITS // len(plots), UNITS // len(plots), 2 if plot < heads else 1)
        for row, plots in enumerate(rows)
        for column, plot in enumerate(plots)
    ]


def _rows(plots: Sequence[int], columns: int) -> list[Sequence[int]]:
    return [plots[start : start + columns] for start in range(0, len(plots), columns)]
