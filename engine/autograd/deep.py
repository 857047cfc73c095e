"""Letting go of deep graphs without overflowing the C stack.

Once Python has touched the nodes of a graph, torch frees them by recursion: a chain of 50,000 ends
in a segmentation fault at the moment when its last tensor is dropped, whenever that is. Held in
a list and released from the root downwards, they go one at a time. So every thousandth node carries
a `Guard` in its `metadata` (which lives and dies with the node) that does this for the thousand
below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

GUARDED_NODES = 1_000
_LEAF = "AccumulateGrad"


class Guard:
    """Holds nodes, in topological order, and releases them one by one in that order."""

    def __init__(self, nodes: Sequence[Any]) -> None:
        self._nodes = list(reversed(nodes))

    def __del__(self) -> None:
        while self._nodes:
            self._nodes.pop()


def guard_release(fns: Sequence[Any], edges: Sequence[tuple[int, int, int, int]]) -> None:
    """Make a graph that was walked safe to drop. `edges` are (source, input, target, output),
    as indices into `fns`. Cheap, and for small graphs nothing at all."""
    if len(fns) <= GUARDED_NODES:
        return
    # Leaves outlive the graph (their tensors hold them), so they neither guard nor need it.
    order = [fns[i] for i in topological(len(fns), edges) if type(fns[i]).__name__ != _LEAF]
    for start in range(0, len(order), GUARDED_NODES):
        guard = Guard(order[start + 1 : start + 1 + GUARDED_NODES])
        order[start].metadata.setdefault("tensorlab_guard", guard)


def topological(count: int, edges: Sequence[tuple[int, int, int, int]]) -> list[int]:
    """Indices such that every edge's source comes before its target."""
    waiting = [0] * count
    targets: list[list[int]] = [[] for _ in range(count)]
    for source, _, target, _ in edges:
        waiting[target] += 1
        targets[source].append(target)
    ready = [i for i in range(count) if waiting[i] == 0]
    for node in ready:  # grows while it is walked
        for target in targets[node]:
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    return ready
