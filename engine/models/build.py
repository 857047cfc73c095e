"""Builds a torch.fx graph, and from it a module, out of blocks and wires.

A block becomes one fx node or a few: if it has several outputs, `operator.getitem` takes them
apart. Every node has its block's id in `node.meta["block"]`.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx, nn

from ..project import catalogue, wiring
from ..project.catalogue import BlockKind, Port
from ..project.document import Block, Model, ParamValue
from ..restoring.random_states import torch_states_kept
from ..system.errors import LabError


@dataclass(frozen=True)
class BlockGraph:
    """The part of a model that can run, as torch.fx nodes.

    `nodes` has each block's nodes in order of execution; a block without one of its inputs has
    none. `inputs` has the node at each wired input port of a block, in the ports' order. `values`
    has the node at each output port (block id, port name). `prediction` is what the model returns.
    """

    graph: fx.Graph
    nodes: dict[str, tuple[fx.Node, ...]] = field(default_factory=dict)
    inputs: dict[str, dict[str, fx.Node]] = field(default_factory=dict)
    values: dict[tuple[str, str], fx.Node] = field(default_factory=dict)
    prediction: fx.Node | None = None

    @property
    def order(self) -> tuple[str, ...]:
        """The ids of the blocks that run, without Output and loss."""
        return tuple(self.nodes)

    def outputs(self, block: Block) -> tuple[fx.Node, ...]:
        """The nodes at a block's output ports, in the ports' order."""
        return tuple(self.values[block.id, port.name] for port in catalogue.ports(block)[1])


def block_graph(model: Model) -> BlockGraph:
    """Return the fx graph of all blocks that have their inputs and arguments.

    Raises WiringError on a loop.
    """
    built = BlockGraph(fx.Graph())
    graph, values = built.graph, built.values
    sources = {(w.target, w.target_port): (w.source, w.source_port) for w in model.wires}
    blocks = {block.id: block for block in model.blocks}
    for block_id in wiring.topological_order(model):
        block = blocks[block_id]
        if block.kind not in catalogue.kinds() or not has_valid_arguments(block):
            continue
        kind = catalogue.kind(block.kind)
        if kind.call in ("output", "loss"):
            continue
        inputs, outputs = catalogue.ports(block)
        wired = {
            port.name: values[source]
            for port in inputs
            if (source := sources.get((block_id, port.name))) in values
        }
        args = _packed(inputs, wired)
        if args is None:
            continue
        before = len(graph.nodes)
        result = _call(graph, kind, block, args)
        for port, node in zip(outputs, _unpacked(graph, outputs, result), strict=True):
            values[block_id, port.name] = node
        built.inputs[block_id] = wired
        built.nodes[block_id] = tuple(graph.nodes)[before:]
        for node in built.nodes[block_id]:
            node.meta["block"] = block_id
    prediction = values.get(wiring.prediction_of(model) or ("", ""))
    if prediction is not None:
        graph.output(prediction)
    return replace(built, prediction=prediction)


def make_module(block: Block) -> nn.Module:
    """Return the torch module of a module block, initialised by torch's own rules.

    Raises whatever torch raises for these arguments.
    """
    kind = catalogue.kind(block.kind)
    return getattr(nn, kind.torch_name.removeprefix("torch.nn."))(**explicit(block))


def make_initialised(block: Block, seed: int) -> nn.Module:
    """As make_module, with weights that depend only on `seed` and the block's name, so that an edit
    elsewhere does not change them. The global random state stays as it was."""
    digest = hashlib.sha256(f"{seed}:{block.name}".encode()).digest()
    with torch_states_kept():
        torch.manual_seed(int.from_bytes(digest[:7], "little"))
        return make_module(block)


def explicit(block: Block) -> dict[str, ParamValue]:
    """Return the arguments to pass to torch: those that differ from its defaults."""
    kind = catalogue.kind(block.kind)
    return {
        param.name: block.params[param.name]
        for param in kind.params
        if param.name in block.params
        and not (kind.variadic and param.name == "inputs")
        and (param.required or block.params[param.name] != param.default)
    }


def has_module(block: Block) -> bool:
    """Whether the block is a submodule of the model, and so a part of its state_dict."""
    kind = catalogue.kinds().get(block.kind)
    return kind is not None and kind.call == "module"


def has_valid_arguments(block: Block) -> bool:
    """Whether all required parameters are set and all values are of their type and range."""
    for param in catalogue.kind(block.kind).params:
        if param.name not in block.params:
            if param.required:
                return False
            continue
        try:
            catalogue.parse_value(param, block.params[param.name])
        except ValueError:
            return False
    return True


def build(model: Model, make: Callable[[Block], nn.Module]) -> tuple[fx.GraphModule, BlockGraph]:
    """Return the model as a module. Its submodules have the blocks' names and are made by `make`.

    Raises LabError with its problems if the wiring is not complete.
    """
    problems = tuple(p for p in wiring.check(model) if p.severity == "error")
    if problems:
        raise LabError(
            f"The model cannot run: {problems[0].message}",
            hint="Fix what the Problems list names.",
            problems=problems,
        )
    found = block_graph(model)
    modules: Mapping[str, Any] = {
        block.name: make(block)
        for block in model.blocks
        if has_module(block) and block.id in found.nodes
    }
    found.graph.lint()
    return fx.GraphModule(dict(modules), found.graph, "Model"), found


# -- one block ------------------------------------------------------------------------------------


def _packed(inputs: tuple[Port, ...], wired: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the positional arguments; None if a required one is missing."""
    args: list[Any] = []
    index = 0
    while index < len(inputs):
        port = inputs[index]
        group = [p for p in inputs[index:] if port.pack and p.pack == port.pack] or [port]
        index += len(group)
        given = [wired.get(p.name) for p in group]
        if all(node is None for node in given) and port.optional:
            continue
        if any(node is None for node in given):
            return None
        args.append(tuple(given) if port.pack else given[0])
    return tuple(args)


def _call(graph: fx.Graph, kind: BlockKind, block: Block, args: tuple[Any, ...]) -> fx.Node:
    if kind.call == "input":
        return graph.placeholder(block.name)
    if kind.call == "module":
        return graph.call_module(block.name, args)
    if kind.call == "method":
        # As in Tensor.reshape; the batch, dimension 0, is kept.
        batch = graph.call_method("size", (*args, 0))
        shape = explicit(block)["shape"]
        assert isinstance(shape, tuple)
        return graph.call_method("reshape", (*args, batch, *shape))
    keywords: dict[str, Any] = dict(explicit(block))
    return graph.call_function(function(kind), args, keywords)


def function(kind: BlockKind) -> Callable[..., Any]:
    """Return the function that a function block stands for."""
    module, _, name = kind.torch_name.rpartition(".")
    return getattr({"torch": torch, "operator": operator}[module], name)


def _unpacked(graph: fx.Graph, outputs: tuple[Port, ...], result: fx.Node) -> list[fx.Node]:
    """Return a node for each output port, out of the value that a block returns."""
    if len(outputs) == 1:
        return [result]
    groups: dict[str, list[Port]] = {}
    for port in outputs:
        groups.setdefault(port.pack or port.name, []).append(port)
    nodes: list[fx.Node] = []
    for index, group in enumerate(groups.values()):
        item = graph.call_function(operator.getitem, (result, index))
        if len(group) == 1:
            nodes.append(item)
        else:
            nodes += [
                graph.call_function(operator.getitem, (item, place)) for place in range(len(group))
            ]
    return nodes
