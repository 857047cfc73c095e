"""The hierarchy of boxes of one graph, and which of them are visible while some are open."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.protocol import GraphCut, GraphNode, GraphSnapshot, TensorSpec
from widgets.layout import without_collection
from widgets.layout.nested_layout import layout_nested
from widgets.text import format_shape

from .boxes import Box, BoxKind, Link, VisibleGraph
from .folding import fold, numbers_of
from .tree import Branch, build_tree, unwrap, walk

CUT_WORDS = {
    "detach": "detached",
    "no_grad": "under no_grad",
    "frozen": "frozen",
    "input": "needs no gradient",
    "integer": "integer: no gradient",
    "unknown": "no gradient",
}
WINDOW = (720.0, 640.0)
"""The size in pixels of the window for which `initial` chooses."""
LEAST_ZOOM = 0.5
"""Below this zoom, the words in the boxes cannot be read."""
MAX_BOXES = 200
"""More boxes than this never fit into a window; `initial` does not lay them out to see."""
NEARLY_ALL = 0.75


class _Words(NamedTuple):
    """The words on a branch's box."""

    kind: BoxKind
    title: str
    subtitle: str
    repeat: int


class Hierarchy:
    """The boxes of one graph. `visible` takes milliseconds at 10,000 nodes."""

    @without_collection()
    def __init__(self, graph: GraphSnapshot) -> None:
        self.graph = graph
        ends = np.array([(edge.source, edge.target) for edge in graph.edges], np.int64)
        self._sources, self._targets = ends.reshape(-1, 2).T
        tree = build_tree(graph, self._sources, self._targets)
        fold(graph, tree, self._sources, self._targets)
        unwrap(tree.root)
        self._root, self._order, self._place = tree.root, tree.order, tree.place
        self._branches = {branch.key: branch for branch in walk(tree.root)}
        self._words: dict[str, _Words] = {}
        self._outer: dict[str, str] = {"": ""}
        for branch in self._branches.values():  # parents first
            own = branch.path if branch.kind == "module" else self._outer[branch.key]
            self._outer[branch.key] = own
            for child in branch.children:
                if isinstance(child, Branch):
                    self._outer[child.key] = own
        self._cuts: dict[int, list[GraphCut]] = defaultdict(list)
        for cut in graph.cuts:
            self._cuts[cut.node].append(cut)
        self._shapes, self._shape_of_edge = self._edge_shapes()

    # -- which boxes there are -------------------------------------------------------------------

    def initial(self) -> frozenset[str]:
        """The boxes to open at first: all, where that can be read when fitted into a window; else
        the modules that hold boxes, one depth after the other, as long as it can; and a module that
        holds nearly all."""
        if len(self.graph.nodes) <= MAX_BOXES and self._fits(self.open_all()):
            return self.open_all()
        opened: frozenset[str] = frozenset()
        level = [self._root]
        while True:
            inner = [
                child
                for branch in level
                for child in branch.children
                if isinstance(child, Branch) and child.kind == "module" and _holds_boxes(child)
            ]
            if not inner:
                return opened
            largest = max(inner, key=lambda branch: branch.end - branch.first)
            wider = opened | {branch.key for branch in inner}
            if self._fits(wider):
                opened, level = wider, inner
            elif largest.end - largest.first > NEARLY_ALL * len(self.graph.nodes):
                opened, level = opened | {largest.key}, [largest]
            else:
                return opened

    def _fits(self, open_keys: frozenset[str]) -> bool:
        visible = self.visible(open_keys)
        if len(visible.boxes) > MAX_BOXES:
            return False
        width, height = layout_nested(visible.outline).size
        return width * LEAST_ZOOM <= WINDOW[0] and height * LEAST_ZOOM <= WINDOW[1]

    def open_all(self) -> frozenset[str]:
        """The keys of all boxes that can open: the picture then shows every node."""
        return frozenset(self._branches) - {""}

    def keys_to(self, node: int) -> frozenset[str]:
        """The keys of the boxes around `node`. Raises IndexError for an unknown id."""
        place = int(self._place[node])
        keys, branch = [], self._root
        while True:
            inner = [
                child
                for child in branch.children
                if isinstance(child, Branch) and child.first <= place < child.end
            ]
            if not inner:
                return frozenset(keys)
            branch = inner[0]
            keys.append(branch.key)

    def keys_within(self, key: str) -> frozenset[str]:
        """The keys of a box that can open and of all such boxes inside it. Raises KeyError for any
        other key."""
        return frozenset(branch.key for branch in walk(self._branches[key]))

    def module_of(self, key: str) -> str:
        """The path of the module of a box: its own, that of the first call in a repeat, or else
        that of the innermost module around it; "" outside all modules. Raises KeyError for a key
        that no box has."""
        if key.startswith("#"):
            return self.graph.nodes[int(key[1:])].module
        branch = self._branches[key]
        first = branch.children[0]
        if branch.kind == "repeat" and isinstance(first, Branch) and first.kind == "module":
            return first.path
        return branch.path if branch.kind == "module" else self._outer[key]

    def box_of_module(self, path: str) -> tuple[str, frozenset[str]] | None:
        """The key of the box of a module's first call, and the keys of the boxes around it; the
        first node's where the module has no box of its own. None for a module without nodes."""
        if path in self._branches:
            first = int(self._order[self._branches[path].first])
            return path, self.keys_to(first) - self.keys_within(path)
        inside = (node.id for node in self.graph.nodes if f"{node.module}.".startswith(f"{path}."))
        node = next(inside, None)
        return None if node is None else (f"#{node}", self.keys_to(node))

    def nodes_in(self, key: str) -> NDArray[np.int64]:
        """The ids of all nodes in a box. Raises KeyError for a key that no box has."""
        if key.startswith("#"):
            return np.array([int(key[1:])])
        branch = self._branches[key]
        return np.sort(self._order[branch.first : branch.end])

    # -- what is visible -------------------------------------------------------------------------

    @without_collection()
    def visible(self, open_keys: frozenset[str]) -> VisibleGraph:
        """The picture while the boxes of `open_keys` are open. Unknown keys, and keys of boxes
        within closed ones, have no effect."""
        nodes, order = self.graph.nodes, self._order
        boxes: list[Box] = []
        cut_links: list[Link] = []
        box_of = np.zeros(len(nodes), np.int32)
        stack: list[tuple[Branch | int, int | None, Branch]] = [
            (child, None, self._root) for child in self._root.children
        ]
        while stack:
            item, parent, around = stack.pop()  # last child first, as the gradient flows
            index = len(boxes)
            if isinstance(item, Branch):
                is_open = item.key in open_keys
                kind, title, subtitle, repeat = self._words_of(item, around)
                inside = item.end - item.first
                boxes.append(
                    Box(item.key, kind, parent, is_open, title, subtitle, inside, repeat, None)
                )
                if is_open:
                    stack.extend((child, index, item) for child in item.children)
                else:
                    box_of[order[item.first : item.end]] = index
                continue
            node = nodes[item]
            box_of[item] = index
            title, subtitle = node_words(node)
            if node.kind == "leaf":
                title = _within(title, self._module_around(around))
            boxes.append(Box(f"#{item}", "node", parent, False, title, subtitle, 1, 1, item))
            for cut in self._cuts.get(item, ()):
                cut_links.append(Link(index, len(boxes), (), ""))
                boxes.append(_cut_box(cut, parent))
        return VisibleGraph(tuple(boxes), (*self._links(box_of, len(boxes)), *cut_links), box_of)

    def _links(self, box_of: NDArray[np.int32], count: int) -> list[Link]:
        """Edges between different boxes, bundled where both ends are the same."""
        source = box_of[self._sources].astype(np.int64)
        target = box_of[self._targets].astype(np.int64)
        edges = np.flatnonzero(source != target)
        if not len(edges):
            return []
        pair = source[edges] * count + target[edges]
        by_pair = np.argsort(pair, kind="stable")
        edges, pair = edges[by_pair], pair[by_pair]
        starts = np.flatnonzero(np.diff(pair, prepend=-1))
        shape = self._shape_of_edge[edges]
        least, most = np.minimum.reduceat(shape, starts), np.maximum.reduceat(shape, starts)
        texts = [self._shapes[i] for i in np.where(least == most, least, 0).tolist()]
        sources, targets = np.divmod(pair[starts], count)
        edge_list, bounds = edges.tolist(), [*starts.tolist(), len(edges)]
        return [
            Link(a, b, tuple(edge_list[bounds[i] : bounds[i + 1]]), text)
            for i, (a, b, text) in enumerate(
                zip(sources.tolist(), targets.tolist(), texts, strict=True)
            )
        ]

    def _edge_shapes(self) -> tuple[list[str], NDArray[np.int64]]:
        """All texts of shapes (the first is empty: unknown), and each edge's index into them."""
        numbers: dict[str, int] = {"": 0}
        known: dict[TensorSpec, int] = {}
        found = np.zeros(len(self.graph.edges), np.int64)
        nodes = self.graph.nodes
        for place, edge in enumerate(self.graph.edges):
            outputs = nodes[edge.target].outputs
            if edge.output < len(outputs):
                spec = outputs[edge.output]
                number = known.get(spec)
                if number is None:
                    number = known[spec] = numbers.setdefault(shape_text(spec), len(numbers))
                found[place] = number
        return list(numbers), found

    # -- words -----------------------------------------------------------------------------------

    def _words_of(self, branch: Branch, around: Branch) -> _Words:
        words = self._words.get(branch.key)
        if words is None:
            words = self._words[branch.key] = self._describe(branch, around)
        return words

    def _describe(self, branch: Branch, around: Branch) -> _Words:
        modules, outer = self.graph.modules, self._module_around(around)
        if branch.kind == "module":
            title = _within(branch.path, outer) + _call_words(branch.call)
            return _Words("module", title, modules.get(branch.path, ""), 1)
        if branch.kind == "round":
            return _Words("round", f"round {branch.call}", self._content(branch), 1)
        rounds, first = len(branch.children), branch.children[0]
        numbered = numbers_of(branch.children)
        if numbered:
            prefix, low, high, call = numbered
            title = f"{_within(prefix, outer)} {low}–{high}".strip() + _call_words(call)
        elif isinstance(first, Branch) and first.kind == "module":
            title = _within(first.path, outer)
        else:
            title = self._name(first)
        name = modules.get(first.path, "") if isinstance(first, Branch) else ""
        inside = (branch.end - branch.first) // rounds
        size = f"{inside} node{'s' * (inside != 1)} each"
        return _Words("repeat", title, f"{name} · {size}" if name else size, rounds)

    def _module_around(self, branch: Branch) -> str:
        """The path of the innermost module around a branch's children."""
        return self._outer[branch.key]

    def _name(self, item: Branch | int) -> str:
        if not isinstance(item, Branch):  # not its variable, which only one round of a repeat has
            node = self.graph.nodes[item]
            return node.op if node.kind == "operation" and node.op else node_words(node)[0]
        if item.kind == "module":
            name = item.path.rpartition(".")[2]
            return self.graph.modules.get(item.path, name) if name.isdecimal() else name
        if item.kind == "round":
            return self._content(item)
        return f"{self._name(item.children[0])} ×{len(item.children)}"

    def _content(self, branch: Branch) -> str:
        names = [self._name(child) for child in branch.children]
        return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


def node_words(node: GraphNode) -> tuple[str, str]:
    """(title, subtitle) of a node: its name, and the shape of its output."""
    shapes = ", ".join(filter(None, map(shape_text, node.outputs)))
    return node.label or node.op or node.name, shapes


def shape_text(spec: TensorSpec) -> str:
    """`"(64, 768)"`; empty if the shape is unknown."""
    return "" if spec.dtype == "unknown" else format_shape(spec.shape)


def _cut_box(cut: GraphCut, parent: int | None) -> Box:
    title = cut.label or CUT_WORDS[cut.reason]
    key = f"!{cut.node}.{cut.input}"
    return Box(key, "cut", parent, False, title, CUT_WORDS[cut.reason], 0, 1, cut.node)


def _holds_boxes(branch: Branch) -> bool:
    return any(isinstance(child, Branch) for child in branch.children)


def _call_words(call: int) -> str:
    return f" (call {call})" if call > 1 else ""


def _within(path: str, outer: str) -> str:
    """A module's path as seen from the module around it."""
    if path == outer:
        return ""
    return path.removeprefix(f"{outer}.") if outer else path
