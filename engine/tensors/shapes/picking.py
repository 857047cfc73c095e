"""Indexing: which elements of a tensor are picked or written, and where each of them goes."""

from __future__ import annotations

import math
import operator
from typing import Any

import torch

from ...console.namespace import Namespace
from ...errors import LabError, error_report
from ...protocol import ErrorReport, PickSnapshot
from .elements import element_or_first, filled, slices, window, with_texts
from .index_plan import Plan, plan_of
from .index_text import Indexing, Write, parse
from .operands import Operand, operand

Shape = tuple[int, ...]
MAX_LISTED = 1 << 20
"""An index tensor or mask picks up to so many places one by one."""
MAX_OTHERS = 16
"""Values that are written to one place and are named."""
IN_PLACE = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv,
    "//=": operator.ifloordiv, "%=": operator.imod, "&=": operator.iand, "|=": operator.ior,
    "^=": operator.ixor,
}  # fmt: skip
MAX_PICKED = 1 << 22
"""Up to so many elements are really picked by index tensors at every look."""


def pick(namespace: Namespace, source: str, element: Shape | None = None) -> PickSnapshot:
    """Everything a view shows of one indexing expression. Raises LabError on what is none."""
    indexing = parse(namespace, source)
    base = operand(namespace, indexing.base)
    dense = base.dense
    numbers = dense if dense is not None else base.blank()
    _check_size(indexing)
    if indexing.write is not None:
        return _written(indexing, indexing.write, source, base, dense, element)
    try:
        made = _by_torch(numbers, indexing)
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        return _refused(error, source, base, indexing, dense)
    plan = plan_of(indexing, base.shape)
    shape = plan.shape if made is None else tuple(made.shape)
    element = element_or_first(element, shape)
    reads = None if element is None else plan.source_of(element)
    source_cells = filled(window(base.shape, reads or ()), dense)
    result = window(shape, element or ())
    if made is not None and dense is not None:
        result = with_texts(result, made[slices(result)])
    is_view = not plan.tables and indexing.call not in ("index_select", "gather", "masked_select")
    if made is not None:
        is_view = made.untyped_storage()._cdata == numbers.untyped_storage()._cdata
    return PickSnapshot(
        code=source.strip(),
        expression=indexing.base,
        source_shape=base.shape,
        parts=plan.parts,
        shape=shape,
        is_view=is_view,
        why=_why(is_view, base.text),
        source=source_cells,
        picked=tuple(plan.counts(source_cells).reshape(-1).tolist()),
        result=result,
        element=element,
        reads=reads,
    )


def _written(
    indexing: Indexing,
    write: Write,
    source: str,
    base: Operand,
    dense: torch.Tensor | None,
    element: Shape | None,
) -> PickSnapshot:
    """The picture of a line that writes, made on a copy: nothing of the user's is touched."""
    if not base.shape and not indexing.call and not indexing.items:
        raise LabError("Write x[()] = 0 or x.fill_(0) for a tensor of no dimensions.")
    numbers = dense if dense is not None else base.blank()
    after: torch.Tensor | None = None
    try:
        if numbers.numel() <= MAX_PICKED:
            after = numbers.clone()
            own = write.in_place and write.value is base.tensor  # torch meets one memory twice
            _write_by_torch(after, indexing, after if own else write.value, write)
        plan = plan_of(indexing, base.shape)
        values = _values(write.value, plan, indexing)
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        return _refused(error, source, base, indexing, dense)
    element = element_or_first(element, plan.shape)
    target = None if element is None else plan.source_of(element)
    source_cells = filled(window(base.shape, target or ()), dense)
    counts = plan.counts(source_cells)
    result = window(plan.shape, element or ())
    others = [] if target is None else plan.elements_from(target, MAX_OTHERS + 1)
    return PickSnapshot(
        code=source.strip(),
        expression=indexing.base,
        source_shape=base.shape,
        parts=plan.parts,
        shape=plan.shape,
        is_view=False,
        why=_why_written(write, base.text, int(counts.max(initial=0))),
        source=source_cells,
        picked=tuple(counts.reshape(-1).tolist()),
        result=with_texts(result, values[slices(result)]),
        element=element,
        reads=target,
        write="in place" if write.in_place else "copy",
        value=write.text,
        others=tuple(other for other in others if other != element)[:MAX_OTHERS],
        after=None if after is None else filled(window(base.shape, target or ()), after),
    )


def _write_by_torch(copy: torch.Tensor, indexing: Indexing, value: Any, write: Write) -> None:
    if indexing.call:
        name = f"{indexing.call.removesuffix('_')}_"
        more = (True,) if name == "index_put_" and write.adds else ()
        if name in ("index_put_", "index_add_", "index_copy_", "scatter_add_"):
            value = torch.as_tensor(value)
        getattr(copy, name)(*indexing.arguments, value, *more)
        return
    if write.operator != "=":
        value = IN_PLACE[write.operator](copy[indexing.items], torch.as_tensor(value))
    copy[indexing.items] = torch.as_tensor(value) if isinstance(value, list) else value


