"""The nodes of an autograd graph that match a search or a filter, or lie on a path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.protocol import GraphNode, GraphSnapshot
from widgets.text import format_shape

Bools = NDArray[np.bool_]
Towards = Literal["loss", "leaves"]

FILTERS = {
    "all": "Everything",
    "leaves": "Leaves only",
    "cuts": "Cuts: where gradients stop",
    "frozen": "Frozen: parameters without a gradient",
    "stale": "Stale: overwritten since forward",
}
"""Filter key -> its name in menus; `saved:BYTES` filters by the bytes that a node saves."""

SAVED_STEPS_BYTES = (0, 1 << 10, 1 << 20, 16 << 20)


def search_text(node: GraphNode, names: Mapping[str, str]) -> str:
    """All texts by which a reader may search a node, as `_normal`; `names` maps ids of blocks to
    names."""
    shapes = (f"{format_shape(spec.shape)} {spec.dtype}" for spec in node.outputs)
    line = f"{node.source.file}:{node.source.line} {node.source.text}" if node.source else ""
    block = names.get(node.block, "") if node.block else ""
    number = f"#{node.id}"
    words = (number, node.name, node.label, node.op, node.aten, node.module, block, line, *shapes)
    return _normal(" ".join(words))


def found(texts: Iterable[str], query: str) -> Bools:
    """Whether each text (see `search_text`) has every word of a query; True for an empty query."""
    words = _normal(query).split()
    return np.array([all(word in text for word in words) for text in texts], bool)


def _normal(text: str) -> str:
    """A text in lower case, with shapes such as `2 × 768` and `(2, 768)` as `2x768`."""
    text = _BETWEEN_DIMS.sub("x", text.lower())
    return _AROUND_SHAPE.sub(r"\1", text)


_BETWEEN_DIMS = re.compile(r"(?<=\d)\s*[×x,]\s*(?=\d)")
_AROUND_SHAPE = re.compile(r"(?<!\w)[(\[](\d+(?:x\d+)*),?[)\]]")


def filtered(graph: GraphSnapshot, key: str) -> Bools:
    """The nodes that pass a filter: a key of FILTERS, or `saved:BYTES`.

    Raises ValueError for another key.
    """
    if key == "all":
        return np.ones(len(graph.nodes), bool)
    if key == "leaves":
        return np.array([node.kind == "leaf" for node in graph.nodes], bool)
    if key == "stale":
        return np.array([node.stale for node in graph.nodes], bool)
    if key in ("cuts", "frozen"):
        ends = {cut.node for cut in graph.cuts if key == "cuts" or cut.reason == "frozen"}
        return np.array([node.id in ends for node in graph.nodes], bool)
    if key.startswith("saved:"):
        least = int(key.removeprefix("saved:"))
        return np.array([node.saved_bytes > least for node in graph.nodes], bool)
    raise ValueError(f"No filter is called {key}")


class Reach:
    """Whether each node lies on a path from some nodes to the loss or to a leaf."""

    def __init__(self, graph: GraphSnapshot) -> None:
        count = len(graph.nodes)
        self._next: dict[Towards, list[list[int]]] = {
            "loss": [[] for _ in range(count)],
            "leaves": [[] for _ in range(count)],
        }
        for edge in graph.edges:
            self._next["leaves"][edge.source].append(edge.target)
            self._next["loss"][edge.target].append(edge.source)

    def ways(self, starts: Iterable[int], towards: Towards) -> Bools:
        """The nodes on all paths from `starts` in one direction, with `starts`."""
        steps = self._next[towards]
        seen = np.zeros(len(steps), bool)
        waiting = list(starts)
        seen[waiting] = True
        while waiting:
            for following in steps[waiting.pop()]:
                if not seen[following]:
                    seen[following] = True
                    waiting.append(following)
        return seen


class Finder:
    """A search and a filter over one graph, with the current one of their hits."""

    def __init__(self, graph: GraphSnapshot, names: Mapping[str, str]) -> None:
        """`names` are the blocks' names by id."""
        self._graph, self._names = graph, names
        self._texts: list[str] | None = None
        self._order: list[int] = []
        self.hits: Bools | None = None
        """Whether each node is a hit, by node id; None without a search or a filter."""
        self.place = 0
        """The number of the hit shown last, from 1; 0 before the first."""

    @property
    def count(self) -> int:
        return len(self._order)

    def search(self, query: str, filter_key: str = "all") -> None:
        """Find the nodes that hold every word of a query and pass a filter (see `filtered`)."""
        self.place = 0
        if not query.strip() and filter_key == "all":
            self.hits, self._order = None, []
            return
        if self._texts is None:
            self._texts = [search_text(node, self._names) for node in self._graph.nodes]
            for cut in self._graph.cuts:
                self._texts[cut.node] += " " + _normal(f"{cut.reason} {cut.label}")
        self.hits = found(self._texts, query) & filtered(self._graph, filter_key)
        self._order = self._in_order_of_plan(self.hits)

    def _in_order_of_plan(self, hits: Bools) -> list[int]:
        """The hits in the order in which backward runs them, then those that it does not run."""
        planned = [node for node in self._graph.plan if node < len(hits) and hits[node]]
        known = set(planned)
        return planned + [node for node in np.flatnonzero(hits).tolist() if node not in known]

    def step(self, by: int) -> int | None:
        """Go `by` hits on (back if negative), from the last one to the first, and return the node;
        None without hits."""
        if not self._order:
            return None
        at = self.place - 1 + by if self.place else (0 if by > 0 else -1)
        self.place = at % len(self._order) + 1
        return self._order[self.place - 1]
