"""The backward pass of the lab's batch: a stepper, and what the window is told of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from ..errors import LabError
from ..models.forward import ForwardPass
from ..protocol import (
    BackwardSnapshot,
    ComparisonSnapshot,
    GraphEdge,
    GraphNode,
    GraphSnapshot,
    NodeStep,
    ParameterGradient,
    TensorSummary,
    Value,
)
from ..tensors.compare import max_difference
from ..tensors.summary import summarise, value
from .graph import Node
from .provenance import origins
from .stepper import BackwardStepper, Step

MAX_SHOWN_NODES = 1_000
MAX_CELLS = 24_000
"""Cells in all pictures of a snapshot together: 96 KB, so that a snapshot keeps its limit."""
MAX_DETAILED_VALUES = 64


class BackwardPass:
    """Steps backward through the graph of a finished forward pass.

    Starts from parameters without gradients: their `.grad` fills as the leaves are reached. Raises
    LabError when the forward pass is not at its end or its loss has no graph.
    """

    def __init__(self, forward: ForwardPass) -> None:
        if forward.loss is None:
            raise LabError(
                "The forward pass has not reached the loss yet.", hint="Run it to its end."
            )
        if not forward.loss.requires_grad:
            raise LabError(
                "The loss has no graph to step through: nothing in the model can learn.",
                hint="Add a block with parameters, for example a Linear.",
            )
        self.forward, self.loss = forward, forward.loss
        self.parameters = dict(forward.module.named_parameters())
        for parameter in self.parameters.values():
            parameter.grad = None
        self._summaries: dict[str, tuple[Tensor, int, TensorSummary]] = {}
        self.stepper = BackwardStepper(self.loss, names=self.parameters)

    def close(self) -> None:
        """Let go of the graph and the recorded gradients."""
        self.stepper.close()

    # -- what the window is told -----------------------------------------------------------------

    def graph_snapshot(self) -> GraphSnapshot:
        """The graph; only the first MAX_SHOWN_NODES nodes (breadth first from the loss) are in
        `nodes` and `edges`, while `plan` names them all."""
        graph = self.stepper.graph
        block_of = origins(graph, self.forward.sequence_ranges)
        shown = graph.nodes[:MAX_SHOWN_NODES]
        return GraphSnapshot(
            nodes=tuple(
                GraphNode(
                    id=node.id,
                    name=node.name,
                    label=title(node),
                    kind="leaf" if node.is_leaf else "operation",
                    block=block_of.get(node.id),
                    sequence=node.sequence,
                    outputs=node.outputs,
                    saved_bytes=node.saved_bytes,
                    op=node.op,
                )
                for node in shown
            ),
            edges=tuple(
                GraphEdge(source=e.source, target=e.target, input=e.input, output=e.output)
                for e in graph.edges
                if e.source < len(shown) and e.target < len(shown)
            ),
            plan=tuple(node.id for node in self.stepper.plan),
            truncated=len(graph.nodes) - len(shown),
        )

    def snapshot(self) -> BackwardSnapshot:
        """Where the pass stands, the last step in numbers, and every parameter's `.grad`."""
        last = self.stepper.last
        return BackwardSnapshot(
            position=self.stepper.position,
            step=None if last is None else self.node_step(last),
            gradients=tuple(
                ParameterGradient(
                    name=name, shape=tuple(p.shape), gradient=self._summary(name, p.grad)
                )
                for name, p in self.parameters.items()
            ),
        )

    def node_step(self, step: Step) -> NodeStep:
        """A step as plain data."""
        shown = shown_values([*self._incoming(step), *self._outgoing(step)])
        count = len(step.incoming)
        return NodeStep(node=step.node.id, incoming=shown[:count], outgoing=shown[count:])

    def compare(self) -> ComparisonSnapshot:
        """The stepped gradients against those of plain `loss.backward()` on the same batch, in a
        fresh forward pass from the same random state and buffers. `.grad` stays as it is.

        Raises LabError before the last step.
        """
        if self.stepper.next_node is not None:
            raise LabError(
                f"{len(self.stepper.plan) - self.stepper.position:,} nodes have not run yet, so "
                "the gradients are not complete.",
                hint="Run the backward pass to its end, then compare.",
            )
        stepped = {name: p.grad for name, p in self.parameters.items()}
        for parameter in self.parameters.values():
            parameter.grad = None
        try:
            self.forward.plain().backward()
            differences = {
                name: _difference(stepped[name], p.grad) for name, p in self.parameters.items()
            }
        finally:
            for name, parameter in self.parameters.items():
                parameter.grad = stepped[name]
        return ComparisonSnapshot(
            max_difference=max(differences.values(), default=0.0), differences=differences
        )

    def _summary(self, name: str, gradient: Tensor | None) -> TensorSummary | None:
        """Summarised once, as long as it does not change: every snapshot shows all of them."""
        if gradient is None:
            return None
        known = self._summaries.get(name)
        if known is None or known[0] is not gradient or known[1] != gradient._version:
            known = self._summaries[name] = gradient, gradient._version, summarise(gradient)
        return known[2]

    def _incoming(self, step: Step) -> list[tuple[str, Tensor | None]]:
        if len(step.incoming) == 1:
            return [("gradient in", step.incoming[0])]
        return [(f"gradient in, output {i}", grad) for i, grad in enumerate(step.incoming)]

    def _outgoing(self, step: Step) -> list[tuple[str, Tensor | None]]:
        graph = self.stepper.graph
        labels = []
        for fn, _ in step.node.fn.next_functions:
            labels.append("to nothing" if fn is None else f"to {title(graph.node_of(fn))}")
        return list(zip(labels, step.outgoing, strict=True))


def _difference(stepped: Tensor | None, expected: Tensor | None) -> float:
    if stepped is None or expected is None:
        return 0.0 if stepped is expected else math.inf
    return max_difference(stepped, expected)


def title(node: Node) -> str:
    """What a reader calls a node: the parameter's name, or the operation."""
    return node.label or (f"leaf {node.id}" if node.is_leaf else node.op)


def shown_values(labelled: Sequence[tuple[str, Tensor | None]]) -> tuple[Value | None, ...]:
    """The tensors as a view shows them, their pictures sharing MAX_CELLS; where there are very
    many, only summaries."""
    count = sum(tensor is not None for _, tensor in labelled)
    if count > MAX_DETAILED_VALUES:
        return tuple(
            None if tensor is None else Value(label, summarise(tensor))
            for label, tensor in labelled
        )
    cells = MAX_CELLS // max(1, count)
    return tuple(t if t is None else value(label, t, cells) for label, t in labelled)
