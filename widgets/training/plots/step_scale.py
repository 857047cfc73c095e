"""The scale of a plot's steps: as they are, or their logarithms."""

from __future__ import annotations

from math import log2, log10

import numpy as np

from widgets.training.plots.pyramid import Floats, Pyramid

MIN_PLACED = 1e-3
"""The smallest number with a place on a logarithmic scale: no step is smaller."""


def placed(steps: Floats, log: bool) -> Floats:
    """Where steps are drawn; on a logarithmic scale NaN for those that have no place there."""
    if not log:
        return steps
    return np.log10(steps, where=steps > 0, out=np.full(np.shape(steps), np.nan))


def place_of(step: float, log: bool) -> float:
    """Where one step is drawn; one that has no place is at the left of all."""
    return log10(max(step, MIN_PLACED)) if log else step


def step_at(place: float, log: bool) -> float:
    return 10.0 ** min(place, 300.0) if log else place


def seen(
    points: Pyramid, first: float, last: float, pixels: int, log: bool
) -> tuple[Floats, Floats]:
    """A polyline of the points in first..last, as `Pyramid.query` gives it. On a logarithmic scale
    each stretch in which the steps double has as many points as it has pixels."""
    if not log:
        return points.query(first, last, pixels)
    begin = max(first, MIN_PLACED)
    if (positive := int(np.searchsorted(points.x, 0, "right"))) < len(points):
        begin = max(begin, float(points.x[positive]) / 2)
    parts = max(1, round(log2(max(last / begin, 1.0))))
    ends = np.geomspace(begin, max(last, begin), parts + 1)
    found: list[tuple[Floats, Floats]] = []
    until = np.inf
    for low, high in zip(ends[-2::-1], ends[:0:-1], strict=True):
        x, y = points.query(float(low), float(high), -(-pixels // parts))
        kept = x < until  # the next stretch tells of the others
        found.append((x[kept], y[kept]))
        until = x[0] if len(x) else until
    found.reverse()
    return np.concatenate([x for x, _ in found]), np.concatenate([y for _, y in found])
