"""Square brackets: slices are views, masks and index tensors pick cells one by one and copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from .index_values import check_range, true_count, whole_number
from .layout import Ints, Layout, elementwise_stride, view_stride
from .piece_rules import selected, sliced
from .pointwise_rules import broadcast_shape, same_cells, written
from .registry import NotCovered, Outcome, Refusal, copy, rule, view
from .view_rules import expand, unsqueeze

MASKS = (torch.bool, torch.uint8)
INDICES = (torch.int64, torch.int32)


@dataclass
class _Part:
    """What is left of a tensor once whole numbers, slices, None and bools are applied: `picks`
    has the mask or index tensor that starts at a dimension of `layout`, `origins` the dimension
    of the tensor itself that it picks from, `told` what each item did, in words."""

    layout: Layout
    picks: dict[int, Layout] = field(default_factory=dict)
    origins: dict[int, int] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    unless: str = ""


@rule("__getitem__")
def getitem(x: Layout, index: Any) -> Outcome:
    part = _part(x, index)
    if not part.picks:
        why = "whole numbers, slices, None and ... only move strides and offset."
        return view(part.layout, why, part.told)
    shape, stride = _picked(part)
    done = copy(
        part.layout.fresh(shape, stride),
        "a mask or an index tensor may pick any cells in any order: no strides can say that.",
        part.told,
    )
    return replace(done, unless=part.unless)


@rule("__setitem__")
def setitem(x: Layout, index: Any, value: Any) -> Outcome:
    if index is False:
        return Outcome("in place", (x,), "False picks nothing: nothing is written.")
    part = _part(x, None if index is True else index)
    if not isinstance(value, Layout | bool | int | float | complex):
        raise NotCovered("assigning a list")
    written_to, picks = part.layout, part.picks
    shape = written_to.shape
    if picks:
        if written_to.repeats:
            raise NotCovered("writing to picked elements of an expanded tensor")
        if any(item.dtype == torch.uint8 for item in picks.values()):
            raise NotCovered("writing where a uint8 mask says")
        if isinstance(value, Layout) and value.dtype != x.dtype:
            raise Refusal(
                f"Picked elements of {x.dtype} cannot be set from {value.dtype}.",
                "Convert the value first: .to(x.dtype).",
            )
        shape, _ = _picked(part, value if isinstance(value, Layout) else None)
    sources: list[Layout] = []
    if isinstance(value, Layout):
        fitted = _fitted(value, shape)
        if picks and value.memory == x.memory:
            raise NotCovered("assigning to picked elements from the same memory")
        if not picks and (value.ndim or not shape):  # a single number is copied out first
            sources = [fitted]
    if written_to.unwritable or not any(same_cells(written_to, source) for source in sources):
        written(written_to, sources, None)
    why = f"{shape or 'one'} cells of it are overwritten."
    return Outcome("in place", (x,), why, tuple(part.told), unless=part.unless)


def _fitted(value: Layout, shape: Ints) -> Layout:
    """`value` as it is assigned to `shape`: leading dimensions of one element are dropped, the
    rest is stretched. Raises Refusal."""
    size = value.shape
    while size and size[0] == 1:
        size = size[1:]
    pairs = zip(reversed(size), reversed(shape), strict=False)
    if len(size) > len(shape) or any(own not in (1, there) for own, there in pairs):
        raise Refusal(
            f"A value of shape {value.shape} does not fit into the {shape} that is assigned to.",
            "It must broadcast to that shape.",
            raises=RuntimeError,
        )
    if value.shape == shape:
        return value
    stride = view_stride(value.shape, value.stride, size)
    assert stride is not None, "dimensions of one element can always be left out"
    return expand(value.view(size, stride), shape).result


def _items(index: Any) -> list[Any]:
    """The index, item by item. Lists in it are index tensors, and an index that is a list of
    other things than numbers counts as a tuple (`treatSequenceAsTuple`)."""
    if isinstance(index, list) and len(index) < 32:
        parts = (Layout, list, tuple, slice, str)
        if any(item is None or item is Ellipsis or isinstance(item, parts) for item in index):
            index = tuple(index)
    items = list(index) if isinstance(index, tuple) else [index]
    return [_as_tensor(item) if isinstance(item, list | tuple) else item for item in items]


def _dims_of(item: Any) -> int:
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if isinstance(item, Layout) and item.dtype in MASKS:
        return item.ndim
    return 1


def _as_tensor(item: Sequence[Any]) -> Layout:
    try:
        t = torch.tensor(item, device="cpu")
    except (TypeError, ValueError, RuntimeError):
        raise NotCovered("a list of other things than numbers") from None
    if t.numel() == 0:
        t = t.long()
    return Layout(tuple(t.shape), t.stride(), 0, t.dtype, data=lambda: t)


def _part(x: Layout, index: Any) -> _Part:
    items = _items(index)
    taken = sum(map(_dims_of, items))
    if taken > x.ndim:
        raise Refusal(
            f"{taken} indices for a tensor of {x.ndim} dimensions.",
            "Leave some out, or add a dimension with None.",
            raises=IndexError,
        )
    if items.count(Ellipsis) > 1:
        raise NotCovered("more than one ellipsis")
    part, dim, origin = _Part(x), 0, 0
    for item in items:
        if item is Ellipsis:
            dim, origin = dim + x.ndim - taken, origin + x.ndim - taken
        else:
            dim = _apply(part, item, dim, origin)
            origin += _dims_of(item)
    return part


def _apply(part: _Part, item: Any, dim: int, origin: int) -> int:
    """Apply one item of an index at dimension `dim` of what is left; returns the next one's."""
    x, told = part.layout, part.told
    if isinstance(item, Layout) and item.ndim == 0:
        item = _number(item)
    if item is None:
        part.layout = unsqueeze(x, dim).result
        told.append(f"None: a new dimension {dim} of one element")
        return dim + 1
    if isinstance(item, bool):
        part.layout = unsqueeze(x, dim).result
        count = int(item)
        zeros = Layout((count,), (1,), 0, torch.int64, data=lambda: torch.zeros(count).long())
        part.picks[dim], part.origins[dim] = zeros, origin
        kept = "is kept: all is picked, and copied" if item else "is not kept: nothing is picked"
        told.append(f"{item}: a mask without dimensions; its one place {kept}")
        return dim + 1
    if isinstance(item, int):
        told.append(f"{item}: offset + {item % max(x.shape[dim], 1)}·{x.stride[dim]}")
        part.layout = selected(x, dim, item)
        return dim
    if isinstance(item, slice):
        start, stop, step = _bounds(item, x.shape[dim])
        if item != slice(None):
            told.append(
                f"{_slice_text(item)}: offset + {start}·{x.stride[dim]}, stride"
                f" {x.stride[dim]}·{step}"
            )
        part.layout = sliced(x, dim, start, stop, step)
        return dim + 1
    if isinstance(item, Layout):
        part.picks[dim], part.origins[dim] = item, origin
        told.append(_pick_text(x, dim, item))
        return dim + (item.ndim if item.dtype in MASKS else 1)
    if isinstance(item, float | complex):
        raise Refusal(f"{item} is no index: whole numbers count elements.", raises=IndexError)
    raise NotCovered(f"{item!r} as an index")


