"""A backward pass for some inputs only: the nodes that it runs, and where it captures gradients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from .reading import Graph, gradient_edge


def wanted_from(graph: Graph, inputs: Sequence[torch.Tensor]) -> dict[int, list[tuple[int, int]]]:
    """The inputs by the node at which their gradient arrives: node id -> (number of the input,
    number of the node's output). Inputs outside of this graph are left out. Raises ValueError for
    an input without a graph."""
    found: dict[int, list[tuple[int, int]]] = {}
    # Leaves by identity: torch finds no gradient edge for a sparse one.
    leaves = {id(node.variable): node for node in graph.nodes if node.is_leaf} if inputs else {}
    for number, tensor in enumerate(inputs):
        node, output_nr = leaves.get(id(tensor)), 0
        if node is None and (not tensor.is_leaf or not tensor.requires_grad):
            edge = gradient_edge(tensor)
            node, output_nr = graph.get(edge.node), edge.output_nr
        if node is not None:
            found.setdefault(node.id, []).append((number, output_nr))
    return found


def above(graph: Graph, node_ids: Iterable[int]) -> frozenset[int]:
    """The nodes from which a path of edges leads to one of these."""
    sources: dict[int, list[int]] = {}
    for edge in graph.edges:
        sources.setdefault(edge.target, []).append(edge.source)
    found: set[int] = set()
    waiting = list(node_ids)
    while waiting:
        for source in sources.get(waiting.pop(), ()):
            if source not in found:
                found.add(source)
                waiting.append(source)
    return frozenset(found)
