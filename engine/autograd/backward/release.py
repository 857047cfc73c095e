"""The memory that a backward pass without `retain_graph` frees."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from torch import Tensor

from ..graph.node_facts import storage_id
from ..graph.reading import Graph, Node
from ..graph.saved_for_backward import SavedForBackward


def released_bytes(graph: Graph, plan: Sequence[Node], kept: SavedForBackward) -> list[int]:
    """The bytes of saved tensors that `retain_graph=False` has freed after each node of the plan.
    `kept` is what the graph's nodes keep before it.

    The engine drops a node's saved tensors right after the node has run. A storage is freed after
    the last node that saved it, except the storages of the graph's leaves: they are parameters.
    Storages that the user's variables still hold are not known here, and count as freed.
    """
    leaves = [node.variable for node in graph.nodes if node.variable is not None]
    of_leaves = set(map(storage_id, leaves))
    freed_at: dict[int, int] = {}
    for place, node in enumerate(plan):
        for storage in kept.storages[node.id]:
            if storage not in of_leaves:
                freed_at[storage] = place
    freed = [0] * len(plan)
    for storage, place in freed_at.items():
        freed[place] += kept.size_bytes[storage]
    return list(accumulate(freed))


def free_saved(graph: Graph) -> None:
    """Let the nodes go of the tensors that they saved, as the engine does without `retain_graph`:
    another backward raises torch's error. What hooks of the user's own have packed stays."""
    for node in graph.nodes:
        for attribute in node.kind.saves:
            try:
                saved = getattr(node.fn, attribute)
            except RuntimeError:  # freed
                continue
            for each in saved if isinstance(saved, tuple) else (saved,):
                if isinstance(each.data, Tensor) and each.unpack_hook is None:
                    each.register_hooks(lambda _: None, _refuse)


def _refuse(_: object) -> Tensor:
    raise RuntimeError(_FREED)


_FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after"
    " they have already been freed). Saved intermediate values of the graph are freed when you call"
    " .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the"
    " graph a second time or if you need to access saved tensors after calling backward."
)
"""torch's own words."""
