"""The program of a file as a graph that the picture of an autograd graph can show."""

from __future__ import annotations

from collections.abc import Iterable

from engine.protocol import (
    ArtifactEntry,
    GraphEdge,
    GraphNode,
    GraphSnapshot,
    ProgramGraph,
    ProgramNode,
    ProgramValue,
    TensorSpec,
)
from widgets.text import format_shape


def graph_of(program: ProgramGraph, entries: Iterable[ArtifactEntry]) -> GraphSnapshot | None:
    """The last operation is node 0; edges run from each operation to what it takes, as a gradient
    would. Weights and inputs of the program are leaves. None for a program without operations."""
    operations = program.nodes[::-1]
    if not operations:
        return None
    nodes = [_operation(number, node, len(operations)) for number, node in enumerate(operations)]
    made = {
        value.name: (number, place)
        for number, node in enumerate(operations)
        for place, value in enumerate(node.outputs)
    }
    weights = {entry.value: entry for entry in entries if entry.value}
    inputs = {value.name: value for value in program.inputs}
    modules = {module.path: module.type for module in program.modules if module.path}
    leaves: dict[str, int] = {}
    edges = []
    for number, node in enumerate(operations):
        for place, name in enumerate(node.inputs):
            target = made.get(name)
            if target is None and (name in weights or name in inputs):
                if name not in leaves:
                    leaves[name] = len(nodes)
                    nodes.append(_leaf(len(nodes), name, weights, inputs))
                target = leaves[name], 0
            if target is not None and target[0] != number:
                edges.append(GraphEdge(number, target[0], place, target[1]))
    return GraphSnapshot(
        nodes=tuple(nodes),
        edges=tuple(edges),
        plan=tuple(range(len(nodes))),
        modules=modules,
        rules={node.name: _rule(node) for node in nodes},
        root="program",
        of="program",
    )


def _rule(node: GraphNode) -> str:
    if node.kind == "operation":
        return f"The operation {node.aten} of the program."
    return "An input of the program." if node.name == "input" else "A tensor of the file."


def _operation(number: int, node: ProgramNode, count: int) -> GraphNode:
    name = node.op.removeprefix("aten.")
    return GraphNode(
        id=number,
        name=name,
        label=f"{node.outputs[0].name if node.outputs else node.name} = {name}",
        kind="operation",
        block=None,
        sequence=count - number,
        outputs=tuple(_spec(value) for value in node.outputs if value.shape is not None),
        op=name,
        module=node.module,
        aten=node.op,
    )


def _leaf(
    number: int, name: str, weights: dict[str, ArtifactEntry], inputs: dict[str, ProgramValue]
) -> GraphNode:
    entry = weights.get(name)
    if entry is None:
        specs: tuple[TensorSpec, ...] = ()
        if inputs[name].shape is not None:
            specs = (_spec(inputs[name]),)
        return GraphNode(number, "input", name, "leaf", None, -1, specs)
    module = entry.key.rpartition(".")[0]
    spec = TensorSpec(entry.shape, entry.dtype)
    role = entry.role or "weight"
    return GraphNode(number, role, entry.key, "leaf", None, -1, (spec,), module=module)


def _spec(value: ProgramValue) -> TensorSpec:
    return TensorSpec(value.shape or (), value.dtype)


def node_words(node: ProgramNode) -> str:
    """An operation with its inputs, outputs and attributes, on three lines at most."""
    takes = ", ".join(node.inputs) or "nothing"
    gives = ", ".join(map(value_words, node.outputs)) or "nothing"
    where = f"  in {node.module}" if node.module else ""
    lines = [f"{node.op}{where}", f"takes {takes}  →  {gives}"]
    told = " · ".join(f"{name} = {text}" for name, text in node.attributes)
    return "\n".join((*lines, told) if told else lines)


def value_words(value: ProgramValue) -> str:
    """A value with its shape and dtype."""
    shape = "" if value.shape is None else f" {format_shape(value.shape)}"
    return f"{value.name}{shape} {value.dtype}".strip()
