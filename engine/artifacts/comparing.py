"""How two files differ, key by key, and in their graphs."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from ..protocol import ArtifactDifference, ProgramGraph, ProgramNode
from ..system.errors import LabError
from ..tensors.values.statistics import CHUNK
from .contents.artifact import Artifact, Entry

MAX_ELEMENTS = 2**40
GRAPH = "(graph)"
"""The key of the row that compares the graphs of two programs."""
_IN_PARTS = "its parts are compared by their own keys"


def compare(first: Artifact, second: Artifact) -> Iterator[ArtifactDifference | None]:
    """The rows of the comparison, in the order of the first file; None between pieces of large
    tensors."""
    others = {entry.key: entry for entry in second.entries}
    for entry in first.entries:
        other = others.pop(entry.key, None)
        if other is None:
            yield ArtifactDifference(entry.key, "only first", _entry_text(entry))
        else:
            yield from _compared(first, entry, second, other)
    for other in others.values():
        yield ArtifactDifference(other.key, "only second", "", _entry_text(other))
    if first.graph is not None or second.graph is not None:
        yield _graphs(first, second)


def rows_in(first: Artifact, second: Artifact) -> int:
    """How many rows the comparison has."""
    keys = {entry.key for artifact in (first, second) for entry in artifact.entries}
    return len(keys) + (first.graph is not None or second.graph is not None)


def _compared(
    first: Artifact, a: Entry, second: Artifact, b: Entry
) -> Iterator[ArtifactDifference | None]:
    sides = _entry_text(a), _entry_text(b)
    if a.kind == b.kind == "value" and (a.note or b.note):
        yield ArtifactDifference(a.key, "unread", *sides, note=a.note or b.note)
    elif a.kind == "value" or b.kind == "value":
        same = (a.kind, a.dtype, a.text) == (b.kind, b.dtype, b.text)
        yield ArtifactDifference(a.key, "equal" if same else "different", *sides)
    elif a.shape != b.shape:
        yield ArtifactDifference(a.key, "shape", *sides)
    elif a.in_parts and b.in_parts:
        if a.dtype != b.dtype:
            yield ArtifactDifference(a.key, "dtype", *sides, note=_IN_PARTS)
        elif a.note != b.note:
            yield ArtifactDifference(a.key, "different", a.note, b.note, note=_IN_PARTS)
        else:
            yield ArtifactDifference(a.key, "equal", *sides, note=_IN_PARTS)
    elif a.place is None or b.place is None or math.prod(a.shape) > MAX_ELEMENTS:
        note = a.note or b.note or "it is too large"
        yield ArtifactDifference(a.key, "unread", *sides, note=note)
    else:
        try:
            x, y = first.tensor(a.key), second.tensor(b.key)
        except LabError as error:
            yield ArtifactDifference(a.key, "unread", *sides, note=str(error))
            return
        absolute = relative = 0.0
        for one, two in _pieces(x, y):
            largest, share = _difference(one, two)
            absolute, relative = max(absolute, largest), max(relative, share)
            yield None
        verdict = "dtype" if a.dtype != b.dtype else "different" if absolute else "equal"
        yield ArtifactDifference(a.key, verdict, *sides, absolute, relative)


def _graphs(first: Artifact, second: Artifact) -> ArtifactDifference:
    """How two programs differ in what they do: in inputs, outputs and operations with their
    attributes, one after the other. The names and modules of operations may differ."""
    a, b = first.graph, second.graph
    if a is None or b is None:
        verdict = "only first" if b is None else "only second"
        return ArtifactDifference(GRAPH, verdict, _graph_text(a), _graph_text(b))
    sides = _graph_text(a), _graph_text(b)
    if first.kind != second.kind:
        note = "graphs of two formats are not compared"
        return ArtifactDifference(GRAPH, "unread", *sides, note=note)
    note = _first_difference(first, a, second, b)
    if not note and first.program_digest != second.program_digest:
        note = "a part that is not shown differs: its code, or an attribute, say"
    return ArtifactDifference(GRAPH, "different" if note else "equal", *sides, note=note)


def _first_difference(first: Artifact, a: ProgramGraph, second: Artifact, b: ProgramGraph) -> str:
    """The first one, in words; "" if there is none."""
    for name in dict.fromkeys((*first.metadata, *second.metadata)):
        sides = [artifact.metadata.get(name, "none") for artifact in (first, second)]
        if (name == "opset" or name.startswith("size ")) and sides[0] != sides[1]:
            return f"{name}: {sides[0]} and {sides[1]}"
    for what, x, y in (("inputs", a.inputs, b.inputs), ("outputs", a.outputs, b.outputs)):
        if x != y:
            return f"its {what} differ"
    if len(a.nodes) != len(b.nodes):
        return "one has more operations"
    for number, (x, y) in enumerate(zip(a.nodes, b.nodes, strict=True), 1):
        if x.op != y.op:
            return f"operation {number}: {x.op} and {y.op}"
        if x.inputs != y.inputs or _names(x) != _names(y):
            return f"operation {number}, {x.op}: other inputs or results"
        for name in dict(x.attributes) | dict(y.attributes):
            sides = [dict(node.attributes).get(name, "none") for node in (x, y)]
            if sides[0] != sides[1]:
                return f"operation {number}, {x.op}: {name} is {sides[0]} and {sides[1]}"
        if sorted(x.attributes) != sorted(y.attributes):
            return f"operation {number}, {x.op}: other attributes"
    return ""


def _names(node: ProgramNode) -> list[str]:
    return [value.name for value in node.outputs]


def _graph_text(graph: ProgramGraph | None) -> str:
    return "" if graph is None else f"{len(graph.nodes):,} operations"


def _pieces(x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Both tensors in the same pieces."""
    waiting = [(x, y)]
    while waiting:
        one, two = waiting.pop()
        if one.numel() <= CHUNK:
            if one.numel():
                yield one, two
            continue
        dim = max(range(one.ndim), key=lambda d: one.shape[d])
        half = one.shape[dim] // 2
        parts = [half, one.shape[dim] - half]
        waiting += reversed(list(zip(one.split(parts, dim), two.split(parts, dim), strict=True)))


def _difference(x: Tensor, y: Tensor) -> tuple[float, float]:
    """The largest absolute and relative difference. Equal infinities and two NaNs differ by 0; NaN
    or infinity differs infinitely from any other number."""
    wide = torch.complex128 if x.is_complex() or y.is_complex() else torch.float64
    a, b = x.to(wide), y.to(wide)
    same = (a == b) | (a.isnan() & b.isnan())
    if not (x.is_floating_point() or x.is_complex() or y.is_floating_point() or y.is_complex()):
        same = x == y  # whole numbers of 64 bits do not all fit into float64
    if bool(same.all()):
        return 0.0, 0.0
    difference = (a - b).abs().masked_fill(same, 0.0).nan_to_num(math.inf, math.inf)
    share = (difference / b.abs()).masked_fill(same, 0.0).nan_to_num(math.inf, math.inf)
    # Whole numbers so large that float64 does not tell them apart differ by at least 1.
    return float(difference.max()) or 1.0, float(share.max())


def _entry_text(entry: Entry) -> str:
    if entry.kind == "value":
        return entry.text
    return f"{entry.shape} {entry.dtype}"
