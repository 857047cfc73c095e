"""What a backward pass without `retain_graph` frees as it goes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from ..graph.reading import Graph, Node, storage_id


def released_bytes(graph: Graph, plan: Sequence[Node]) -> list[int]:
    """Bytes of saved tensors that `retain_graph=False` has let go of after each node of the plan.

    The engine drops a node's saved tensors right after the node has run. A storage goes with the
    last of the nodes that saved it; those of the graph's own leaves stay, they are parameters.
    What else the user holds on to is not known here, and counted as freed.
    """
    leaves = [node.variable for node in graph.nodes if node.variable is not None]
    kept = set(map(storage_id, leaves))
    freed_at: dict[int, tuple[int, int]] = {}
    for place, node in enumerate(plan):
        for saved in node.saved:
            if saved.storage_id not in kept:
                freed_at[saved.storage_id] = place, saved.storage_bytes
    freed = [0] * len(plan)
    for place, size in freed_at.values():
        freed[place] += size
    return list(accumulate(freed))
