"""Live shapes: every block runs on fake tensors, with the batch as a symbol.

A fake tensor has a shape and a dtype but no numbers. Each block runs twice, with batches of 7 and
11. A size that differs between the two runs depends on the batch, and becomes `"B"`, `"2B"` or
`"B+3"`. The live model and the random state are not touched.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.node import map_arg

from ..project import catalogue
from ..project.document import Block, Model, ParamValue, Wire
from ..project.problems import Problem
from ..protocol import TensorSpec
from ..restoring.random_states import torch_states_kept
from ..tensors.fake_mode import fake_mode
from ..tensors.readable import dtype_name
from . import problems
from .build import BlockGraph, block_graph, explicit, has_module, has_valid_arguments, make_module

BATCHES = (7, 11)
_MAX_REAL_ELEMENTS = 1_000_000
_MAX_FAKE_MODULES = 512


@dataclass
class BlockShapes:
    """The shapes and sizes of one block. `outputs` is empty if it has not run.

    `activation_bytes` is numel * itemsize over the outputs, for a batch of one.
    """

    outputs: dict[str, TensorSpec] = field(default_factory=dict)
    parameters: int = 0
    parameter_bytes: int = 0
    activation_bytes: int = 0
    problems: list[Problem] = field(default_factory=list)


def infer(model: Model) -> dict[str, BlockShapes]:
    """Return the shapes and problems of every block, by id. Raises WiringError on a loop.

    A block after a failed one is unknown, not failed: it has no outputs and no problems.
    """
    graph = block_graph(model)
    run = _Run(graph)
    found = {}
    for block in model.blocks:
        found[block.id] = shapes = BlockShapes()
        if has_module(block):
            _count(block, shapes)
    for block_id in graph.order:
        run.block(model.block(block_id), found[block_id])
    return found


def symbolic(first: int, second: int) -> int | str:
    """Return a size as a function of the batch B, from its values at B = 7 and B = 11.

    `(7, 11)` is `"B"`, `(14, 22)` is `"2B"`, `(10, 14)` is `"B+3"`, `(5, 5)` is 5. A size that is
    not linear in B is `"?"`.
    """
    if first == second:
        return first
    factor, rest = divmod(second - first, BATCHES[1] - BATCHES[0])
    if rest:
        return "?"
    offset = first - factor * BATCHES[0]
    name = "B" if factor == 1 else f"{factor}B"
    return name if not offset else f"{name}{offset:+d}"


# -- running --------------------------------------------------------------------------------------


class _Run:
    """Runs each block with both batches."""

    def __init__(self, graph: BlockGraph) -> None:
        self.graph = graph
        self.values: tuple[dict[fx.Node, Any], dict[fx.Node, Any]] = ({}, {})

    def block(self, block: Block, shapes: BlockShapes) -> None:
        inputs = self.graph.inputs[block.id]
        if any(node not in self.values[0] for node in inputs.values()):
            return
        if any(problem.severity == "error" for problem in shapes.problems):
            return
        specs = {port: self._spec(node) for port, node in inputs.items()}
        shapes.problems += problems.traps(block, specs)
        nodes = self.graph.nodes[block.id]
        outputs: dict[str, TensorSpec] = {}
        try:
            with warnings.catch_warnings(), torch.no_grad(), fake_mode():
                warnings.simplefilter("ignore")
                module = _fake_module(block) if has_module(block) else None
                for batch, values in zip(BATCHES, self.values, strict=True):
                    _execute(block, nodes, values, module, batch)
                outputs = {
                    port.name: self._spec(node)
                    for port, node in zip(
                        catalogue.ports(block)[1], self.graph.outputs(block), strict=True
                    )
                }
            fake_words = ""
        except Exception as error:
            fake_words = f"{type(error).__name__}: {error}"
        words = self._real_words(block) or fake_words
        if words:
            for values in self.values:
                for node in nodes:
                    values.pop(node, None)
            shapes.problems.append(problems.refused(block, specs, words))
            return
        shapes.outputs = outputs
        shapes.activation_bytes = sum(
            _bytes_of_one(*(values[node] for values in self.values))
            for node in self.graph.outputs(block)
        )

    def _spec(self, node: fx.Node) -> TensorSpec:
        first, second = (values[node] for values in self.values)
        if not isinstance(first, Tensor) or not isinstance(second, Tensor):
            raise TypeError(f"a block gave {type(first).__name__}, not a tensor")
        if first.ndim != second.ndim:
            raise ValueError("the number of dimensions depends on the batch")
        shape = tuple(symbolic(a, b) for a, b in zip(first.shape, second.shape, strict=True))
        return TensorSpec(shape, dtype_name(first.dtype))

    def _real_words(self, block: Block) -> str:
        """The error that torch raises on real tensors; empty if it raises none.

        Fake tensors raise errors with other words, and miss some mistakes (a wrong dtype, a
        dimension that does not exist). Empty also for blocks that are too large to run.
        """
        inputs = {port: self.values[0][node] for port, node in self.graph.inputs[block.id].items()}
        held = [*inputs.values(), *map(self.values[0].get, self.graph.outputs(block))]
        size = sum(value.numel() for value in held if isinstance(value, Tensor))
        if has_module(block):
            size += sum(p.numel() for p in _fake_module(block).parameters())
        if not inputs or size > _MAX_REAL_ELEMENTS:
            return ""
        signature = tuple((port, tuple(x.shape), x.dtype) for port, x in inputs.items())
        return _try_on_real(block.kind, tuple(sorted(block.params.items())), signature)


@lru_cache(maxsize=_MAX_FAKE_MODULES)
def _try_on_real(
    kind: str,
    params: tuple[tuple[str, ParamValue], ...],
    inputs: tuple[tuple[str, tuple[int, ...], torch.dtype], ...],
) -> str:
    """Run a block once on zeros; return torch's error, or an empty text."""
    block = Block("block", kind, "block", dict(params))
    ends = tuple(Block(port, "Input", port, {"shape": (1,)}) for port, _, _ in inputs)
    wires = tuple(Wire(port, "x", "block", port) for port, _, _ in inputs)
    graph = block_graph(Model((*ends, block), wires))
    values: dict[fx.Node, Any] = {
        graph.values[port, "x"]: torch.zeros(shape, dtype=dtype) for port, shape, dtype in inputs
    }
    with warnings.catch_warnings(), torch.no_grad(), torch_states_kept():
        warnings.simplefilter("ignore")
        module = make_module(block) if has_module(block) else None
        try:
            _execute(block, graph.nodes["block"], values, module, BATCHES[0])
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return ""


