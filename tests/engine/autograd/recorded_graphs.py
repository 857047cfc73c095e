"""The graph of a forward pass as the window gets it, with the module path of each node."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from engine.autograd import read_graph
from engine.protocol import GraphCut, GraphEdge, GraphNode, GraphSnapshot


def recorded(model: nn.Module, run: Callable[[], Tensor]) -> GraphSnapshot:
    """Run forward with hooks that note which sequence numbers each call of a module made."""
    names = {module: name for name, module in model.named_modules() if name}
    path_of: dict[int, str] = {}
    begun: list[int] = []

    def before(module: nn.Module, inputs: object) -> None:
        begun.append(torch.autograd._get_sequence_nr())

    def after(module: nn.Module, inputs: object, output: object) -> None:
        for sequence in range(begun.pop(), torch.autograd._get_sequence_nr()):
            path_of.setdefault(sequence, names[module])  # the innermost ends first

    hooks = [m.register_forward_pre_hook(before) for m in names]
    hooks += [m.register_forward_hook(after) for m in names]
    try:
        loss = run()
    finally:
        for hook in hooks:
            hook.remove()
    parameters = dict(model.named_parameters())
    labels = {id(parameter): name for name, parameter in parameters.items()}
    frozen = {name for name, p in parameters.items() if not p.requires_grad}
    return snapshot(
        loss, path_of, labels, {name: type(m).__name__ for m, name in names.items()}, len(frozen)
    )


def snapshot(
    root: Tensor,
    path_of: dict[int, str] | None = None,
    labels: dict[int, str] | None = None,
    modules: dict[str, str] | None = None,
    frozen: int = 0,
) -> GraphSnapshot:
    graph = read_graph(root)
    path_of, labels = path_of or {}, labels or {}
    nodes = []
    cuts = []
    for node in graph.nodes:
        label = labels.get(id(node.variable), "") if node.is_leaf else ""
        nodes.append(
            GraphNode(
                id=node.id,
                name=node.name,
                label=label,
                kind="leaf" if node.is_leaf else "operation",
                block=None,
                sequence=node.sequence,
                outputs=node.outputs,
                saved_bytes=node.saved_bytes,
                op=node.op,
                module=label.rpartition(".")[0] if node.is_leaf else path_of.get(node.sequence, ""),
                device="cpu",
            )
        )
        for place, (fn, _) in enumerate(node.fn.next_functions):
            if fn is None and frozen:
                cuts.append(GraphCut(node.id, place, "frozen"))
    return GraphSnapshot(
        nodes=tuple(nodes),
        edges=tuple(GraphEdge(e.source, e.target, e.input, e.output) for e in graph.edges),
        plan=tuple(range(len(nodes))),
        cuts=tuple(cuts),
        modules=modules or {},
    )
