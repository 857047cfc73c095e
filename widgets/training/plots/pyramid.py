"""A growing series of numbers that is drawn in the same time whatever its length.

Above the raw points are levels of (minimum, maximum) over blocks of 4, 16, 64, ... points. A
picture of `pixels` columns reads the finest level with at most two blocks a column, so that it
costs the same for a thousand points and for ten million, and shows every extreme.
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

FACTOR = 4
"""The number of blocks of one level in a block of the next."""

Floats = NDArray[np.float64]


class _Column:
    """A float64 array that grows at its end in amortised constant time."""

    def __init__(self) -> None:
        self._data: Floats = np.empty(64)
        self.size = 0

    def extend(self, values: Floats) -> None:
        needed = self.size + len(values)
        if needed > len(self._data):
            grown = np.empty(max(needed, 2 * len(self._data)))
            grown[: self.size] = self._data[: self.size]
            self._data = grown
        self._data[self.size : needed] = values
        self.size = needed

    @property
    def view(self) -> Floats:
        """A view of the numbers, valid until the next `extend`."""
        return self._data[: self.size]


def check_rising(last: Floats, x: Floats) -> None:
    """Raises ValueError when x (n) is not finite or falls; `last` holds the number before it, if
    there is one."""
    ends = [*last, *x[:1], *x[-1:]]
    rises = all(a <= b for a, b in pairwise(ends)) and bool((x[:-1] <= x[1:]).all())
    if not rises or not np.isfinite(ends).all():  # a NaN neither rises nor falls
        raise ValueError("x must be finite and may not fall")


class Pyramid:
    """Points (x, y) in order of x. NaN in y is a gap, ignored by minimum and maximum."""

    def __init__(self) -> None:
        self._x = _Column()
        self._y = _Column()
        self._levels: list[tuple[_Column, _Column]] = []

    def __len__(self) -> int:
        return self._x.size

    @property
    def x(self) -> Floats:
        return self._x.view

    @property
    def y(self) -> Floats:
        return self._y.view

    def extend(self, x: ArrayLike, y: ArrayLike) -> None:
        """Append points, in amortised constant time each.

        Raises ValueError when x and y differ in length, or x decreases or is not finite.
        """
        new_x = np.atleast_1d(np.asarray(x, np.float64))
        new_y = np.atleast_1d(np.asarray(y, np.float64))
        if new_x.shape != new_y.shape or new_x.ndim != 1:
            raise ValueError(f"x and y differ: {new_x.shape} and {new_y.shape}")
        if not len(new_x):
            return
        check_rising(self._x.view[-1:], new_x)
        self._x.extend(new_x)
        self._y.extend(new_y)

    def _complete_blocks(self) -> None:
        """Add the minimum and maximum of each block that has become full, level by level."""
        low = high = self._y
        level = 0
        while low.size >= FACTOR:
            if level == len(self._levels):
                self._levels.append((_Column(), _Column()))
            above_low, above_high = self._levels[level]
            done = above_low.size * FACTOR
            full = low.size // FACTOR * FACTOR
            if full == done:
                return
            # Column by column: numpy reduces along a short axis five times as slowly.
            above_low.extend(reduce(np.fmin, low.view[done:full].reshape(-1, FACTOR).T))
            above_high.extend(reduce(np.fmax, high.view[done:full].reshape(-1, FACTOR).T))
            low, high = above_low, above_high
            level += 1

    def query(self, x0: float, x1: float, pixels: int) -> tuple[Floats, Floats]:
        """A polyline (x, y) of the points in x0..x1 and one beyond each end, of at most
        4 * `pixels` + 6 points.

        Few points come back as they are; of many, each block gives its minimum and maximum at the
        x of its first point. Blocks that became full since the last query are completed first; the
        rest takes nearly constant time in the number of points.
        """
        self._complete_blocks()
        start = max(0, int(np.searchsorted(self.x, x0, "left")) - 1)
        stop = min(len(self), int(np.searchsorted(self.x, x1, "right")) + 1)
        level, block = 0, 1
        while (stop - start) > 2 * pixels * block and level < len(self._levels):
            level += 1
            block *= FACTOR
        if level == 0:
            return self.x[start:stop].copy(), self.y[start:stop].copy()
        low, high = self._levels[level - 1]
        first = start // block
        last = min(-(-stop // block), low.size)
        lows, highs = low.view[first:last], high.view[first:last]
        at = self.x[first * block : last * block : block]
        rest = self.y[last * block : stop]
        if rest.size:  # the last block is not full yet
            lows = np.append(lows, np.fmin.reduce(rest))
            highs = np.append(highs, np.fmax.reduce(rest))
            at = np.append(at, self.x[last * block])
        return np.repeat(at, 2), np.stack([lows, highs], axis=1).ravel()

    def nearest(self, x: float) -> tuple[float, float] | None:
        """The point whose x is nearest; None without points."""
        if not len(self):
            return None
        at = int(np.searchsorted(self.x, x))
        if at == len(self) or (at > 0 and x - self.x[at - 1] <= self.x[at] - x):
            at -= 1
        return float(self.x[at]), float(self.y[at])
