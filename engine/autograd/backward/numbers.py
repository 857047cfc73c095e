"""The numbers on the picture of a graph: what forward computed, and what backward brought."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import torch

from ...protocol import NodeNumbers, TensorNumber
from ...tensors.readable import readable
from ..graph.forward_values import ForwardValues
from ..graph.reading import Node
from .stepping import SteppedPass

MAX_ELEMENTS = 4
"""A tensor of at most this many elements is shown element by element, a larger one by its norm."""


def number_of(t: torch.Tensor | None) -> TensorNumber | None:
    """The elements of a tiny real tensor, and the 2-norm of any; None for data that cannot be
    read."""
    if t is None:
        return None
    with torch.no_grad():
        known = readable(t)
        dense = known.dense
        if dense is None:
            return None
        if not (dense.is_floating_point() or dense.is_complex()):
            dense = dense.double()
        norm = float(torch.linalg.vector_norm(dense)) if dense.numel() else 0.0
        tiny = 0 < dense.numel() <= MAX_ELEMENTS and not known.partial and -1 not in known.shape
        elements = dense.flatten().tolist() if tiny and not dense.is_complex() else ()
    return TensorNumber(shape=known.shape, norm=norm, elements=tuple(elements))


def node_numbers(
    stepped: SteppedPass,
    values: ForwardValues,
    nodes: Iterable[int],
    grad_of: Callable[[Node], torch.Tensor | None],
) -> Iterator[NodeNumbers]:
    """The numbers of these nodes as the pass stands; ids that are not in the graph are left out.
    `grad_of` gives the `.grad` of a leaf."""
    graph = stepped.graph
    planned = {node.id for node in stepped.plan}
    for node_id in nodes:
        if not 0 <= node_id < len(graph.nodes):
            continue
        node = graph.nodes[node_id]
        incoming, outgoing = _gradients(stepped, node) if node_id in planned else ((), ())
        yield NodeNumbers(
            node=node_id,
            values=_numbers(values.of(node)),
            incoming=_numbers(incoming),
            outgoing=_numbers(outgoing),
            grad=number_of(grad_of(node)),
        )


def _gradients(
    stepped: SteppedPass, node: Node
) -> tuple[Sequence[torch.Tensor | None], Sequence[torch.Tensor | None]]:
    """The gradients that came in and went out, if the node has run; those that wait at it once all
    have arrived."""
    step = stepped.step_of(node)
    if step is not None:
        return step.incoming, step.outgoing
    if stepped.step_position(node) <= stepped.position:
        return (), ()  # it has run, and the pass keeps the last step only
    if stepped.arrived[node.id] < stepped.expected[node.id]:
        return (), ()
    return stepped.pending(node), ()


def _numbers(tensors: Sequence[torch.Tensor | None]) -> tuple[TensorNumber | None, ...]:
    return tuple(number_of(t) for t in tensors)
