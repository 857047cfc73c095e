"""The data of a live plot: named series over the optimizer's steps, raw and smoothed."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widgets.training.plots.pyramid import Floats, Pyramid, check_rising

SMOOTHING = 0.9
"""Weight of the past in the exponential moving average."""
CAPACITY = 1 << 16
"""The most points of one series; more than a plot has pixels, so that zooming shows details."""
_PORTION = 1 << 17
"""The most points that are appended at a time: their averages stay in the processor's cache."""


@dataclass(frozen=True)
class Series:
    """One line of a plot. `key` names it in code, `title` on screen; `color` is an index into
    `Theme.series`. With `points`, each point is a dot and the line is not smoothed, for series with
    one point per epoch."""

    key: str
    title: str
    color: int = 0
    points: bool = False
    tip: str = ""


@dataclass(frozen=True)
class Overlay:
    """A curve of the run `title`; `color` is an index into `Theme.series`. `is_smoothed`: it is
    smoothed where the plot is. `notes` are words of the user's at its steps."""

    title: str
    color: int
    steps: Sequence[float]
    values: Sequence[float]
    is_smoothed: bool
    notes: tuple[tuple[int, str], ...] = ()


class Track:
    """The points of one series. A number that is not finite is a gap in the line: there are
    `bad_count` of these, the first at step `first_bad`; `all_bad_since` is the step from which on
    all are, None if the newest is finite.

    At most CAPACITY points are kept: beyond, the older half of them keeps the lowest and the
    highest point of each of CAPACITY // 8 blocks.
    """

    def __init__(self) -> None:
        self.raw = Pyramid()
        self.smooth = Pyramid()
        self.first_bad: float | None = None
        self.all_bad_since: float | None = None
        self.bad_count = 0
        self._sum = 0.0
        self._count = 0

    def extend(self, x: ArrayLike, y: ArrayLike) -> None:
        """Append points. Raises ValueError as `Pyramid.extend` does, for the points from
        a multiple of _PORTION on; those before it are kept."""
        steps, values = np.atleast_1d(x), np.atleast_1d(y)
        if steps.shape != values.shape or steps.ndim != 1:
            raise ValueError(f"x and y differ: {steps.shape} and {values.shape}")
        for start in range(0, len(steps), _PORTION):
            part = slice(start, start + _PORTION)
            self._extend(np.asarray(steps[part], np.float64), np.asarray(values[part], np.float64))

    def _extend(self, steps: Floats, values: Floats) -> None:
        bad = ~np.isfinite(values)
        self.raw = _bounded(self.raw, steps, np.where(bad, np.nan, values))
        if bad.any():
            self.bad_count += int(bad.sum())
            if self.first_bad is None:
                self.first_bad = float(steps[bad][0])
        good = np.flatnonzero(~bad)
        begin = int(good[-1]) + 1 if len(good) else 0
        if begin == len(bad):
            self.all_bad_since = None
        elif self.all_bad_since is None or len(good):
            self.all_bad_since = float(steps[begin])
        self.smooth = _bounded(self.smooth, steps, self._smoothed(values, bad))

    def _smoothed(self, values: Floats, bad: NDArray[np.bool_]) -> Floats:
        """The exponential moving average with bias correction (D. Kingma and J. Ba, "Adam", 2015,
        section 3). Gaps do not change it."""
        good = values[~bad] if bad.any() else values
        averages = _moving_sums(self._sum, good)
        self._sum = float(averages[-1])
        early = averages[: max(0, _CORRECTED - self._count)]  # later corrections are below rounding
        weights = 1 - SMOOTHING ** (self._count + np.arange(len(early)))
        early[:] = np.divide(early, weights, out=np.full(len(early), np.nan), where=weights > 0)
        self._count += len(good)
        return averages[np.cumsum(~bad)] if bad.any() else averages[1:]  # a gap repeats the last


_CORRECTED = 400
"""The bias of an average matters for this many numbers only: SMOOTHING**400 is 5e-19, below
float64's rounding."""


def _moving_sums(start: float, values: Floats) -> Floats:
    """`start`, then s(k) = SMOOTHING s(k-1) + (1 - SMOOTHING) values(k).

    Each round doubles how many numbers are in a sum, until the weight of older ones is zero.
    """
    sums = np.append(start, values)
    sums[1:] *= 1 - SMOOTHING
    shift, weight, older = 1, SMOOTHING, np.empty_like(sums)
    while shift < len(sums) and weight:
        sums[shift:] += np.multiply(sums[:-shift], weight, out=older[shift:])
        shift, weight = 2 * shift, weight * weight
    return sums


def _bounded(points: Pyramid, x: Floats, y: Floats) -> Pyramid:
    """`points` with (x, y) after them, thinned when they are more than CAPACITY.

    The first point, the newest half of CAPACITY and what fills no block stay; each block of older
    points keeps its lowest and its highest, in their order. Raises ValueError as `Pyramid.extend`.
    """
    if len(points) + len(x) <= CAPACITY:
        points.extend(x, y)
        return points
    check_rising(points.x[-1:], x)
    x, y = np.append(points.x, x), np.append(points.y, y)
    blocks = CAPACITY // 8
    width = (len(x) - 1 - CAPACITY // 2) // blocks
    old = 1 + blocks * width
    rows = y[1:old].reshape(blocks, width)
    is_gap = np.isnan(rows)
    has_gaps = is_gap.any()
    low = (np.where(is_gap, np.inf, rows) if has_gaps else rows).argmin(axis=1)
    high = (np.where(is_gap, -np.inf, rows) if has_gaps else rows).argmax(axis=1)
    same = low == high  # one point stands for all: take a second one, so that a gap stays
    high = np.where(same, (low + width - 1) % width, high)
    kept = np.stack([np.minimum(low, high), np.maximum(low, high)], axis=1)
    kept += np.arange(1, old, width)[:, None]
    kept = np.concatenate([[0], kept.ravel(), np.arange(old, len(x))])
    thin = Pyramid()
    thin.extend(x[kept], y[kept])
    return thin


def write_csv(file: TextIO, series: Sequence[Series], tracks: dict[str, Track]) -> None:
    """One row per step, one column per series; a cell is empty where the number is not finite."""
    rows: dict[float, dict[str, float]] = {}
    for line in series:
        raw = tracks[line.key].raw
        for step, value in zip(raw.x.tolist(), raw.y.tolist(), strict=True):
            row = rows.setdefault(step, {})
            if value == value:
                row[line.key] = value
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["step", *(line.key for line in series)])
    for step in sorted(rows):
        writer.writerow(
            [
                f"{step:g}" if step % 1 else int(step),
                *(rows[step].get(line.key, "") for line in series),
            ]
        )


def bad_words(track: Track) -> str:
    """Where numbers of a series are not finite."""
    if track.first_bad == track.all_bad_since:
        return f"is NaN or infinite from step {track.first_bad:,.0f} on"
    if track.bad_count == 1:
        return f"was NaN or infinite at step {track.first_bad:,.0f}"
    return f"was NaN or infinite at {track.bad_count:,} steps, first at {track.first_bad:,.0f}"


def reach(low: float, high: float, y: Floats) -> tuple[float, float]:
    """Widen low..high to the finite numbers of y."""
    finite = y[np.isfinite(y)]
    if not finite.size:
        return low, high
    return min(low, float(finite.min())), max(high, float(finite.max()))
