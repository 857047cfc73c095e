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
LEAF_SEQUENCE = 2**64 - 1
"""torch's sequence number of every AccumulateGrad."""


class Guard:
    """Holds nodes, newest first, and releases them one by one in that order."""

    def __init__(self, nodes: Sequence[Any]) -> None:
        self._nodes = list(reversed(nodes))

    def __del__(self) -> None:
        while self._nodes:
            self._nodes.pop()


def guard_release(fns: Sequence[Any]) -> None:
    """Make a graph whose nodes were walked safe to drop. For small graphs there is nothing to do.

    From the root downwards is from high sequence numbers to low ones: an operation is newer than
    those whose results it uses. Leaves live on with their tensors and need no guard.
    """
    if len(fns) <= GUARDED_NODES:
        return
    numbered = [(fn._sequence_nr(), i) for i, fn in enumerate(fns)]
    numbered.sort(reverse=True)
    order = [fns[i] for sequence, i in numbered if sequence != LEAF_SEQUENCE]
    for start in range(0, len(order), GUARDED_NODES):
        guard = Guard(order[start + 1 : start + 1 + GUARDED_NODES])
        order[start].metadata.setdefault("tensorlab_guard", guard)
