"""The data of a live plot: named series over the optimizer's steps, raw and smoothed."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widgets.training.pyramid import Floats, Pyramid

SMOOTHING = 0.9
"""Weight of the past in the exponential moving average."""
CAPACITY = 1 << 16
"""The most points of one series; more than a plot has pixels, so that zooming shows details."""


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


class Track:
    """The points of one series. A number that is not finite is a gap in the line: there are
    `bad_count` of these, the first at step `first_bad`; `all_bad_since` is the step from which on
    all are, None if the newest is finite.

    At most CAPACITY points are kept: beyond, the older half of them keeps the lowest and the
    highest of each four points.
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
        """Append points; raises ValueError as `Pyramid.extend` does."""
        steps = np.atleast_1d(np.asarray(x, np.float64))
        values = np.atleast_1d(np.asarray(y, np.float64))
        bad = ~np.isfinite(values)
        self.raw.extend(steps, np.where(bad, np.nan, values))
        if bad.any():
            self.bad_count += int(bad.sum())
            if self.first_bad is None:
                self.first_bad = float(steps[bad][0])
        if len(bad):
            good = np.flatnonzero(~bad)
            begin = int(good[-1]) + 1 if len(good) else 0
            if begin == len(bad):
                self.all_bad_since = None
            elif self.all_bad_since is None or len(good):
                self.all_bad_since = float(steps[begin])
        self.smooth.extend(steps, self._smoothed(values, bad))
        while len(self.raw) > CAPACITY:
            self.raw, self.smooth = _thinned(self.raw), _thinned(self.smooth)

    def _smoothed(self, values: Floats, bad: NDArray[np.bool_]) -> Floats:
        """The exponential moving average with bias correction (D. Kingma and J. Ba, "Adam", 2015,
        section 3). Gaps do not change it."""
        good = values[~bad]
        averages = np.append(self._sum, _moving_sums(self._sum, good))
        self._sum = float(averages[-1])
        early = averages[: max(0, _CORRECTED - self._count)]  # later corrections are below rounding
        weights = 1 - SMOOTHING ** (self._count + np.arange(len(early)))
        early[:] = np.divide(early, weights, out=np.full(len(early), np.nan), where=weights > 0)
        self._count += len(good)
        return averages[np.cumsum(~bad)] if bad.any() else averages[1:]  # a gap repeats the last


_CORRECTED = 400
"""So many numbers have a bias that float64 can hold: SMOOTHING**400 is 5e-19."""
_BLOCK = 128
_POWERS = SMOOTHING ** np.arange(_BLOCK + 1)
_AGES = np.subtract.outer(np.arange(_BLOCK), np.arange(_BLOCK))
_WEIGHTS = np.where(_AGES >= 0, (1 - SMOOTHING) * SMOOTHING ** np.maximum(_AGES, 0), 0.0).T


def _moving_sums(start: float, values: Floats) -> Floats:
    """s(k) = SMOOTHING s(k-1) + (1 - SMOOTHING) values(k), with `start` before the first.

    Within blocks this is one matrix product; only from block to block it goes number by number.
    """
    padded = np.zeros(-(-len(values) // _BLOCK) * _BLOCK)
    padded[: len(values)] = values
    sums = padded.reshape(-1, _BLOCK) @ _WEIGHTS
    starts = np.empty(len(sums))
    for block, end in enumerate(sums[:, -1].tolist()):
        starts[block] = start
        start = _POWERS[_BLOCK] * start + end
    sums += np.multiply.outer(starts, _POWERS[1:])
    return sums.ravel()[: len(values)]


def _thinned(points: Pyramid) -> Pyramid:
    """The older half of the points thinned to the lowest and the highest of each four, in their
    order; the first point and the newer half as they are."""
    blocks = len(points) // 8
    old = 1 + blocks * 4
    x, y = points.x[1:old].reshape(-1, 4), points.y[1:old].reshape(-1, 4)
    low = np.where(np.isnan(y), np.inf, y).argmin(axis=1)
    high = np.where(np.isnan(y), -np.inf, y).argmax(axis=1)
    same = low == high  # one point stands for all: take a second one, so that a gap stays
    high = np.where(same, (low + 3) % 4, high)
    kept = np.sort(np.stack([low, high], axis=1), axis=1)
    rows = np.arange(blocks)[:, None]
    thin = Pyramid()
    thin.extend(
        np.concatenate([points.x[:1], x[rows, kept].ravel(), points.x[old:]]),
        np.concatenate([points.y[:1], y[rows, kept].ravel(), points.y[old:]]),
    )
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