def _values(value: Any, plan: Plan, indexing: Indexing) -> torch.Tensor:
    """What is written, as torch stretches it to the places."""
    values = torch.as_tensor(value).detach()
    if values.ndim and indexing.call.removesuffix("_") in ("scatter", "scatter_add"):
        return values[tuple(slice(size) for size in plan.shape)]  # src may be larger than index
    while values.ndim > len(plan.shape) and values.shape[0] == 1:
        values = values[0]
    return values.expand(plan.shape)


def _why_written(write: Write, name: str, most: int) -> str:
    where = (
        f"In place: {name} itself changes, with all that shares its memory, and its version counts"
        " one more write."
        if write.in_place
        else f"A copy with these elements written: {name} stays as it is."
    )
    if most < 2:
        return where
    if write.adds:
        return f"{where} Places that are named more than once get the sum of their values."
    if write.operator not in ("", "="):
        return (
            f"{where} Places that are named more than once are read once and written once: they do"
            " not add up. index_add_, scatter_add_ and index_put_(…, accumulate=True) do."
        )
    return f"{where} Where a place is named more than once, one value stays: torch says not which."


def _check_size(indexing: Indexing) -> None:
    listed = indexing.arguments[0] if indexing.call.startswith("index_put") else ()
    for part in (*indexing.items, *indexing.arguments, *listed):
        if not isinstance(part, torch.Tensor):
            continue
        count = int(part.count_nonzero()) if part.dtype == torch.bool else part.numel()
        if count > MAX_LISTED:
            raise LabError(
                f"This picks {count:,} elements one by one: too many to follow at every look.",
                hint="Index a smaller tensor, or a slice of this one.",
            )


def _by_torch(numbers: torch.Tensor, indexing: Indexing) -> torch.Tensor | None:
    """The result, or None where it would copy too many elements to be made at every look."""
    if indexing.call:
        if indexing.call in ("gather", "take_along_dim") and any(
            isinstance(a, torch.Tensor) and a.numel() > MAX_PICKED for a in indexing.arguments
        ):
            return None
        if indexing.call in ("index_select", "masked_select") and numbers.numel() > MAX_PICKED:
            return None
        return getattr(numbers, indexing.call)(*indexing.arguments)
    if any(isinstance(item, torch.Tensor) for item in indexing.items) and (
        _picked(indexing.items, tuple(numbers.shape)) > MAX_PICKED
    ):
        return None
    return numbers[indexing.items]


def _picked(items: tuple[Any, ...], shape: Shape) -> int:
    """At most so many elements are picked: a bound that needs no valid index."""
    tables = [item for item in items if isinstance(item, torch.Tensor)]
    consumed = sum(t.ndim if t.dtype == torch.bool else 1 for t in tables)
    most = max(
        (int(t.count_nonzero()) if t.dtype == torch.bool else t.numel() for t in tables), default=1
    )
    return most * math.prod(sorted(shape, reverse=True)[: max(0, len(shape) - consumed)])


def _refused(
    error: Exception, source: str, base: Operand, indexing: Indexing, dense: torch.Tensor | None
) -> PickSnapshot:
    told = error_report(error)
    cells = filled(window(base.shape), dense)
    return PickSnapshot(
        code=source.strip(),
        expression=indexing.base,
        source_shape=base.shape,
        parts=(),
        shape=None,
        is_view=False,
        why="",
        source=cells,
        picked=(0,) * math.prod(cells.size),
        result=None,
        element=None,
        reads=None,
        error=ErrorReport(
            type=told.type, message=told.message, hint=_hint(told.message, base, indexing)
        ),
    )


def _hint(message: str, base: Operand, indexing: Indexing) -> str:
    ndim = len(base.shape)
    if "too many indices" in message:
        return f"{base.text} is {base.shape}: it has {ndim} dimensions, so at most {ndim} indices."
    if "out of bounds" in message or "out of range" in message:
        return (
            f"{base.text} is {base.shape}: along a dimension of n elements an index goes from -n to"
            " n - 1. A slice may reach beyond the end; a single index may not."
        )
    if "mask" in message:
        return (
            f"A mask has the shape of the dimensions it stands for: here {base.shape}, or its"
            " first dimensions."
        )
    if "step must be" in message:
        return "No tensor runs backwards (strides are never negative): use flip(dim)."
    if "broadcast" in message:
        return (
            "Index tensors side by side go together element by element: their shapes must"
            " broadcast."
        )
    if indexing.call == "gather":
        return (
            f"gather takes an int64 index with {ndim} dimensions, no longer than {base.shape}"
            " beside the dimension it gathers along."
        )
    return ""


def _why(is_view: bool, name: str) -> str:
    if is_view:
        return (
            f"A view: integers, slices, … and None only change offset and strides, so it shares"
            f" {name}'s memory. Writing to it writes to {name}."
        )
    return (
        "A copy: picked one by one, the elements stand at no regular steps in memory, so no strides"
        f" can reach them. Writing to the copy leaves {name} as it is; {name}[index] = … does not."
    )
