"""Indexing: which elements of a tensor were picked, and where each of them went."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..errors import LabError, error_report
from ..protocol import ErrorReport, PickSnapshot
from .cells import dense_of, element_or_first, filled, slices, window, with_texts
from .index_plan import plan_of
from .index_text import Indexing, parse
from .namespace import Namespace
from .operands import Operand, operand

Shape = tuple[int, ...]
MAX_LISTED = 1 << 20
"""An index tensor or mask picks up to so many places one by one."""
MAX_PICKED = 1 << 22
"""Up to so many elements are really picked by index tensors at every look."""


def pick(namespace: Namespace, source: str, element: Shape | None = None) -> PickSnapshot:
    """Everything a view shows of one indexing expression. Raises LabError on what is none."""
    indexing = parse(namespace, source)
    base = operand(namespace, indexing.base)
    dense = dense_of(base)
    numbers = dense if dense is not None else base.blank()
    _check_size(indexing)
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


def _check_size(indexing: Indexing) -> None:
    for part in (*indexing.items, *indexing.arguments):
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
