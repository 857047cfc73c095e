"""What the layout of boxes within boxes is given, and what it answers, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Direction = Literal["backward", "forward"]
EdgeStyle = Literal["smooth", "orthogonal"]


@dataclass(frozen=True)
class Outline:
    """What the layout of a picture depends on, as arrays, which are sent to another process in no
    time. Of each box its `parents`' index (-1 at the top), whether it is `open`, and its
    `sizes` (width, height) while it is closed; of each link its `ends` (source, target)."""

    parents: NDArray[np.int64]
    open: NDArray[np.bool_]
    sizes: NDArray[np.float64]
    ends: NDArray[np.int64]


@dataclass(frozen=True)
class NestedLayout:
    """Where everything goes, in scene pixels, y down, the top left corner of all at (0, 0).

    `rects[i]` is box i as (x, y, width, height). The way of link i is
    `points[starts[i]:starts[i + 1]]`, from its source's border to its target's: where `curved`,
    the 3n + 1 control points of a cubic Bézier spline, else the corners of a polyline. `size` is
    (width, height) of all.
    """

    rects: NDArray[np.float64]
    points: NDArray[np.float64]
    starts: NDArray[np.int64]
    curved: bool
    size: tuple[float, float]

    def route(self, link: int) -> NDArray[np.float64]:
        """The (n, 2) points of one link's way."""
        return self.points[self.starts[link] : self.starts[link + 1]]
