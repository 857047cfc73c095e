"""Which part of the forward pass made a node: exact, by torch's sequence numbers.

Every node gets the next number of its thread when it is made, so the numbers taken before and after
a call (`torch.autograd._get_sequence_nr()`) bracket exactly the nodes that the call made.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from .graph import Graph


def origins(graph: Graph, sequence_ranges: Mapping[str, tuple[int, int]]) -> dict[int, str]:
    """Node id -> key of the range [start, end) that holds the node's sequence number.

    A leaf (AccumulateGrad has no number of its own) belongs where all its users do. Nodes that
    no range holds, and leaves with users in several, are left out: never guessed. The ranges must
    not overlap and must come from the thread that ran the forward pass.
    """
    ranges = sorted((start, end, key) for key, (start, end) in sequence_ranges.items())
    starts = [start for start, _, _ in ranges]
    found: dict[int, str] = {}
    for node in graph.nodes:
        if node.is_leaf:
            continue
        place = bisect_right(starts, node.sequence) - 1
        while place >= 0 and ranges[place][1] == ranges[place][0]:
            place -= 1  # an empty range: its call made no node
        if place >= 0 and node.sequence < ranges[place][1]:
            found[node.id] = ranges[place][2]
    users: dict[int, set[str | None]] = {}
    for edge in graph.edges:
        if graph.nodes[edge.target].is_leaf:
            users.setdefault(edge.target, set()).add(found.get(edge.source))
    for leaf, keys in users.items():
        (key, *others) = keys
        if key is not None and not others:
            found[leaf] = key
    return found
