"""Points that the user paints: what they may be, and erasing them."""

from __future__ import annotations

from collections.abc import Iterable
from math import hypot

from .document import PaintedPoint
from .limits import MAX_PAINTED_CLASSES


def point_problem(point: PaintedPoint) -> str:
    """Why a point cannot be one of a project, in a sentence; empty if it can."""
    x, y, label = point
    if not (-1 <= x <= 1 and -1 <= y <= 1):
        return f"The point ({x:g}, {y:g}) is outside the plane: coordinates are from -1 to 1."
    if not 0 <= label < MAX_PAINTED_CLASSES:
        return f"A painted point has a class from 0 to {MAX_PAINTED_CLASSES - 1}, not {label}."
    return ""


def rounded(x: float, y: float, label: int) -> PaintedPoint:
    """The point of the plane nearest to (x, y), in steps of a thousandth."""
    return round(min(max(x, -1.0), 1.0), 3), round(min(max(y, -1.0), 1.0), 3), label


def erased(
    points: Iterable[PaintedPoint], x: float, y: float, radius: float
) -> tuple[PaintedPoint, ...]:
    """Those that are farther than the radius from (x, y)."""
    return tuple(p for p in points if hypot(p[0] - x, p[1] - y) > radius)