def _number(item: Layout) -> int | bool:
    if item.dtype in MASKS:
        return bool(whole_number(item))
    if item.dtype.is_floating_point or item.dtype.is_complex:
        raise Refusal(
            f"An index is a whole number, not {item.dtype}.", "Use .long().", raises=IndexError
        )
    return whole_number(item)


def _bounds(item: slice, size: int) -> tuple[int, int, int]:
    if isinstance(item.step, int) and item.step < 1:
        raise Refusal(
            "A slice of a tensor goes forward only.", "Use .flip(dim).", raises=ValueError
        )
    try:
        start, stop, step = item.indices(size)
    except TypeError:
        raise Refusal("The bounds of a slice are whole numbers.") from None
    return start, max(start, stop), step


def _slice_text(item: slice) -> str:
    ends = ("" if end is None else str(end) for end in (item.start, item.stop))
    return ":".join(ends) + ("" if item.step is None else f":{item.step}")


def _pick_text(x: Layout, dim: int, item: Layout) -> str:
    if item.dtype in MASKS:
        _check_mask(x, dim, item)
        old = " (uint8 masks are deprecated: torch warns)" if item.dtype == torch.uint8 else ""
        count = true_count(item)
        return f"a mask of shape {item.shape}: {count} of {item.numel} are True{old}"
    return f"an index tensor of shape {item.shape} in place of dimension {dim}"


