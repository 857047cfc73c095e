"""The forward results of a graph's nodes, as far as they can still be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.autograd.graph import get_gradient_edge

from ...recording.argument_values import KeptTensor
from ...recording.recording import Call
from ...recording.writes import version_of
from .reading import Graph, Node

Values = tuple[torch.Tensor | None, ...]
"""One for each output of the forward operation; None where it is not known."""


class ForwardValues:
    """`held` are tensors that live: their values are known by their nodes. `chain` gives the calls
    in which a node was made, as a recording has them; small results are kept there. A value that
    was written over since is not known any more."""

    def __init__(
        self, graph: Graph, held: Mapping[Any, torch.Tensor], chain: Callable[[Node], list[Call]]
    ) -> None:
        self._chain = chain
        self._held: dict[tuple[int, int], torch.Tensor] = {}
        for t in held.values():
            if t.requires_grad and not t.is_leaf:
                edge = get_gradient_edge(t)
                node = graph.get(edge.node)
                if node is not None:
                    self._held[node.id, edge.output_nr] = t
        leaves = (node.variable for node in graph.nodes if node.is_leaf)
        values = (t for t in (*leaves, *self._held.values()) if t is not None)
        self._versions = {id(t): version_of(t) for t in values}

    def of(self, node: Node) -> Values:
        """A leaf's tensor, or what the node's operation returned."""
        variable = node.variable
        if variable is not None:
            return (variable.detach() if self._is_unchanged(variable) else None,)
        count = len(node.fn._input_metadata)
        held = [self._held.get((node.id, number)) for number in range(count)]
        found = [t if t is not None and self._is_unchanged(t) else None for t in held]
        if None in found:
            recorded = self._recorded(node, count)
            found = [a if a is not None else b for a, b in zip(found, recorded, strict=True)]
        if count == 1 and found[0] is None:
            found = [_saved_result(node)]
        return tuple(None if t is None else t.detach() for t in found)

    def _is_unchanged(self, t: torch.Tensor) -> bool:
        return self._versions[id(t)] == version_of(t)

    def _recorded(self, node: Node, count: int) -> Sequence[torch.Tensor | None]:
        """The values that were kept of the call that made the node last."""
        nothing = (None,) * count
        chain = self._chain(node)
        if not chain or node.sequence != chain[-1].end - 1:
            return nothing
        tiny, result = chain[-1].tiny, chain[-1].result
        if tiny is not None and count == 1:
            return [tiny.tensor()]
        kept = result if isinstance(result, list | tuple) else (result,)
        if len(kept) != count:
            return nothing
        return [each.tensor if isinstance(each, KeptTensor) else None for each in kept]


def _saved_result(node: Node) -> torch.Tensor | None:
    """The result that the node has saved for its rule, as `exp` and `sigmoid` do."""
    saved = next((s for s in node.saved if s.name == "result"), None)
    if saved is None or saved.note or saved.data is None:
        return None
    (spec,) = node.outputs
    return saved.data if tuple(saved.data.shape) == spec.shape else None
