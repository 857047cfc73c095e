"""Sums over the nodes in each box of a graph's picture, and their texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from engine.protocol import GraphNode, GraphSnapshot, StaleTensor
from widgets.boxes.boxes import Box, VisibleGraph
from widgets.graph.operation_words import CUTS, rule
from widgets.text import format_bytes, format_shape

Bools = NDArray[np.bool_]

WAITING, READY, EXECUTED, CURRENT = range(4)
"""States of a node: not reached, the next to run, has run, ran last."""


def node_title(node: GraphNode) -> str:
    """The name of a leaf's parameter, or torch's name of an operation's grad_fn."""
    return node.label if node.kind == "leaf" and node.label else node.name


def node_words(node: GraphNode) -> str:
    """The second line: the code that made the node, or the leaf's shape."""
    shape = format_shape(node.outputs[0].shape) if node.outputs else ""
    if node.kind == "leaf":
        return f"leaf · {shape}"
    return node.block or shape


def variable_of(node: GraphNode) -> str:
    """The names of an operation's result: its label is `h = mul`."""
    return node.label.rpartition(" = ")[0] if node.kind == "operation" else ""


def count_of(nodes: int) -> str:
    return f"{nodes:,} node{'s' * (nodes != 1)}"


class GraphFacts:
    """Sums over the nodes in each box of `visible`, by the box's index; states by node id.

    `saved_bytes` counts a storage at every node that saves it: for a box with several nodes it is
    an upper bound.
    """

    def __init__(
        self, graph: GraphSnapshot, visible: VisibleGraph, names: Mapping[str, str]
    ) -> None:
        """`names` are the blocks' names by id."""
        self.graph, self.visible = graph, visible
        self._names = names
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
        self.to_cut = self.cut[[link.target for link in visible.links]]
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

    # -- words -----------------------------------------------------------------------------------

    def title(self, index: int) -> str:
        box = self.visible.boxes[index]
        if box.kind == "node":
            return self._node_title(box)
        return self._names.get(box.title, box.title)

    def _node_title(self, box: Box) -> str:
        """The title of a node; a leaf's path is relative to the module around its box."""
        node, title = self._node(box), node_title(self._node(box))
        around = self._module_around(box)
        if node.kind != "leaf" or not around or not _is_in(node.module, around):
            return title
        inner = node.module.removeprefix(around).removeprefix(".")
        return ".".join(filter(None, (inner, title.rpartition(".")[2])))

    def _module_around(self, box: Box) -> str:
        """The path of the innermost module whose open box is around a box."""
        while box.parent is not None:
            box = self.visible.boxes[box.parent]
            if box.kind == "module":
                return box.key.partition("@")[0]
        return ""

    def second_line(self, index: int) -> str:
        """The code that made a node (unless a box around it shows that) or the node's shape; a
        module's class; the item that is repeated."""
        box = self.visible.boxes[index]
        return self._node_line(box) if box.kind == "node" else box.subtitle

    def third_line(self, index: int) -> str:
        """The numbers of nodes and saved bytes in a closed box, in words."""
        box = self.visible.boxes[index]
        kept = self.saved_bytes[index]
        words = (count_of(box.nodes), f"keeps ≤ {format_bytes(kept)}" if kept else "")
        return "" if self.atom[index] else " · ".join(filter(None, words))

    def _node_line(self, box: Box) -> str:
        node = self._node(box)
        if box.parent is not None and node.kind != "leaf" and node.outputs:
            words = format_shape(node.outputs[0].shape)
        else:
            words = node_words(node)
            words = self._names.get(words, words)
        return " · ".join(filter(None, (variable_of(node), words)))

    def badge(self, index: int) -> str:
        """`×12` on a repeat, else nothing."""
        repeat = self.visible.boxes[index].repeat
        return f"×{repeat:,}" if repeat > 1 else ""

    def frame_words(self, index: int) -> str:
        """The words beside an open box's title."""
        box = self.visible.boxes[index]
        nodes = count_of(box.nodes)
        if box.kind == "repeat":
            return f"{self.badge(index)} · {nodes}"
        return " · ".join(filter(None, (box.subtitle, nodes)))

    def link_text(self, link: int) -> str:
        """The shape of the gradient on a link, the output it leads to if there are several, and the
        number of edges that it bundles."""
        found = self.visible.links[link]
        target = self.visible.boxes[found.target]
        outputs = ""
        if target.kind == "node" and found.edges and len(self._node(target).outputs) > 1:
            numbers = sorted({self.graph.edges[edge].output for edge in found.edges})
            outputs = "output " + ", ".join(map(str, numbers))
        count = f"×{len(found.edges)}" if len(found.edges) > 1 else ""
        return "  ".join(filter(None, (outputs, found.text, count)))

    def _node(self, box: Box) -> GraphNode:
        assert box.node is not None
        return self.graph.nodes[box.node]

    def spoken(self, index: int) -> str:
        """A box in one line, for screen readers and the status."""
        words = (self.title(index), self.second_line(index), self.third_line(index))
        return ", ".join(filter(None, words))

    def tooltip(self, index: int) -> str:
        """The tooltip of a box: its name, its operation, its saved tensors."""
        box = self.visible.boxes[index]
        if box.kind == "node":
            return self._node_tooltip(index, self._node(box))
        if box.kind == "cut":
            return self._cut_tooltip(box)
        return self._module_tooltip(index, box)

    def _node_tooltip(self, index: int, node: GraphNode) -> str:
        lines = [f"{self.title(index)} · {self.second_line(index)}", rule(node, self.graph)]
        shapes = ", ".join(
            f"{format_shape(o.shape)} {o.dtype}" for o in node.outputs if o.dtype != "unknown"
        )
        if shapes:
            lines.append(f"Takes a gradient of {shapes} {node.device}".rstrip())
        if node.saved_bytes:
            lines.append(f"Keeps {format_bytes(node.saved_bytes)} from forward")
        lines += [stale_words(save) for save in self.graph.stale if save.node == node.id]
        if node.freed:
            lines.append(FREED)
        if node.sequence >= 0:
            lines.append(f"Sequence number {node.sequence:,}")
        if node.module:
            made = "Belongs to" if node.kind == "leaf" else "Made in"
            lines.append(f"{made} {node.module}{self._class_of(node.module)}")
        if node.aten:
            lines.append(f"torch ran {node.aten}")
        if node.source:
            lines.append(f"{node.source.file}, line {node.source.line}: {node.source.text}")
        return "\n".join(lines)

    def _cut_tooltip(self, box: Box) -> str:
        place = box.key.removeprefix("!").split(".")
        cut = next(
            (c for c in self.graph.cuts if [str(c.node), str(c.input)] == place),
            None,
        )
        lines = ["Cut: the gradient goes no further on this way"]
        if cut is not None:
            lines.append(CUTS[cut.reason])
            if cut.label:
                lines.append(f"It would have gone to {cut.label}")
            if cut.source:
                lines.append(f"{cut.source.file}, line {cut.source.line}: {cut.source.text}")
        return "\n".join(lines)

    def _module_tooltip(self, index: int, box: Box) -> str:
        lines = [f"{box.title} · {box.subtitle}" if box.subtitle else box.title]
        if box.kind == "module":
            lines.append("The nodes that this module's forward recorded")
        elif box.kind == "repeat":
            lines.append(f"The same {box.repeat} times over, one after another")
        lines.append(f"{count_of(box.nodes)}, {int(self.leaves[index]):,} of them leaves")
        if self.saved_bytes[index]:
            lines.append(
                f"They keep at most {format_bytes(self.saved_bytes[index])} from forward"
                " (what several keep is counted at each)"
            )
        if self.executed[index]:
            lines.append(f"{int(self.executed[index]):,} of {box.nodes:,} have run")
        if self.stale[index]:
            lines.append("Stale: a tensor that one of them kept was overwritten")
        if self.freed[index]:
            lines.append("Freed: a backward pass has let go of what some of them kept")
        lines.append("Double click or Enter closes it" if box.open else "Double click opens it")
        return "\n".join(lines)

    def _class_of(self, module: str) -> str:
        name = self.graph.modules.get(module)
        return f" ({name})" if name else ""


FREED = (
    "Freed: a backward pass has let go of what it kept, so another cannot run it. retain_graph=True"
    " would have kept it"
)


def stale_words(save: StaleTensor) -> str:
    """`Stale: y was saved at version 0 and is at 1: add_ wrote it, <cell 1>, line 4: y.add_(1)`"""
    text = (
        f"Stale: its saved tensor {save.saved!r} was saved at version {save.saved_version} and is"
        f" at {save.version}, so backward will refuse"
    )
    if save.source is not None:
        wrote = f"{save.op} wrote it" if save.op else "written"
        text += f". {wrote}: {save.source.file}, line {save.source.line}: {save.source.text}"
    return text


def _is_in(path: str, outer: str) -> bool:
    return path == outer or path.startswith(f"{outer}.")


def _levels(parents: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """The boxes that have a parent, by depth, deepest first."""
    depths = np.zeros(len(parents), np.intp)
    for box, parent in enumerate(parents.tolist()):
        if parent >= 0:
            depths[box] = depths[parent] + 1
    deepest = int(depths.max(initial=0))
    return [np.flatnonzero(depths == depth) for depth in range(deepest, 0, -1)]
