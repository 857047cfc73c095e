"""The marks in the picture of a graph: hits of a search, paths, breakpoints."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from engine.protocol import GraphSnapshot
from widgets.boxes.facts import GraphFacts
from widgets.boxes.sums import Bools
from widgets.graph.finder import Finder, Reach
from widgets.graph.painting.item import GraphItem


class GraphMarks:
    """The marks of one graph, whichever boxes are open. `apply` shows them."""

    def __init__(self, graph: GraphSnapshot, names: Mapping[str, str]) -> None:
        """`names` are the blocks' names by id."""
        self._graph = graph
        self.finder = Finder(graph, names)
        self._reach: Reach | None = None

    def apply(self, item: GraphItem, paths: bool, breakpoints: Collection[str]) -> None:
        """Highlight the hits and, with `paths`, the paths through the selected box; dim the rest.
        `breakpoints` are keys of boxes."""
        facts, hits = item.facts, self.finder.hits
        if facts is None:
            return
        lit: Bools | None = None
        item.hits = None
        if hits is not None:
            lit = facts.holds(hits)
            counts = np.maximum(facts.sums(hits), lit)  # a cut counts as one hit
            item.hits = np.where(item.geometry.open, 0, counts).astype(np.int64)
        if paths and item.selected is not None:
            ways = facts.holds(self._ways(facts, item.selected))
            lit = ways if lit is None else lit & ways
        if lit is not None and item.selected is not None:
            lit[item.selected] = True
        item.lit = lit
        item.breakpoints = _boxes_with(breakpoints, facts) if breakpoints else None
        item.update()

    def _ways(self, facts: GraphFacts, box: int) -> Bools:
        if self._reach is None:
            self._reach = Reach(self._graph)
        starts = facts.nodes_in(box)
        return self._reach.ways(starts, "loss") | self._reach.ways(starts, "leaves")


def _boxes_with(keys: Collection[str], facts: GraphFacts) -> Bools:
    """The boxes with these keys, and the closed boxes around nodes with these keys."""
    marked = np.array([box.key in keys for box in facts.visible.boxes], bool)
    for key in keys:
        number = key.removeprefix("#")
        if number != key and number.isdigit() and int(number) < len(facts.states):
            marked[facts.visible.box_of[int(number)]] = True
    return marked