def _check_mask(x: Layout, dim: int, mask: Layout) -> None:
    covered = x.shape[dim : dim + mask.ndim]
    if mask.shape != covered:
        raise Refusal(
            f"The mask has shape {mask.shape}, the dimensions it covers {covered}.",
            "A mask has one truth value for each element it covers.",
            raises=IndexError,
        )


def _index_tensors(part: _Part) -> dict[int, Layout]:
    """The index tensor of each dimension that is picked from: a mask has one per dimension."""
    indices: dict[int, Layout] = {}
    for dim, item in part.picks.items():
        if item.dtype in MASKS:
            count = true_count(item)
            for covered in range(item.ndim):
                indices[dim + covered] = Layout((count,), (item.ndim,), 0, torch.int64)
        elif item.dtype in INDICES:
            indices[dim] = item
        else:
            raise Refusal(
                f"An index tensor is int64 or bool, not {item.dtype}.",
                "Use .long() or .bool().",
                raises=IndexError,
            )
    return indices


def _picked(part: _Part, value: Layout | None = None) -> tuple[Ints, Ints]:
    """Shape and stride of x[picks] (`AdvancedIndex` in TensorAdvancedIndexing.cpp): the index's
    own dimensions stand where it stood, or in front when slices stand between two indices.

    That a `value` to be assigned fits is asked before whether the indices lie inside."""
    x, indices = part.layout, _index_tensors(part)
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
        raise Refusal(
            "There is nothing to pick from: the dimension indexed has no elements.",
            raises=IndexError,
        )
    source = x.view(
        (*x.shape[:before], *shape, *x.shape[before + len(order) :]),
        (*x.stride[:before], *(0,) * len(shape), *x.stride[before + len(order) :]),
    )
    operands = [source]
    for index in indices.values():
        padded = (1,) * before + index.shape + (1,) * after
        stride = view_stride(index.shape, index.stride, padded)
        operands.append(index.fresh(padded) if stride is None else index.view(padded, stride))
    if value is not None:
        _fitted(value, source.shape)
    if source.numel:
        _check_ranges(part)
    return source.shape, elementwise_stride(operands, source.shape)


def _check_ranges(part: _Part) -> None:
    for dim, item in part.picks.items():
        if item.dtype in INDICES:
            size, origin = part.layout.shape[dim], part.origins[dim]
            part.unless = (
                check_range(item, size, origin, raises=IndexError, from_end=True) or part.unless
            )
    if part.unless:
        part.told.append(f"not checked: torch refuses if {part.unless}")


@rule("masked_select")
def masked_select(x: Layout, mask: Layout) -> Outcome:
    if mask.dtype != torch.bool:
        raise Refusal(f"A mask is bool, not {mask.dtype}.", "Compare it, or .bool().")
    shape = broadcast_shape([x.shape, mask.shape])
    if mask.shape != shape:
        raise NotCovered("masked_select with a mask that is stretched")
    return copy(x.fresh((true_count(mask),)), "the elements under True, one after the other.")