def _execute(
    block: Block,
    nodes: tuple[fx.Node, ...],
    values: dict[fx.Node, Any],
    module: nn.Module | None,
    batch: int,
) -> None:
    """Run a block's nodes and add their results to `values`."""
    for node in nodes:
        args, kwargs = map_arg((node.args, node.kwargs), values.__getitem__)
        if node.op == "placeholder":
            given = catalogue.arguments(block)
            shape = given["shape"]
            assert isinstance(shape, tuple)
            dtype = getattr(torch, str(given["dtype"]))
            values[node] = torch.empty((batch, *map(int, shape)), dtype=dtype)
        elif node.op == "call_module":
            assert module is not None
            values[node] = module(*args, **kwargs)
        elif node.op == "call_method":
            values[node] = getattr(args[0], str(node.target))(*args[1:], **kwargs)
        else:
            assert callable(node.target)
            values[node] = node.target(*args, **kwargs)


_Fake = tuple[nn.Module | None, Exception | None, tuple[str, ...]]


def _fake(block: Block) -> _Fake:
    """Return the block's module on fake tensors, or the error that making it raised; and the
    warnings."""
    return _make_fake(block.kind, tuple(sorted(explicit(block).items())))


@lru_cache(maxsize=_MAX_FAKE_MODULES)
def _make_fake(kind: str, params: tuple[tuple[str, ParamValue], ...]) -> _Fake:
    block = Block("", kind, "", dict(params))
    with warnings.catch_warnings(record=True) as caught, fake_mode():
        warnings.simplefilter("always")
        try:
            module = make_module(block)
        except Exception as error:
            return None, error, ()
    return module, None, tuple(str(warning.message) for warning in caught)


def _fake_module(block: Block) -> nn.Module:
    module, error, _ = _fake(block)
    if module is None:
        raise error or RuntimeError(f"{block.name} has no module")
    return module


def _count(block: Block, shapes: BlockShapes) -> None:
    """Fill in the parameters of a block's module, or the problem if torch cannot make it."""
    if not has_valid_arguments(block):
        return  # `wiring.check` reports them
    module, error, said = _fake(block)
    shapes.problems += [problems.warned(block, text) for text in said]
    if module is None:
        shapes.problems.append(problems.not_made(block, error))
        return
    parameters = list(module.parameters())
    shapes.parameters = sum(p.numel() for p in parameters)
    shapes.parameter_bytes = sum(p.numel() * p.element_size() for p in parameters)


# -- reading --------------------------------------------------------------------------------------


def _bytes_of_one(first: Tensor, second: Tensor) -> int:
    """Bytes of a tensor for a batch of one, from its shapes at both batches."""
    step = BATCHES[1] - BATCHES[0]
    sizes = (
        a - (b - a) * (BATCHES[0] - 1) // step
        for a, b in zip(first.shape, second.shape, strict=True)
    )
    return math.prod(sizes) * first.element_size()
