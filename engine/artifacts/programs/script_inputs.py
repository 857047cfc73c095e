"""Which inputs a TorchScript program may take. The file tells only the shapes of its weights; these
shapes tell which sizes of inputs fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import torch

from ...protocol import Dim, ProgramGraph, ProgramNode

BATCH = "N"
_IMAGE_SIZES = (28, 32, 64, 224, 8, 16, 96, 128, 256, 299, 48, 512)
_LENGTHS = (16, 8, 32, 64, 128, 4)

Weights = dict[str, tuple[tuple[int, ...], torch.dtype]]
Numbers = dict[str, int | float | bool]
Input = tuple[tuple[Dim, ...], torch.dtype]
Inputs = dict[str, Input]
"""Shapes and dtypes by names; a dimension of an input may be that of the batch."""


def by_batch(two: tuple[Dim, ...] | None, three: tuple[Dim, ...] | None) -> tuple[Dim, ...] | None:
    """A shape in terms of the batch, from the shapes for batches of 2 and of 3."""
    if two is None or three is None or len(two) != len(three):
        return None
    return tuple(map(_dim, two, three))


def _dim(two: Dim, three: Dim) -> Dim:
    assert isinstance(two, int) and isinstance(three, int)
    step = three - two
    rest = two - 2 * step
    if step == 0:
        return two
    times = BATCH if step == 1 else f"{step}{BATCH}"
    return times if rest == 0 else f"{times}{rest:+d}"


_CONV = frozenset(["_convolution", "convolution", "conv1d", "conv2d", "conv3d"])
_RECURRENT = frozenset(["lstm", "gru", "rnn_tanh", "rnn_relu"])
_RANKS = {"linear": 2, "addmm": 2, "matmul": 2, "embedding": 2, "layer_norm": 1, "batch_norm": 1}
_RANKS |= dict.fromkeys(_RECURRENT, 2)


def likely_inputs(graph: ProgramGraph, weights: Weights) -> Iterator[Inputs]:
    """Shapes of the inputs that the first weights which they meet may fit, the usual ones first."""
    first = {value.name: _first_weight(value.name, graph, weights) for value in graph.inputs}
    tried: list[Inputs] = []
    for image, length in zip_longest(_IMAGE_SIZES, _LENGTHS, fillvalue=0):
        for is_sequence in (False, True):
            shapes = {
                name: shape
                for name, met in first.items()
                if met and (shape := _input(*met, image, length, is_sequence))
            }
            if shapes and shapes not in tried:
                tried.append(shapes)
                yield shapes


def _first_weight(
    name: str, graph: ProgramGraph, weights: Weights
) -> tuple[ProgramNode, Sequence[int], torch.dtype] | None:
    """The first operation with a weight that an input comes to; shape and dtype of the weight."""
    reached = {name}
    for node in graph.nodes:
        if reached & set(node.inputs):
            for each in node.inputs:
                shape = weights[each][0] if each in weights else ()
                is_conv = node.op in _CONV or node.op.startswith("conv_transpose")
                if len(shape) == _RANKS.get(node.op, -1) or (is_conv and len(shape) > 2):
                    return node, *weights[each]
            reached |= {value.name for value in node.outputs}
    return None


def _input(
    node: ProgramNode,
    sizes: Sequence[int],
    dtype: torch.dtype,
    image: int,
    length: int,
    is_sequence: bool,
) -> Input | None:
    """An input that the operation may take, whose weight has these sizes and this dtype."""
    attributes = dict(node.attributes)
    if len(sizes) > 2:
        if is_sequence:
            return None
        is_whole = node.op == "_convolution"
        is_transposed = attributes.get("6") == "True" if is_whole else node.op not in _CONV
        groups = attributes.get("8" if is_whole else "6", "1")
        channels = sizes[1] * (int(groups) if groups.isdecimal() else 1)
        channels = sizes[0] if is_transposed else channels
        return (BATCH, channels, *[image] * (len(sizes) - 2)), dtype
    if not length:
        return None
    if node.op == "embedding":
        return ((BATCH,) if is_sequence else (BATCH, length)), torch.int64
    features = sizes[0] if node.op in ("matmul", "addmm") else sizes[-1]
    if node.op in _RECURRENT:
        is_batch_first = attributes.get("8") == "True"
        outer = (BATCH, length) if is_batch_first else (length, BATCH)
        return (*outer, features), dtype
    return ((BATCH, length, features) if is_sequence else (BATCH, features)), dtype
