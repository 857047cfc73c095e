"""Freeing deep graphs without overflowing the C stack.

torch frees the nodes that Python has touched by recursion. A chain of 50,000 nodes ends in a
segmentation fault when its last tensor is deleted. Nodes in a list that is emptied from the root
downwards are freed one at a time. So every thousandth node has a `Guard` in its `metadata`, which
torch deletes with the node; the guard holds the next thousand nodes and frees them in this way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import methodcaller
from typing import Any

GUARDED_NODES = 1_000
LEAF_SEQUENCE = 2**64 - 1
"""torch's sequence number of every AccumulateGrad."""


_number_of = methodcaller("_sequence_nr")


class Guard:
    """Holds nodes, newest first, and frees them one by one in that order."""

    def __init__(self, nodes: Sequence[Any]) -> None:
        self._nodes = list(reversed(nodes))

    def __del__(self) -> None:
        while self._nodes:
            self._nodes.pop()


def guard_release(fns: Sequence[Any]) -> None:
    """Put guards on the nodes of a graph that was walked. A small graph needs none.

    Sequence numbers fall from the root downwards: an operation is newer than those whose results
    it uses. Leaves need no guard: their tensors keep them.
    """
    if len(fns) <= GUARDED_NODES:
        return
    order = sorted(fns, key=_number_of, reverse=True)
    leaves = bisect_left(order, True, key=lambda fn: _number_of(fn) != LEAF_SEQUENCE)
    del order[:leaves]
    for start in range(0, len(order), GUARDED_NODES):
        guard = Guard(order[start + 1 : start + 1 + GUARDED_NODES])
        order[start].metadata.setdefault("tensorlab_guard", guard)
