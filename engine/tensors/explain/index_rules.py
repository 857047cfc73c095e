"""Square brackets: slices are views, masks and index tensors pick cells one by one and copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .layout import Ints, Layout, elementwise_stride, view_stride
from .piece_rules import selected, sliced
from .pointwise_rules import broadcast_shape, same_cells, written
from .registry import NotCovered, Outcome, Refusal, copy, rule, view
from .view_rules import expand, unsqueeze

MAX_COUNTED = 1 << 24
"""Masks are counted, to know the shape of what they pick, up to this many elements."""


@rule("__getitem__")
def getitem(x: Layout, index: Any) -> Outcome:
    part, picks, told = _sliced(x, _items(x, index))
    if not picks:
        return view(part, "whole numbers, slices, None and ... only move strides and offset.", told)
    shape, stride = _picked(part, picks)
    return copy(
        part.fresh(shape, stride),
        "a mask or an index tensor may pick any cells in any order: no strides can say that.",
        told,
    )


@rule("__setitem__")
def setitem(x: Layout, index: Any, value: Any) -> Outcome:
    part, picks, told = _sliced(x, _items(x, index))
    if not isinstance(value, Layout | bool | int | float | complex):
        raise NotCovered("assigning a list")
    shape = part.shape
    if picks:
        if part.repeats:
            raise NotCovered("writing to picked elements of an expanded tensor")
        if isinstance(value, Layout) and value.dtype != x.dtype:
            raise Refusal(
                f"Picked elements of {x.dtype} cannot be set from {value.dtype}.",
                "Convert the value first: .to(x.dtype).",
            )
        shape, _ = _picked(part, picks)
    sources: list[Layout] = []
    if isinstance(value, Layout):
        fitted = _fitted(value, shape)
        if picks and value.memory == x.memory:
            raise NotCovered("assigning to picked elements from the same memory")
        if not picks and (value.ndim or not part.ndim):  # a single number is copied out first
            sources = [fitted]
    if part.unwritable or not any(same_cells(part, source) for source in sources):
        written(part, sources, None)
    return Outcome("in place", (x,), f"{shape or 'one'} cells of it are overwritten.", tuple(told))


def _fitted(value: Layout, shape: Ints) -> Layout:
    """`value` as it is assigned to `shape`: leading dimensions of one element are dropped, the
    rest is stretched. Raises Refusal."""
    size = value.shape
    while size and size[0] == 1:
        size = size[1:]
    if len(size) > len(shape) or broadcast_shape([size, shape]) != shape:
        raise Refusal(
            f"A value of shape {value.shape} does not fit into the {shape} that is assigned to.",
            "It must broadcast to that shape.",
        )
    if value.shape == shape:
        return value
    stride = view_stride(value.shape, value.stride, size)
    assert stride is not None, "dimensions of one element can always be left out"
    return expand(value.view(size, stride), shape).result


def _items(x: Layout, index: Any) -> list[Any]:
    """The index, one item a dimension, with `...` written out as full slices."""
    items = list(index) if isinstance(index, tuple) else [index]
    items = [_as_tensor(item) if isinstance(item, list) else item for item in items]
    taken = sum(_dims_of(item) for item in items)
    if taken > x.ndim:
        raise Refusal(
            f"{taken} indices for a tensor of {x.ndim} dimensions.",
            "Leave some out, or add a dimension with None.",
        )
    ellipses = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise NotCovered("more than one ellipsis")
    if ellipses:
        at = ellipses[0]
        items[at : at + 1] = [slice(None)] * (x.ndim - taken)
    return items


def _dims_of(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, Layout) and item.dtype == torch.bool:
        return item.ndim
    return 1


def _as_tensor(item: list[Any]) -> Layout:
    try:
        t = torch.tensor(item, device="cpu")
    except (TypeError, ValueError, RuntimeError):
        raise NotCovered("a list of other things than numbers") from None
    if t.numel() == 0:
        t = t.long()
    return Layout(tuple(t.shape), t.stride(), 0, t.dtype, data=lambda: t)


def _sliced(x: Layout, items: Sequence[Any]) -> tuple[Layout, dict[int, Layout], list[str]]:
    """What whole numbers, slices and None leave of `x`; the index tensors by the dimension of
    that they pick from; and what each item did, in words."""
    dim = 0
    picks: dict[int, Layout] = {}
    told: list[str] = []
    wide_mask = False
    for item in items:
        if wide_mask and item != slice(None):
            raise NotCovered("more indices after a mask of several dimensions")
        if isinstance(item, bool) or (
            isinstance(item, Layout) and item.ndim == 0 and item.dtype in (torch.bool, torch.uint8)
        ):
            raise NotCovered("a single bool as index")
        if isinstance(item, Layout) and item.ndim == 0:
            item = _whole_number(item)
        if item is None:
            x = unsqueeze(x, dim).result
            told.append(f"None: a new dimension {dim} of one element")
            dim += 1
        elif isinstance(item, int):
            told.append(f"{item}: offset + {item % max(x.shape[dim], 1)}·{x.stride[dim]}")
            x = selected(x, dim, item)
        elif isinstance(item, slice):
            start, stop, step = _bounds(item, x.shape[dim])
            if item != slice(None):
                told.append(
                    f"{_slice_text(item)}: offset + {start}·{x.stride[dim]}, stride"
                    f" {x.stride[dim]}·{step}"
                )
            x = sliced(x, dim, start, stop, step)
            dim += 1
        elif isinstance(item, Layout):
            picks[dim] = item
            wide_mask = wide_mask or (item.dtype == torch.bool and item.ndim > 1)
            told.append(_pick_text(x, dim, item))
            dim += 1
        else:
            raise NotCovered(f"{item!r} as an index")
    return x, picks, told


def _whole_number(item: Layout) -> int:
    if item.data is None or item.dtype.is_floating_point or item.dtype.is_complex:
        raise NotCovered(f"a {item.dtype} as index")
    return int(item.data().item())


def _bounds(item: slice, size: int) -> tuple[int, int, int]:
    if isinstance(item.step, int) and item.step < 1:
        raise Refusal("A slice of a tensor goes forward only.", "Use .flip(dim).")
    try:
        start, stop, step = item.indices(size)
    except TypeError:
        raise Refusal("The bounds of a slice are whole numbers.") from None
    return start, max(start, stop), step


def _slice_text(item: slice) -> str:
    ends = ("" if end is None else str(end) for end in (item.start, item.stop))
    return ":".join(ends) + ("" if item.step is None else f":{item.step}")


def _pick_text(x: Layout, dim: int, item: Layout) -> str:
    if item.dtype == torch.bool:
        _check_mask(x, dim, item)
        return f"a mask of shape {item.shape}: {_trues(item)} of {item.numel} are True"
    return f"an index tensor of shape {item.shape} in place of dimension {dim}"


def _check_mask(x: Layout, dim: int, mask: Layout) -> None:
    covered = x.shape[dim : dim + mask.ndim]
    if mask.shape != covered:
        raise Refusal(
            f"The mask has shape {mask.shape}, the dimensions it covers {covered}.",
            "A mask has one truth value for each element it covers.",
        )


def _trues(mask: Layout) -> int:
    if mask.data is None or mask.numel > MAX_COUNTED:
        raise NotCovered("a mask of this size: how many are True must be counted first")
    return int(mask.data().count_nonzero())


def _picked(x: Layout, picks: dict[int, Layout]) -> tuple[Ints, Ints]:
    """Shape and stride of x[picks] (`AdvancedIndex` in TensorAdvancedIndexing.cpp): the index's
    own dimensions stand where it stood, or in front when slices stand between two indices."""
    indices: dict[int, Layout] = {}
    dim = 0
    shift = 0
    for place in sorted(picks):
        item, dim = picks[place], place + shift
        if item.dtype == torch.bool:
            _check_mask(x, dim, item)
            count = _trues(item)
            for covered in range(item.ndim):
                indices[dim + covered] = Layout((count,), (item.ndim,), 0, torch.int64)
            shift += item.ndim - 1
        elif item.dtype in (torch.int64, torch.int32, torch.int16, torch.int8):
            indices[dim] = item
        else:
            raise Refusal(
                f"An index tensor is int64 or bool, not {item.dtype}.", "Use .long() or .bool()."
            )
    shape = broadcast_shape([index.shape for index in indices.values()])
    if len(indices) > 1:
        indices = {d: expand(index, shape).result for d, index in indices.items()}
    order = sorted(indices)
    if order[-1] - order[0] >= len(order):  # not side by side: to the front
        dims = [*order, *(d for d in range(x.ndim) if d not in indices)]
        x = x.view([x.shape[d] for d in dims], [x.stride[d] for d in dims])
        indices = {i: indices[d] for i, d in enumerate(order)}
        order = list(range(len(order)))
    before, after = order[0], x.ndim - order[-1] - 1
    if 0 in (x.shape[d] for d in order) and 0 not in shape:
        raise Refusal("There is nothing to pick from: the dimension indexed has no elements.")
    source = x.view(
        (*x.shape[:before], *shape, *x.shape[before + len(order) :]),
        (*x.stride[:before], *(0,) * len(shape), *x.stride[before + len(order) :]),
    )
    operands = [source]
    for index in indices.values():
        padded = (1,) * before + index.shape + (1,) * after
        stride = view_stride(index.shape, index.stride, padded)
        operands.append(index.fresh(padded) if stride is None else index.view(padded, stride))
    return source.shape, elementwise_stride(operands, source.shape)


@rule("masked_select")
def masked_select(x: Layout, mask: Layout) -> Outcome:
    if mask.dtype != torch.bool:
        raise Refusal(f"A mask is bool, not {mask.dtype}.", "Compare it, or .bool().")
    shape = broadcast_shape([x.shape, mask.shape])
    if mask.shape != shape:
        raise NotCovered("masked_select with a mask that is stretched")
    return copy(x.fresh((_trues(mask),)), "the elements under True, one after the other.")
