"""Indices that are out of range, and masks of another shape than the dimensions they index."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...protocol import FailedOperand, FailedOperands
from ...recording.call_names import index_text
from .call import MAX_DIMS, Call, CallTensor, clip, counted, headings_of, row
from .matching_shapes import aligned

_TARGET_SHAPE = (
    r"Target sizes: \[([\d, ]*)\]|into the \(([\d, ]*)\)|expand\(.*, size=\[([\d, ]*)\]\)"
)
"""Where a message of an assignment has the shape that the value must broadcast to."""


def index_marks(call: Call) -> FailedOperands | None:
    """Indexing, select and index_select: the size of each dimension, and the index given for it."""
    seen = call.tensors[0]
    if call.name in ("__getitem__", "__setitem__"):
        index = call.given(1)
        items = list(index) if isinstance(index, tuple) else [index]
        if isinstance(index, list) and any(
            isinstance(i, slice | CallTensor) or i is Ellipsis for i in index
        ):
            items = index
    else:
        dim = call.given(1, "dim", default=0)
        asked = call.given(2, "index", "indices", "start")
        if type(dim) is not int or not seen.shape:
            return None
        items = [slice(None)] * (dim % len(seen.shape)) + [asked]
    return _indexed(call, seen, items) or _assigned(call)


def _indexed(call: Call, seen: CallTensor, items: Sequence[Any]) -> FailedOperands | None:
    ndim, taken = len(seen.shape), sum(map(_dims_taken, items))
    dim, cells, columns, failing = 0, [], [], []
    asked_for: int | None = None
    for item in items:
        if item is Ellipsis:
            dim += max(0, ndim - taken)
            continue
        count = _dims_taken(item)
        if count == 0:
            continue
        if _is_mask(item) and seen.shape[dim : dim + count] != item.shape:
            return _masked(call, seen, item, dim)
        outside = None if dim >= ndim else _outside(item, seen.shape[dim])
        if dim >= ndim or outside is not None:
            failing.append(len(cells))
            asked_for = outside if asked_for is None else asked_for
        cells.append(_index_word(item))
        columns.append(dim)
        dim += count
        if len(cells) == MAX_DIMS:
            break
    if not failing:
        return None
    there = tuple(f"0…{size - 1}" if size else "none" for size in seen.shape)
    at = columns[failing[0]]
    if at >= ndim:
        text = f"{seen.text} has {counted(ndim, 'dimension')}, but {taken} are indexed."
    else:
        text = (
            f"Dim {at} of {seen.text} has {counted(seen.shape[at], 'element')}, numbered"
            f" {there[at].replace('…', ' to ')}: {asked_for} is not one of them."
        )
    numbered = FailedOperand("numbered", there, tuple(range(ndim)))
    asked = FailedOperand("index", tuple(cells), tuple(columns), tuple(failing))
    rows = (row(seen), numbered, asked)
    return FailedOperands("index", call.name, rows, headings_of(rows), text)


def _masked(call: Call, seen: CallTensor, mask: CallTensor, dim: int) -> FailedOperands:
    differing = [
        d
        for d in range(len(mask.shape))
        if seen.shape[dim + d : dim + d + 1] != mask.shape[d : d + 1]
    ]
    covered = [dim + d for d in differing if dim + d < len(seen.shape)]
    columns = range(dim, dim + len(mask.shape))
    rows = (row(seen, failing=covered), row(mask, mask.shape, columns, differing))
    text = f"A mask has a truth value for each element that it covers: {mask.shape} does not fit."
    return FailedOperands("index", call.name, rows, headings_of(rows), text)


def _assigned(call: Call) -> FailedOperands | None:
    """`x[i] = y`, where y does not broadcast to x[i], whose shape is in the message."""
    value = call.given(2)
    match = re.search(_TARGET_SHAPE, call.message)
    match = match or re.search(
        r"shape mismatch: .* to indexing result of shape \[([\d, ]*)\]", call.message
    )
    if call.name != "__setitem__" or not isinstance(value, CallTensor) or match is None:
        return None
    sizes = next(group for group in match.groups() if group is not None)
    shape = tuple(int(size) for size in re.findall(r"\d+", sizes))
    target = CallTensor("picked", shape, call.tensors[0].dtype, call.tensors[0].device)
    return aligned(call, [target, value], in_place=True)


def _dims_taken(item: Any) -> int:
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    return len(item.shape) if _is_mask(item) else 1


def _is_mask(item: Any) -> bool:
    return isinstance(item, CallTensor) and item.dtype in ("bool", "uint8")


def _ends(item: Any) -> tuple[int, int] | None:
    """The smallest and the largest number of an index; None if it has no numbers."""
    if isinstance(item, CallTensor):
        return item.extremes
    items = item if isinstance(item, list | tuple) else [item]
    numbers = [number for number in items if type(number) is int]
    return (min(numbers), max(numbers)) if numbers else None


def _outside(item: Any, size: int) -> int | None:
    """A number of the index that is out of range in a dimension of `size`, or None."""
    return next((end for end in reversed(_ends(item) or ()) if not -size <= end < size), None)


def _index_word(item: Any) -> str:
    """An index as the text of a cell. An index of several numbers is written as its smallest and
    largest (`0…7`)."""
    ends = _ends(item)
    if isinstance(item, CallTensor | list | tuple):
        if not ends:
            return clip(item.text) if isinstance(item, CallTensor) else "…"
        return str(ends[0]) if ends[0] == ends[1] else f"{ends[0]}…{ends[1]}"
    return index_text(item)


def gather_marks(call: Call) -> FailedOperands | None:
    """gather, scatter: the index may be no larger than the tensor along all dimensions but `dim`,
    and its numbers must be in range."""
    seen, dim, index = call.tensors[0], call.given(1, "dim"), call.given(2, "index")
    if type(dim) is not int or not isinstance(index, CallTensor) or not seen.shape:
        return None
    dim %= len(seen.shape)
    if len(index.shape) != len(seen.shape):
        failing = range(len(index.shape))
        rows = (row(seen), row(index, failing=failing))
        text = "The index must have as many dimensions as the tensor."
        return FailedOperands("index", call.name, rows, headings_of(rows), text)
    failing = [d for d, size in enumerate(index.shape) if d != dim and size > seen.shape[d]]
    headings = tuple("dim" if d == dim else str(d) for d in range(len(seen.shape)))
    if failing:
        rows = (row(seen, failing=failing), row(index, failing=failing))
        text = f"Except along dim {dim}, the index must not be larger than {seen.text}."
        return FailedOperands("index", call.name, rows, headings, text)
    if all(0 <= end < seen.shape[dim] for end in _ends(index) or ()):
        return None
    asked = _index_word(index)
    rows = (
        row(seen, failing=[dim], note=f"numbered 0…{seen.shape[dim] - 1}"),
        row(index, note=f"holds {asked}", wrong=("note",)),
    )
    text = f"Dim {dim} of {seen.text} has {seen.shape[dim]} elements: the index holds {asked}."
    if asked.startswith("-"):
        text += f" In {call.name} a negative index does not count from the end."
    return FailedOperands("index", call.name, rows, headings, text)


def embedding_marks(call: Call) -> FailedOperands | None:
    if len(call.tensors) < 2 or not call.tensors[1].shape:
        return None
    index, table = call.tensors[:2]
    least = min(_ends(index) or (0,))
    if least >= 0 or not table.shape:
        return _indexed(Call(call.name, [table, index]), table, [index])
    rows = (
        row(table, failing=[0], note=f"numbered 0…{table.shape[0] - 1}"),
        row(index, note=f"holds {_index_word(index)}", wrong=("note",)),
    )
    text = (
        f"The rows of {table.text} are numbered from 0, and the index holds {least}. In embedding a"
        " negative index does not count from the end."
    )
    return FailedOperands("index", call.name, rows, headings_of(rows), text)
