"""Stations of a line as the points that are painted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from .layers import Point


def curve(stations: Sequence[Point]) -> list[Point]:
    """A cubic Bézier spline (3n + 1 points) through the stations, upright at each of them."""
    points = [stations[0]]
    for (x0, y0), (x1, y1) in pairwise(stations):
        if x0 == x1:
            third = (y1 - y0) / 3
            points += [(x0, y0 + third), (x1, y1 - third), (x1, y1)]
        else:
            middle = (y0 + y1) / 2
            points += [(x0, middle), (x1, middle), (x1, y1)]
    return points if len(points) > 1 else points * 4


def corners(stations: Sequence[Point]) -> list[Point]:
    """A polyline that moves sideways halfway between two stations."""
    points = [stations[0]]
    for (x0, y0), (x1, y1) in pairwise(stations):
        if x0 != x1:
            middle = (y0 + y1) / 2
            points += [(x0, middle), (x1, middle)]
        points.append((x1, y1))
    return points if len(points) > 1 else points * 2
