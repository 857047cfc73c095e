"""Indexing: the elements of a tensor that are picked or written, and their places in the result."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch

from ...console.namespace import Namespace
from ...protocol import PickSnapshot
from ...system.errors import LabError
from .elements import cells_of, element_or_first, filled, slices, window, with_texts
from .index_plan import Plan, plan_of
from .index_text import Indexing, Write, parse
from .operands import Operand, Shape, operand, refusal

MAX_LISTED = 1 << 20
"""The most places that an index tensor or mask may pick."""
MAX_OTHERS = 16
"""Values for one place that are listed."""
MAX_PICKED = 1 << 22
"""The result of index tensors is computed each time if it has up to this many elements."""


def pick(namespace: Namespace, source: str, element: Shape | None = None) -> PickSnapshot:
    """All that a view shows of one indexing expression. Raises LabError for other lines.

    A line that writes runs on a copy: the user's tensor does not change."""
    indexing = parse(namespace, source)
    write = indexing.write
    base = operand(namespace, indexing.base)
    numbers = base.dense if base.dense is not None else base.blank()
    _check_size(indexing)
    if write is not None and not (base.shape or indexing.call or indexing.items):
        raise LabError("Write x[()] = 0 or x.fill_(0) for a tensor of no dimensions.")
    snapshot = partial(
        PickSnapshot, code=source.strip(), expression=indexing.base, source_shape=base.shape
    )
    made, values = None, None
    try:
        if write is None:
            made = _picked(numbers, indexing)
        elif numbers.numel() <= MAX_PICKED:
            made = _written(numbers, indexing, write, base)
        elif not indexing.call and isinstance(write.value, list | tuple):
            _assign(numbers.new_zeros(1), ..., write.operator, write.value)  # torch refuses these
        plan = plan_of(indexing, base.shape)
        if write is not None:
            values = _values(write.value, plan, indexing)
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        cells = cells_of(base)
        counts = (0,) * math.prod(cells.size)
        return snapshot(source=cells, picked=counts, error=refusal(error))
    element = element_or_first(element, plan.shape)
    place = None if element is None else plan.source_of(element)
    cells = cells_of(base, place or ())
    counts = plan.counts(cells)
    result = window(plan.shape, element or ())
    snapshot = partial(
        snapshot,
        parts=plan.parts,
        shape=plan.shape,
        source=cells,
        picked=tuple(counts),
        element=element,
        reads=place,
    )
    if write is None or values is None:
        is_view = made is not None and _storage(made) == _storage(numbers)
        if made is not None and base.dense is not None:
            result = with_texts(result, made[slices(result)])
        return snapshot(is_view=is_view, why=_view_or_copy_words(is_view, base.text), result=result)
    others = [] if place is None else plan.elements_from(place, MAX_OTHERS + 1)
    return snapshot(
        why=_why_written(write, base.text, max(counts, default=0)),
        result=with_texts(result, values[slices(result)]),
        write="in place" if write.in_place else "copy",
        value=write.text,
        others=tuple(other for other in others if other != element)[:MAX_OTHERS],
        after=None if made is None else filled(window(base.shape, place or ()), made),
    )


def _storage(t: torch.Tensor) -> int:
    return t.untyped_storage()._cdata


def _written(
    numbers: torch.Tensor, indexing: Indexing, write: Write, base: Operand
) -> torch.Tensor:
    """A copy of `numbers` after the line's write."""
    copy = numbers.clone()
    own = write.in_place and write.value is base.tensor  # torch sees that both are one memory
    value = copy if own else write.value
    if not indexing.call:
        _assign(copy, indexing.items, write.operator, value)
        return copy
    name = f"{indexing.call.removesuffix('_')}_"
    more = (True,) if name == "index_put_" and write.adds else ()
    if name in ("index_put_", "index_add_", "index_copy_", "scatter_add_"):
        value = torch.as_tensor(value)
    getattr(copy, name)(*indexing.arguments, value, *more)
    return copy


def _assign(x: torch.Tensor, index: Any, operator: str, value: Any) -> None:
    exec(f"x[i] {operator} v", {"x": x, "i": index, "v": value})


def _values(value: Any, plan: Plan, indexing: Indexing) -> torch.Tensor:
    """The written values, broadcast to the places as torch does it."""
    values = torch.as_tensor(value).detach()
    if values.ndim and indexing.call.removesuffix("_") in ("scatter", "scatter_add"):
        return values[tuple(slice(size) for size in plan.shape)]  # src may be larger than index
    while values.ndim > len(plan.shape) and values.shape[0] == 1:
        values = values[0]
    return values.expand(plan.shape)


def _why_written(write: Write, name: str, most: int) -> str:
    where = (
        f"In place: {name} itself changes, with all tensors that share its storage, and its"
        " version increases by one."
        if write.in_place
        else f"A copy with these elements written: {name} stays as it is."
    )
    if most < 2:
        return where
    if write.adds:
        return f"{where} Places that are indexed more than once get the sum of their values."
    if write.operator not in ("", "="):
        return (
            f"{where} Places that are indexed more than once are read once and written once:"
            " they do not add up. index_add_, scatter_add_ and index_put_(…, accumulate=True) do."
        )
    return (
        f"{where} Where a place is indexed more than once, one of the values stays; torch"
        " does not say which."
    )


def _check_size(indexing: Indexing) -> None:
    listed = indexing.arguments[0] if indexing.call.startswith("index_put") else ()
    for part in (*indexing.items, *indexing.arguments, *listed):
        if isinstance(part, torch.Tensor) and _listed(part) > MAX_LISTED:
            raise LabError(
                f"This picks {_listed(part):,} elements one by one: too many to show.",
                hint="Index a smaller tensor, or a slice of this one.",
            )


def _picked(numbers: torch.Tensor, indexing: Indexing) -> torch.Tensor | None:
    """The result; None if it would copy too many elements each time."""
    if indexing.call:
        by_table = indexing.call in ("index_select", "masked_select")
        if by_table and numbers.numel() > MAX_PICKED:
            return None
        return getattr(numbers, indexing.call)(*indexing.arguments)
    tables = [item for item in indexing.items if isinstance(item, torch.Tensor)]
    consumed = sum(t.ndim if t.dtype == torch.bool else 1 for t in tables)
    sizes = sorted(numbers.shape, reverse=True)[: max(0, numbers.ndim - consumed)]
    most = max(map(_listed, tables), default=1) * math.prod(sizes)  # no index picks more
    return None if tables and most > MAX_PICKED else numbers[indexing.items]


def _listed(table: torch.Tensor) -> int:
    """The number of places that an index tensor or a mask picks."""
    return int(table.count_nonzero()) if table.dtype == torch.bool else table.numel()


def _view_or_copy_words(is_view: bool, name: str) -> str:
    if is_view:
        return (
            f"A view: integers, slices, … and None only change offset and strides, so it shares"
            f" {name}'s memory. Writing to it writes to {name}."
        )
    return (
        "A copy: the elements are picked one by one, and no strides describe where they lie."
        f" Writing to the copy leaves {name} as it is; {name}[index] = … does not."
    )
