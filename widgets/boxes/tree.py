"""The tree of boxes of a graph: one per call of a module, siblings in the order of forward.

A module's box holds the nodes that one call of it made: a contiguous piece of the forward order.
Contiguous pieces of a topological order never form a cycle, so the boxes have a layered layout,
whichever are open.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.protocol import GraphSnapshot

CONTAINERS = frozenset({"ModuleList", "ModuleDict"})
"""Modules without a forward of their own: they have no calls."""


@dataclass(eq=False, slots=True)
class Branch:
    """A box with content. `path` is the module's, `call` the number of its call (from 1). The
    children are in the order of forward; [first, end) are the places of their nodes in it."""

    kind: Literal["module", "repeat", "round"]
    key: str
    path: str = ""
    call: int = 1
    children: list[Branch | int] = field(default_factory=list)
    first: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Tree:
    """`order` holds all node ids; each branch is one slice of it. `place` is its inverse."""

    root: Branch
    order: NDArray[np.int64]
    place: NDArray[np.int64]


def build_tree(graph: GraphSnapshot, sources: NDArray, targets: NDArray) -> Tree:
    """The tree of module calls; nodes without `module` (or `block`) stand at the top."""
    paths = [node.module or node.block or "" for node in graph.nodes]
    is_leaf = np.fromiter((node.kind == "leaf" for node in graph.nodes), bool, len(graph.nodes))
    operations = _forward_order(graph, is_leaf, sources, targets)
    parts_of = {path: path.split(".") if path else [] for path in set(paths)}
    root, branch_of_path = _calls(paths, parts_of, operations, frozenset())
    scattered = frozenset(
        path
        for path, calls in branch_of_path.items()
        if len(calls) > 1 and graph.modules.get(path) in CONTAINERS
    )
    if scattered:
        root, branch_of_path = _calls(paths, parts_of, operations, scattered)
    _add_leaves(graph, root, branch_of_path, paths, is_leaf, operations, sources, targets)
    unwrap(root)
    order: list[int] = []
    _number(root, order)
    order_array = np.array(order, np.int64)
    place = np.empty(len(order), np.int64)
    place[order_array] = np.arange(len(order))
    return Tree(root, order_array, place)


def _forward_order(
    graph: GraphSnapshot, is_leaf: NDArray, sources: NDArray, targets: NDArray
) -> list[int]:
    """Operations in a topological order: by sequence number if that is one, as it is for one
    thread; else as close to the sequence numbers as possible."""
    sequence = np.array([node.sequence for node in graph.nodes], np.int64)
    inner = ~is_leaf[targets] if len(targets) else np.zeros(0, bool)
    if (sequence[sources[inner]] > sequence[targets[inner]]).all():
        ids = np.flatnonzero(~is_leaf)
        return ids[np.argsort(sequence[ids], kind="stable")].tolist()
    waiting = Counter(sources[inner].tolist())
    users: dict[int, list[int]] = defaultdict(list)
    for source, target in zip(sources[inner].tolist(), targets[inner].tolist(), strict=True):
        users[target].append(source)
    ready = [(int(sequence[i]), i) for i in np.flatnonzero(~is_leaf).tolist() if i not in waiting]
    heapify(ready)
    found: list[int] = []
    while ready:
        _, node = heappop(ready)
        found.append(node)
        for user in users[node]:
            waiting[user] -= 1
            if not waiting[user]:
                heappush(ready, (int(sequence[user]), user))
    return found


def _calls(
    paths: list[str],
    parts_of: dict[str, list[str]],
    operations: list[int],
    left_out: frozenset[str],
) -> tuple[Branch, dict[str, list[Branch]]]:
    """One branch for each unbroken run of a module's nodes, none for modules `left_out`. `first`
    and `end` are positions in `operations` until `order` is known."""
    root = Branch("module", "", end=len(operations))
    branch_of_path: dict[str, list[Branch]] = {"": [root]}
    chain_of: dict[str, list[str]] = {}
    stack, chain = [root], [""]
    for position, node in enumerate(operations):
        path = paths[node]
        wanted = chain_of.get(path)
        if wanted is None:
            parts = parts_of[path]
            prefixes = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
            wanted = chain_of[path] = ["", *(each for each in prefixes if each not in left_out)]
        if wanted != chain:
            depth = 0
            while depth < min(len(wanted), len(chain)) and wanted[depth] == chain[depth]:
                depth += 1
            for left in stack[depth:]:
                left.end = position
            del stack[depth:]
            for inner in wanted[depth:]:
                calls = branch_of_path.setdefault(inner, [])
                call = len(calls) + 1
                key = inner if call == 1 else f"{inner}@{call}"
                branch = Branch("module", key, inner, call, first=position)
                calls.append(branch)
                stack[-1].children.append(branch)
                stack.append(branch)
            chain = wanted
        stack[-1].children.append(node)
    for left in stack:
        left.end = len(operations)
    return root, branch_of_path


def _add_leaves(
    graph: GraphSnapshot,
    root: Branch,
    branch_of_path: dict[str, list[Branch]],
    paths: list[str],
    is_leaf: NDArray,
    operations: list[int],
    sources: NDArray,
    targets: NDArray,
) -> None:
    """Put each leaf into the first call of the module that owns it, or of the innermost module
    around that which was called. There it comes before its user; a leaf with several users comes
    first of all, so that the rounds of a loop look alike."""
    position_of = {node: position for position, node in enumerate(operations)}
    users: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for place in np.flatnonzero(is_leaf[targets]).tolist() if len(targets) else ():
        source, target = int(sources[place]), int(targets[place])
        users[target].append((position_of[source], graph.edges[place].input))
    added: dict[int, list[tuple[tuple[int, int], int]]] = defaultdict(list)
    branches: dict[int, Branch] = {}
    for leaf in np.flatnonzero(is_leaf).tolist():
        path = paths[leaf]
        while path not in branch_of_path:
            path = path.rpartition(".")[0]
        branch = branch_of_path[path][0]
        inside = sorted(u for u in users[leaf] if branch.first <= u[0] < branch.end)
        before = inside[0] if len({position for position, _ in inside}) == 1 else (-1, 0)
        branches[id(branch)] = branch
        added[id(branch)].append((before, leaf))
    for key, leaves in added.items():
        branch = branches[key]
        starts = [
            child.first if isinstance(child, Branch) else position_of[child]
            for child in branch.children
        ]
        before_child: dict[int, list[int]] = defaultdict(list)
        for (position, _), leaf in sorted(leaves):
            before_child[max(0, bisect_right(starts, position) - 1)].append(leaf)
        if not branch.children:
            branch.children = list(before_child[0])
            continue
        branch.children = [
            each
            for place, child in enumerate(branch.children)
            for each in (*before_child.get(place, ()), child)
        ]


def unwrap(root: Branch) -> None:
    """Remove the box of a module that holds nothing but one node, one module, or one repeat of
    modules."""
    for branch in reversed(list(walk(root))):  # children before their parents
        branch.children = [_unwrapped(child) for child in branch.children]


def _unwrapped(child: Branch | int) -> Branch | int:
    if not isinstance(child, Branch) or len(child.children) != 1:
        return child
    (only,) = child.children
    if isinstance(only, Branch) and only.kind == "repeat":
        first = only.children[0]
        return only if isinstance(first, Branch) and first.kind == "module" else child
    return only


def walk(root: Branch) -> Iterator[Branch]:
    """All branches, parents before their children."""
    stack = [root]
    while stack:
        branch = stack.pop()
        yield branch
        stack.extend(child for child in reversed(branch.children) if isinstance(child, Branch))


def _number(branch: Branch, order: list[int]) -> None:
    """Fill in `first` and `end`. Modules nest a few dozen deep at most, so recursion is safe."""
    branch.first = len(order)
    for child in branch.children:
        if isinstance(child, Branch):
            _number(child, order)
        else:
            order.append(child)
    branch.end = len(order)
