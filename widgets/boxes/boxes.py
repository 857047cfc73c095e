"""The picture of a graph as plain data: boxes within boxes, and the links between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from widgets.layout.outline import Outline

BoxKind = Literal["module", "repeat", "round", "node", "cut"]

NODE_WIDTH = 184.0
NODE_HEIGHT = 44.0
CLOSED_WIDTH = 208.0
CLOSED_HEIGHT = 60.0
"""A closed box says three things: what it is, what is in it, and how much."""
CUT_WIDTH = 128.0
CUT_HEIGHT = 28.0


class Box(Struct, frozen=True, gc=False):
    """One rectangle of the picture.

    `key` does not depend on which boxes are open. It is a module's path (`"layers.3.attn"`, with
    `"@2"` for its second call), a repeat (`"layers.[0-11]"`, or its first item and the number of
    rounds: `"[#40×10]"`), one round of such a repeat (`"[#40×10]/3"`), a node (`"#17"`), or a cut
    (`"!17.1"`: node and input). Modules, repeats and rounds open and close; nodes and cuts do not.
    `parent` is the index of the open box around it, None at the top. `nodes` counts the graph's
    nodes inside, `repeat` the rounds of a repeat (1 for all other boxes). `node` is the id of the
    graph's node, for a cut that of the node above it.
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

    @property
    def size(self) -> tuple[float, float]:
        """Width and height while it is not open."""
        if self.kind == "cut":
            return CUT_WIDTH, CUT_HEIGHT
        return (NODE_WIDTH, NODE_HEIGHT) if self.kind == "node" else (CLOSED_WIDTH, CLOSED_HEIGHT)


class Link(Struct, frozen=True, gc=False):
    """A line between two boxes that are not open, in the gradient's direction (root to leaves).

    `edges` are the indices in `GraphSnapshot.edges` of the edges that it bundles; empty for the
    line from a node to a cut. `text` is their shape (`"(64, 768)"`) if they share one, else empty.
    """

    source: int
    target: int
    edges: tuple[int, ...]
    text: str


@dataclass(frozen=True)
class VisibleGraph:
    """The boxes and links that are visible while some boxes are open.

    In `boxes` parents come before their children, and siblings follow the gradient: a link runs
    from an earlier to a later sibling, except a link to a parameter whose module comes before
    another user of it. `box_of[node id]` is the index of the innermost visible box that holds the
    node: the node's own box, or a closed one.
    """

    boxes: tuple[Box, ...]
    links: tuple[Link, ...]
    box_of: NDArray[np.int32]

    @cached_property
    def outline(self) -> Outline:
        """The input of the layout."""
        return Outline(
            np.array([-1 if box.parent is None else box.parent for box in self.boxes], np.int64),
            np.array([box.open for box in self.boxes], bool),
            np.array([box.size for box in self.boxes], float).reshape(-1, 2),
            np.array([(link.source, link.target) for link in self.links], np.int64).reshape(-1, 2),
        )
