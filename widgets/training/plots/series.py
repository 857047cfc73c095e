"""The data of a live plot: named series over the optimizer's steps, raw and smoothed."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TextIO

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


class BadSteps(NamedTuple):
    """Steps whose numbers are NaN or infinite: the first is number `first`, or one of those from
    `first_from` on that have no point. There are `count`, or more if `is_least`. All are
    since step `since`, None if the newest is finite."""

    first: float
    first_from: float
    count: int
    is_least: bool
    since: float | None


class Track:
    """The points of one series. A number that is not finite is a gap in the line: `bad` says where
    these are, None if there are none. Between two points there may be steps that have none.

    At most CAPACITY points are kept: beyond, the older half of them keeps the lowest and the
    highest point of each of CAPACITY // 8 blocks.
    """

    def __init__(self) -> None:
        self.raw = Pyramid()
        self.smooth = Pyramid()
        self.bad: BadSteps | None = None
        self._newest: float | None = None
        self._has_all = True  # the steps up to the newest
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
        if len(steps):
            self._find_bad(steps, bad)
        self.smooth = _bounded(self.smooth, steps, self._smoothed(values, bad))

    def _find_bad(self, steps: Floats, bad: NDArray[np.bool_]) -> None:
        newest = min(float(steps[0]), 1.0) - 1 if self._newest is None else self._newest
        before, self._newest = np.append(newest, steps[:-1]), float(steps[-1])
        self._has_all &= bool((steps - before <= 1).all())
        known = self.bad
        if known is None and bad.any():
            first, after = float(steps[bad][0]), float(before[bad][0])
            known = BadSteps(first, min(first, after + 1), 0, False, None)
        if known is not None:
            since, good = known.since, np.flatnonzero(~bad)
            begin = int(good[-1]) + 1 if len(good) else 0
            if begin == len(bad):
                since = None
            elif since is None or len(good):
                since = float(steps[begin])
            count = known.count + int(bad.sum())
            self.bad = known._replace(count=count, is_least=not self._has_all, since=since)

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


def bad_words(bad: BadSteps) -> str:
    """Where numbers of a series are not finite."""
    is_exact = bad.first == bad.first_from
    between = f"between steps {bad.first_from:,.0f} and {bad.first:,.0f}"
    if bad.first == bad.since:
        if is_exact:
            return f"is NaN or infinite from step {bad.first:,.0f} on"
        return f"became NaN or infinite {between}"
    if bad.count == 1 and is_exact and not bad.is_least:
        return f"was NaN or infinite at step {bad.first:,.0f}"
    steps = f"{bad.count:,} step{'s' if bad.count > 1 else ''}{' or more' * bad.is_least}"
    first = f"at {bad.first:,.0f}" if is_exact else between
    return f"was NaN or infinite at {steps}, first {first}"


def reach(low: float, high: float, y: Floats) -> tuple[float, float]:
    """Widen low..high to the finite numbers of y."""
    finite = y[np.isfinite(y)]
    if not finite.size:
        return low, high
    return min(low, float(finite.min())), max(high, float(finite.max()))
