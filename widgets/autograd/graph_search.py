"""Finding nodes of a graph: by words, by what is special about them, by what lies between."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.protocol import GraphNode, GraphSnapshot

from .hierarchy import shape_text

Filter = Literal["leaves", "cuts", "frozen", "stale"]
_SHAPE = re.compile(r"[(\[]?\s*\d+(?:\s*[x×*,]\s*\d+)+\s*,?\s*[)\]]?")
_EXACT, _START, _WITHIN = 8, 4, 2


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
        ends = np.array([(edge.source, edge.target) for edge in graph.edges], np.int64)
        self._sources, self._targets = ends.reshape(-1, 2).T

    # -- words -----------------------------------------------------------------------------------

    def find(self, text: str, limit: int = 200) -> list[int]:
        """Node ids, best first: all words of `text` must occur in a node's name, op, aten op,
        label, module, shape (`"64x768"`, `"64×768"`, `"(64, 768)"`) or source line; `"#17"` is
        the node of that id. A whole match counts more than the beginning, that more than the rest;
        of two alike the one nearer to the root comes first. No words find nothing."""
        text = _SHAPE.sub(lambda match: f" {'×'.join(re.findall(r'[0-9]+', match[0]))} ", text)
        words = text.lower().split()
        if not words:
            return []
        found = [
            node for node, line in enumerate(self._lines) if all(word in line for word in words)
        ]
        rank = {node: sum(self._score(node, word) for word in words) for node in found}
        return sorted(found, key=lambda node: (-rank[node], node))[:limit]

    @cached_property
    def _fields(self) -> list[tuple[str, ...]]:
        """Per node what it can be found by, the most telling first, in small letters."""
        return [_fields_of(node) for node in self.graph.nodes]

    @cached_property
    def _lines(self) -> list[str]:
        return ["\n".join(fields) for fields in self._fields]

    def _score(self, node: int, word: str) -> float:
        """The best of a word's matches; earlier fields win between matches alike."""
        return max(
            (_EXACT if field == word else _START if field.startswith(word) else _WITHIN)
            - place / 10
            for place, field in enumerate(self._fields[node])
            if word in field
        )

    # -- what is special -------------------------------------------------------------------------

    def filtered(self, which: Filter) -> NDArray[np.int64]:
        """Ids, ascending: all leaves, nodes where the gradient's way is cut (or cut because a
        parameter is frozen), or nodes that saved a tensor which was overwritten since."""
        if which == "leaves":
            return self._where([node.kind == "leaf" for node in self.graph.nodes])
        if which == "stale":
            return self._where([node.stale for node in self.graph.nodes])
        cuts = (cut for cut in self.graph.cuts if which == "cuts" or cut.reason == "frozen")
        return np.unique(np.array([cut.node for cut in cuts], np.int64))

    def saved_above(self, size_bytes: int) -> NDArray[np.int64]:
        """Ids of all nodes that keep more than `size_bytes`, the largest first."""
        saved = np.array([node.saved_bytes for node in self.graph.nodes], np.int64)
        by_size = np.argsort(-saved, kind="stable")
        return by_size[saved[by_size] > size_bytes]

    @staticmethod
    def _where(flags: list[bool]) -> NDArray[np.int64]:
        return np.flatnonzero(np.array(flags, bool))

    # -- ways ------------------------------------------------------------------------------------

    def between(self, node: int) -> Ways:
        """The ways through a node. Raises IndexError for an unknown id."""
        if not 0 <= node < len(self.graph.nodes):
            raise IndexError(f"the graph has nodes 0 to {len(self.graph.nodes) - 1}, not {node}")
        above, below = self._reached(node, self._users), self._reached(node, self._inputs)
        return Ways(
            np.flatnonzero(above),
            np.flatnonzero(below),
            np.flatnonzero(above[self._targets]),
            np.flatnonzero(below[self._sources]),
        )

    @cached_property
    def _users(self) -> dict[int, list[int]]:
        return _neighbours(self._targets, self._sources)

    @cached_property
    def _inputs(self) -> dict[int, list[int]]:
        return _neighbours(self._sources, self._targets)

    def _reached(self, start: int, neighbours: dict[int, list[int]]) -> NDArray[np.bool_]:
        seen = bytearray(len(self.graph.nodes))
        seen[start] = 1
        stack = [start]
        while stack:
            for other in neighbours.get(stack.pop(), ()):
                if not seen[other]:
                    seen[other] = 1
                    stack.append(other)
        return np.frombuffer(seen, np.bool_)


def _neighbours(ends: NDArray[np.int64], others: NDArray[np.int64]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for end, other in zip(ends.tolist(), others.tolist(), strict=True):
        found[end].append(other)
    return found


def _fields_of(node: GraphNode) -> tuple[str, ...]:
    source = node.source
    return tuple(
        field.lower()
        for field in (
            f"#{node.id}",
            node.label,
            node.op,
            node.name,
            node.aten,
            node.module,
            *map(shape_text, node.outputs),
            f"{source.file}:{source.line}" if source else "",
            source.text if source else "",
        )
    )
