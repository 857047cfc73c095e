"""Input and result of the layout of boxes within boxes, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Direction = Literal["backward", "forward"]
EdgeStyle = Literal["smooth", "orthogonal"]


@dataclass(frozen=True)
class Outline:
    """All that the layout of a picture depends on, as arrays, which go to another process quickly.

    Each box has the index of its parent in `parents` (-1 at the top) and its (width, height) while
    closed in `sizes`; `open` says whether it is open. Each link has its (source, target) in `ends`.
    """

    parents: NDArray[np.int64]
    open: NDArray[np.bool_]
    sizes: NDArray[np.float64]
    ends: NDArray[np.int64]


@dataclass(frozen=True)
class NestedLayout:
    """The positions of boxes and links, in scene pixels with y down; the top left corner is (0, 0).

    `rects[i]` is box i as (x, y, width, height). `points[starts[i]:starts[i + 1]]` is the way of
    link i from its source's border to its target's: the 3n + 1 control points of a cubic Bézier
    spline if `curved`, else the corners of a polyline. `size` is the (width, height) of all.
    """

    rects: NDArray[np.float64]
    points: NDArray[np.float64]
    starts: NDArray[np.int64]
    curved: bool
    size: tuple[float, float]

    def route(self, link: int) -> NDArray[np.float64]:
        """The points of one link, from source to target: a view of `points`, shape (n, 2)."""
        return self.points[self.starts[link] : self.starts[link + 1]]
