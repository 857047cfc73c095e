"""Sums over the nodes in each box of a graph's picture, and the progress of backward."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from engine.protocol import GraphSnapshot
from widgets.boxes.boxes import VisibleGraph

Bools = NDArray[np.bool_]

WAITING, READY, EXECUTED, CURRENT = range(4)
"""States of a node: not reached, the next to run, has run, ran last."""


class BoxSums:
    """Sums over the nodes in each box of `visible`, by the box's index; states by node id.

    `saved_bytes` counts a storage at every node that saves it: for a box with several nodes it is
    an upper bound.
    """

    def __init__(self, graph: GraphSnapshot, visible: VisibleGraph) -> None:
        self.graph, self.visible = graph, visible
        nodes, boxes = graph.nodes, visible.boxes
        self._box_of = visible.box_of[: len(nodes)]
        self._parents = np.array(
            [-1 if box.parent is None else box.parent for box in boxes], np.intp
        )
        self._levels = _levels(self._parents)
        self.states: NDArray[np.int8] = np.zeros(len(nodes), np.int8)
        self.nodes = np.array([box.nodes for box in boxes], np.int64)
        self.saved_bytes = self.sums([node.saved_bytes for node in nodes])
        self.leaves = self.sums([node.kind == "leaf" for node in nodes])
        self.stale = self.sums([node.stale for node in nodes]) > 0
        self.freed = self.sums([node.freed for node in nodes]) > 0
        self.atom = np.array([box.kind in ("node", "cut") for box in boxes], bool)
        self.cut = np.array([box.kind == "cut" for box in boxes], bool)
        plain = {
            f"!{cut.node}.{cut.input}" for cut in graph.cuts if cut.reason in ("input", "integer")
        }
        self.data = np.array([box.key in plain for box in boxes], bool)
        """The cuts that are none: ordinary inputs, which never required grad."""
        self.leaf = (self.leaves > 0) & self.atom
        self.index_of = {box.key: index for index, box in enumerate(boxes)}
        self._cut_owner = np.array([box.node or 0 for box in boxes], np.intp)
        self._link_of_edge = np.array(
            [number for number, link in enumerate(visible.links) for _ in link.edges], np.intp
        )
        edges = [edge for link in visible.links for edge in link.edges]
        self._edge_sources = np.array([graph.edges[edge].source for edge in edges], np.intp)
        self.widths = np.array([len(link.edges) for link in visible.links], np.int64)
        self.link_sources = np.array([link.source for link in visible.links], np.intp)
        targets = [link.target for link in visible.links]
        self.to_cut = self.cut[targets]
        self.to_data = self.data[targets]
        self.show_states((), None, None)

    def sums(self, values: Collection[float]) -> NDArray[np.float64]:
        """Each box's sum of a value per node, over all nodes inside it."""
        count = len(self.visible.boxes)
        out = np.bincount(self._box_of, np.asarray(values, float), count).astype(np.float64)
        for level in self._levels:
            np.add.at(out, self._parents[level], out[level])
        return out

    def holds(self, nodes: Bools) -> Bools:
        """Whether each box holds one of some nodes; a cut counts with its node."""
        held = self.sums(nodes) > 0
        held[self.cut] = nodes[self._cut_owner[self.cut]]
        return held

    def nodes_in(self, box: int) -> list[int]:
        """The ids of the nodes in a box."""
        inside = np.zeros(len(self.nodes), bool)
        inside[box] = True
        for child in range(box + 1, len(inside)):
            parent = self._parents[child]
            inside[child] = parent >= 0 and inside[parent]
        return np.flatnonzero(inside[self._box_of]).tolist()

    # -- the progress of backward -----------------------------------------------------------------

    def show_states(self, executed: Collection[int], current: int | None, ready: int | None):
        """Set the states of all nodes; ids of nodes beyond a truncated graph are ignored."""
        known = len(self.graph.nodes)
        done = np.fromiter(executed, np.intp, len(executed))
        self.states[:] = WAITING
        self.states[done[done < known]] = EXECUTED
        if ready is not None and ready < known:
            self.states[ready] = READY
        if current is not None and current < known:
            self.states[current] = CURRENT
        has_run = (self.states == EXECUTED) | (self.states == CURRENT)
        self.executed = self.sums(has_run)
        self.box_states = np.where(self.executed == self.nodes, EXECUTED, WAITING).astype(np.int8)
        self.box_states[(self.nodes == 0) | self.cut] = WAITING
        for state in (READY, CURRENT):
            self.box_states[self.sums(self.states == state) > 0] = state
        passed = np.bincount(
            self._link_of_edge, has_run[self._edge_sources], minlength=len(self.widths)
        )
        self.passed = passed == self.widths
        self.passed[self.widths == 0] = (
            self.box_states[self.link_sources[self.widths == 0]] >= EXECUTED
        )


def _levels(parents: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """The boxes that have a parent, by depth, deepest first."""
    depths = np.zeros(len(parents), np.intp)
    for box, parent in enumerate(parents.tolist()):
        if parent >= 0:
            depths[box] = depths[parent] + 1
    deepest = int(depths.max(initial=0))
    return [np.flatnonzero(depths == depth) for depth in range(deepest, 0, -1)]
