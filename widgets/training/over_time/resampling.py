"""Histograms with bins of their own, brought to one grid of steps and values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.protocol import BINS, HistogramsSnapshot
from widgets.charts.axes import Scale

ROWS, COLUMNS = 96, 240
MIDDLE = 0.99

Floats = NDArray[np.float64]


def counts_of(found: HistogramsSnapshot) -> Floats:
    """One row of BINS counts for each step."""
    return np.frombuffer(found.counts, "<u4").reshape(-1, BINS).astype(np.float64)


def value_scale(found: HistogramsSnapshot, middle_only: bool) -> Scale:
    """The range from the lowest to the highest element of all steps. With `middle_only` the
    outermost elements are left out: at each step the share MIDDLE of the elements is inside."""
    lows, highs = np.array(found.lows), np.array(found.highs)
    if middle_only:
        counts = counts_of(found)
        ends = np.array([_middle(*row) for row in zip(lows, highs, counts, strict=True)])
        lows, highs = ends[:, 0], ends[:, 1]
    low, high = float(lows.min()), float(highs.max())
    if low == high:
        gap = abs(low) * 0.1 or 1.0
        low, high = low - gap, high + gap
    return Scale(low, high)


def _middle(low: float, high: float, counts: Floats) -> tuple[float, float]:
    """The ends of the bins that leave out (1 - MIDDLE) / 2 of the elements on either side."""
    outside = (1 - MIDDLE) / 2 * counts.sum()
    first = int(np.searchsorted(np.cumsum(counts), outside, side="right"))
    last = BINS - int(np.searchsorted(np.cumsum(counts[::-1]), outside, side="right"))
    width = (high - low) / BINS
    return low + min(first, BINS) * width, low + max(last, 0) * width


def step_scale(found: HistogramsSnapshot) -> Scale:
    first, last = found.steps[0], found.steps[-1]
    return Scale(float(first), float(last) if last > first else first + 1.0)


def looks_at(found: HistogramsSnapshot, x: Scale) -> NDArray[np.intp]:
    """For each column of the grid, the number of the newest look that is not after its middle."""
    columns = min(COLUMNS, max(1, int(x.high - x.low)))
    middles = x.low + (np.arange(columns) + 0.5) * (x.high - x.low) / columns
    return np.searchsorted(np.array(found.steps), middles, side="right") - 1


def shares(found: HistogramsSnapshot, x: Scale, y: Scale) -> Floats:
    """The share of all finite elements in each cell, in ROWS rows from the lowest values on; NaN
    where there are none. Within a bin elements count as evenly spread."""
    edges = np.linspace(y.low, y.high, ROWS + 1)
    columns = []
    for low, high, counts in zip(found.lows, found.highs, counts_of(found), strict=True):
        if low == high:
            column = np.zeros(ROWS)
            place = int((low - y.low) / (y.high - y.low) * ROWS)
            if 0 <= place <= ROWS:
                column[min(place, ROWS - 1)] = 1.0
        else:
            below = np.concatenate([[0.0], np.cumsum(counts)]) / counts.sum()
            column = np.diff(np.interp(edges, np.linspace(low, high, BINS + 1), below))
        columns.append(column)
    grid = np.stack(columns, axis=1)[:, looks_at(found, x)]
    return np.where(grid > 0, grid, np.nan)
