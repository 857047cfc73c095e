"""The picture of a graph as plain data: boxes within boxes, and the links between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

BoxKind = Literal["module", "repeat", "round", "node", "cut"]


class Box(NamedTuple):
    """One rectangle of the picture.

    `key` stays the same whatever is open: a module's path (`"layers.3.attn"`, with `"@2"` for its
    second call), a repeat (`"layers.[0-11]"`, or its first item and how often: `"[#40×10]"`), one
    round of such a repeat (`"[#40×10]/3"`), a node (`"#17"`), a cut (`"!17.1"`: node and input).
    Modules, repeats and rounds open and close; nodes and cuts do not. `parent` is the index of the
    open box around it, None at the top. `nodes` counts the graph's nodes inside, `repeat` how
    often a repeat repeats (1 for all else). `node` is the graph's node id of a node or of what a
    cut cuts off.
    """

    key: str
    kind: BoxKind
    parent: int | None
    open: bool
    title: str
    subtitle: str
    nodes: int
    repeat: int = 1
    node: int | None = None


class Link(NamedTuple):
    """A line between two boxes that are not open, in the gradient's direction (root to leaves).

    `edges` are the places in `GraphSnapshot.edges` of all edges it bundles; empty for the line
    from a node to a cut. `text` is their shape (`"64×768"`) where all have the same, else empty.
    """

    source: int
    target: int
    edges: tuple[int, ...]
    text: str


@dataclass(frozen=True)
class VisibleGraph:
    """What is to be seen while some boxes are open.

    In `boxes` parents come before their children, and siblings stand in the gradient's order: a
    link runs from an earlier to a later one, but for a parameter whose owner stands earlier than
    another user. `box_of[node id]` is the index of the innermost box that stands for the node:
    the node's own, or the closed box it is in.
    """

    boxes: tuple[Box, ...]
    links: tuple[Link, ...]
    box_of: NDArray[np.int32]


Direction = Literal["backward", "forward"]
EdgeStyle = Literal["smooth", "orthogonal"]


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
