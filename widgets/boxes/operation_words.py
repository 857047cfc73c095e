"""One line on the operation of each node of an autograd graph."""

from __future__ import annotations

from engine.protocol import GraphNode, GraphSnapshot
from engine.protocol.autograd_snapshots import CutReason

GRAD_FN = (
    "A grad_fn is a node that autograd recorded in forward: it knows the operation's rule and keeps"
    " what the rule needs. Backward runs the nodes from the loss to the parameters."
)

CUTS: dict[CutReason, str] = {
    "detach": "A .detach() cut it off: what came before counts as a constant.",
    "no_grad": "It was computed under torch.no_grad(), where autograd records nothing.",
    "frozen": "A parameter with requires_grad=False: it is frozen, so it gets no gradient.",
    "input": "Data that never required grad: an input or a target.",
    "integer": "Integers and booleans have no gradient.",
    "unknown": "This input needs no gradient; why was not recorded.",
}
"""The reasons why a gradient goes no further."""


_RAISES = {
    "Error": "Raises when backward comes here: this operation's backward cannot itself be"
    " differentiated.",
    "NotImplemented": "Raises when backward comes here: torch has no derivative of this operation.",
}
"""torch's nodes for operations without a backward rule."""


def rule(node: GraphNode, graph: GraphSnapshot) -> str:
    """The node's backward rule in words, from the engine; g is the incoming gradient."""
    if node.name in _RAISES:
        return _RAISES[node.name]
    return graph.rules.get(node.name, f"The backward rule of {node.op or node.name}.")
