"""Turns the stations of a line into points to paint."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from .layer_graph import Point

TURN = 7.0
"""The distance from a corner at which a curve begins to turn."""
ROUND = 0.55
"""The share of the way to the corner at which control points make nearly a quarter of a circle."""


def curve(stations: Sequence[Point]) -> list[Point]:
    """A cubic Bézier spline (3n + 1 points) through the stations. It is upright at each of them; a
    level piece begins and ends with rounded corners."""
    points = [stations[0]]
    was_level = False
    for place, ((x0, y0), (x1, y1)) in enumerate(pairwise(stations)):
        is_level = y0 == y1 and x0 != x1
        if place and is_level != was_level:
            after = _towards((x0, y0), (x1, y1))
            points += [_mixed(points[-1], (x0, y0)), _mixed(after, (x0, y0)), after]
        was_level = is_level
        if x0 == x1 or is_level:
            if place + 2 < len(stations) and is_level != (y1 == stations[place + 2][1]):
                x1, y1 = _towards((x1, y1), (x0, y0))
            points += _straight(points[-1], (x1, y1))
        else:
            middle = (y0 + y1) / 2
            points += [(x0, middle), (x1, middle), (x1, y1)]
    return points if len(points) > 1 else points * 4


def _straight(start: Point, end: Point) -> list[Point]:
    (x0, y0), (x1, y1) = start, end
    return [(x0 + (x1 - x0) * part / 3, y0 + (y1 - y0) * part / 3) for part in (1, 2)] + [end]


def _towards(start: Point, end: Point) -> Point:
    """The point between two stations where the turn at the first one ends."""
    (x0, y0), (x1, y1) = start, end
    part = min(0.5, TURN / (abs(x1 - x0) + abs(y1 - y0)))
    return x0 + (x1 - x0) * part, y0 + (y1 - y0) * part


def _mixed(point: Point, corner: Point) -> Point:
    (x, y), (corner_x, corner_y) = point, corner
    return x + (corner_x - x) * ROUND, y + (corner_y - y) * ROUND


def corners(stations: Sequence[Point]) -> list[Point]:
    """A polyline that moves sideways halfway between two stations."""
    points = [stations[0]]
    for (x0, y0), (x1, y1) in pairwise(stations):
        if x0 != x1 and y0 != y1:
            middle = (y0 + y1) / 2
            points += [(x0, middle), (x1, middle)]
        points.append((x1, y1))
    return points if len(points) > 1 else points * 2
