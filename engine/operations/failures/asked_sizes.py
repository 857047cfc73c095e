"""Operations that are given sizes or dimensions: view, reshape, split, permute."""

from __future__ import annotations

import math

from ...protocol import FailedOperand, FailedOperands
from ..memory.footprint import contiguous_strides
from .call import MAX_DIMS, Call, CallTensor, clip, counted, headings_of, row, sizes_asked


def elements_marks(call: Call) -> FailedOperands | None:
    """view and reshape: the number of elements must be the same, and for view strides must fit."""
    seen, asked = call.tensors[0], sizes_asked(call)
    if asked is None:
        return None
    there = math.prod(seen.shape)
    known = math.prod(size for size in asked if size != -1)
    fits = known == there if -1 not in asked else known != 0 and there % known == 0
    wanted = FailedOperand("asked for", asked, tuple(range(len(asked))))
    if fits and asked.count(-1) < 2:
        if seen.stride is None or call.name == "reshape":
            return None
        strides = FailedOperand(
            "strides",
            seen.stride,
            tuple(range(len(seen.stride))),
            _breaks(seen),
            note="not C order",
        )
        text = (
            f"view() cannot copy, and no strides describe this shape in the order of {seen.text}."
        )
        rows = (row(seen, note=counted(there, "element")), strides, wanted)
        return FailedOperands("elements", call.name, rows, headings_of(rows), text)
    product = f"{' · '.join(map(str, asked))} = " if len(asked) > 1 else ""
    if asked.count(-1) > 1:
        failing, note = [d for d, size in enumerate(asked) if size == -1], "only one -1"
        text = "torch infers one size only: more than one is -1."
    elif -1 in asked:
        failing = [d for d, size in enumerate(asked) if size != -1]
        note = f"{there} is not a multiple of {known}"
        text = f"{seen.text} has {counted(there, 'element')}, not a multiple of {known}."
    else:
        failing, note = list(range(len(asked))), f"{product}{counted(known, 'element')}"
        text = f"{seen.text} has {counted(there, 'element')}, but {known:,} were asked for."
    rows = (
        row(seen, note=counted(there, "element"), wrong=("note",)),
        FailedOperand(
            "asked for", asked, wanted.columns, tuple(failing), wrong=("note",), note=clip(note)
        ),
    )
    return FailedOperands("elements", call.name, rows, headings_of(rows), text)


def _breaks(seen: CallTensor) -> tuple[int, ...]:
    """The dimensions whose stride differs from that of C order."""
    assert seen.stride is not None
    strides = zip(seen.shape, seen.stride, contiguous_strides(seen.shape), strict=True)
    return tuple(d for d, (size, own, wanted) in enumerate(strides) if size != 1 and own != wanted)


def split_marks(call: Call) -> FailedOperands | None:
    """split: the sizes must add up to the size of the dimension."""
    seen, sizes = (
        call.tensors[0],
        call.given(1, "split_size", "split_sizes", "split_size_or_sections"),
    )
    dim = call.given(2, "dim", default=0)
    if not isinstance(sizes, list | tuple) or type(dim) is not int or not seen.shape:
        return None
    if not all(type(size) is int for size in sizes):
        return None
    dim %= len(seen.shape)
    total = sum(sizes)
    if total == seen.shape[dim]:
        return None
    columns = tuple(range(dim, dim + len(sizes[:MAX_DIMS])))
    asked = FailedOperand(
        "pieces", tuple(sizes[:MAX_DIMS]), columns, tuple(range(len(columns))), note=f"sum {total}",
        wrong=("note",),
    )  # fmt: skip
    rows = (row(seen, failing=[dim]), asked)
    text = f"The pieces add up to {total}, but dim {dim} has {seen.shape[dim]}."
    return FailedOperands("elements", call.name, rows, headings_of(rows), text)


def permute_marks(call: Call) -> FailedOperands | None:
    seen, asked = call.tensors[0], sizes_asked(call)
    if asked is None or len(asked) == len(seen.shape) == len(set(asked)):
        return None
    failing = [
        d for d, dim in enumerate(asked) if d >= len(seen.shape) or dim in asked[:d]
    ] or range(len(asked))
    rows = (
        row(seen),
        FailedOperand("dims", asked, tuple(range(len(asked))), tuple(failing)),
    )
    text = f"Each of the {counted(len(seen.shape), 'dimension')} of {seen.text} must be named once."
    return FailedOperands("dimension", call.name, rows, headings_of(rows), text)
