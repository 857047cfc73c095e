"""Finding nodes of a graph: by words, by what is special about them, by what lies between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.protocol import GraphSnapshot

Filter = Literal["leaves", "cuts", "stale"]


@dataclass(frozen=True)
class Ways:
    """All nodes (ids, ascending) and edges (places in `GraphSnapshot.edges`) on the ways from a
    node up to the root(s), and from it down to the leaves; the node itself is in both."""

    to_roots: NDArray[np.int64]
    to_leaves: NDArray[np.int64]
    edges_to_roots: NDArray[np.int64]
    edges_to_leaves: NDArray[np.int64]


class GraphSearch:
    """Answers about one graph; built once, asked often."""

    def __init__(self, graph: GraphSnapshot) -> None:
        self.graph = graph

    def find(self, text: str, limit: int = 200) -> list[int]:
        """Node ids, best first: all words of `text` must occur in a node's name, op, aten op,
        label, module, shape (`"64x768"`, `"64×768"`, `"(64, 768)"`) or source line."""
        raise NotImplementedError

    def filtered(self, which: Filter) -> NDArray[np.int64]:
        """Ids of all leaves, of nodes with a cut, or of nodes whose saved tensors are stale."""
        raise NotImplementedError

    def saved_above(self, size_bytes: int) -> NDArray[np.int64]:
        """Ids of all nodes that keep more than `size_bytes`, the largest first."""
        raise NotImplementedError

    def between(self, node: int) -> Ways:
        """The ways through a node. Raises IndexError for an unknown id."""
        raise NotImplementedError
