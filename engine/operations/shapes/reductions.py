"""Reductions: the elements of a tensor that are reduced to each element of the result."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

import torch

from ...protocol import Cells, ReductionSnapshot
from ...system.errors import LabError
from ...tensors.readable import dtype_name
from .elements import (
    MAX_TRIED,
    cells_of,
    computable,
    element_or_first,
    first_of,
    slices,
    text_at,
    texts_of,
    trial,
    window,
    with_texts,
)
from .operands import Operand, Shape, refusal

OPS = (
    *("sum", "mean", "prod", "amax", "amin", "max", "min", "argmax", "argmin", "median"),
    *("any", "all", "std", "var", "norm", "logsumexp"),
)
WINNERS = {op: f"arg{op[-3:]}" for op in ("amax", "max", "argmax", "amin", "min", "argmin")}
MAX_FOLDED = 1 << 24
"""A window of results is computed from up to this many elements."""
MAX_TERMS = 12

Place = TypeVar("Place")


def reduction(
    source: Operand,
    op: str,
    dims: tuple[int, ...] | None = None,
    keepdim: bool = False,
    element: Shape | None = None,
) -> ReductionSnapshot:
    """All that a view shows of one reduction. Raises LabError for an unknown `op`."""
    if op not in OPS:
        raise LabError(f"`{op}` is not a reduction.", hint=f"One of {', '.join(OPS)}.")
    ndim, dense = len(source.shape), source.dense
    arguments: dict[str, Any] = {"keepdim": True} if keepdim else {}
    if dims or keepdim:
        named = dims or tuple(range(ndim))
        arguments = {"dim": named[0] if dims and len(dims) == 1 else named} | arguments
    folded = _folded_dims(dims, ndim)
    snapshot = partial(
        ReductionSnapshot,
        expression=source.text,
        op=op,
        code=_code(source, op, arguments),
        source_shape=source.shape,
        folded=folded,
    )
    try:
        fact = _by_torch(source, op, arguments)
    except (RuntimeError, TypeError, IndexError) as error:
        return snapshot(source=cells_of(source), error=refusal(error))
    shape, count = tuple(fact.shape), math.prod(source.shape[d] for d in folded)
    element = element_or_first(element, shape)
    result = window(shape, element or ())
    reads: tuple[int | None, ...] = ()
    note, terms, winner = "", (), None
    if dense is not None:
        part = dense[_in_source(slices(result), slice(None), folded, ndim)]
        result, note = _computed(result, part, op, arguments)
    if element is not None:
        reads = _in_source(element, None, folded, ndim)
        if dense is not None:
            fold = dense[tuple(slice(None) if at is None else at for at in reads)]
            terms, winner = texts_of(first_of(fold, MAX_TERMS)), _winner(fold, reads, op)
    if op in ("std", "var") and count < 2:
        note = (
            note or f"{op} divides by n - 1, which is not above 0 for {count}: the result is nan."
        )
    return snapshot(
        shape=shape,
        dtype=dtype_name(fact.dtype),
        source=cells_of(source, reads),
        result=result,
        element=element,
        reads=reads,
        count=count,
        terms=terms,
        value=text_at(result, element),
        winner=winner,
        note=note,
    )


def _folded_dims(dims: tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """The dimensions counted from 0, in order, without those that do not exist."""
    if not dims:  # for torch, an empty tuple means all dimensions
        return tuple(range(ndim))
    return tuple(sorted({dim % ndim for dim in dims if -ndim <= dim < ndim}))


def _in_source(
    of_result: Sequence[Place], whole: Place, folded: tuple[int, ...], ndim: int
) -> tuple[Place, ...]:
    """A value for each dimension of the source: `whole` for a reduced one, for any other that of
    the result's dimension. With keepdim the result has as many dimensions as the source."""
    if len(of_result) == ndim:
        of_result = [value for d, value in enumerate(of_result) if d not in folded]
    kept = iter(of_result)
    return tuple(whole if d in folded else next(kept) for d in range(ndim))


def _computed(
    result: Cells, part: torch.Tensor, op: str, arguments: dict[str, Any]
) -> tuple[Cells, str]:
    """The result's window with its numbers, reduced from `part` of the source; or a note that says
    why there are none."""
    if part.numel() > MAX_FOLDED:
        return result, "Too many elements to reduce here: run the line for the numbers."
    try:
        return with_texts(result, _call(computable(part), op, arguments)), ""
    except RuntimeError as error:  # the large tensor's dtype has no kernel
        return result, str(error)


def _winner(fold: torch.Tensor, reads: tuple[int | None, ...], op: str) -> Shape | None:
    """The element of the source that is the maximum or minimum."""
    if op not in WINNERS or not 0 < fold.numel() < MAX_FOLDED:
        return None
    numbers = fold.to(torch.uint8) if fold.dtype == torch.bool else computable(fold)
    try:
        first = getattr(numbers, WINNERS[op])()
    except RuntimeError:  # complex numbers have no order; of a large tensor, only this tells
        return None
    place = iter(torch.unravel_index(first, fold.shape))
    return tuple(int(next(place)) if at is None else at for at in reads)


def _code(source: Operand, op: str, arguments: dict[str, Any]) -> str:
    written = ", ".join(f"{name}={value}" for name, value in arguments.items())
    pair = ".values" if op in ("max", "min", "median") and "dim" in arguments else ""
    return f"{source.code}.{op}({written}){pair}"


def _call(t: torch.Tensor, op: str, arguments: dict[str, Any]) -> torch.Tensor:
    with warnings.catch_warnings():  # the note says that std of one element is nan
        warnings.simplefilter("ignore", UserWarning)
        made = getattr(t, op)(**arguments)
    return made if isinstance(made, torch.Tensor) else made.values


def _by_torch(source: Operand, op: str, arguments: dict[str, Any]) -> torch.Tensor:
    """A result with the right shape and dtype, from torch."""
    try:
        return _call(trial(source), op, arguments)
    except (RuntimeError, TypeError, IndexError):
        if source.tensor is None or not MAX_TRIED < math.prod(source.shape) <= MAX_FOLDED:
            raise
        return _call(source.blank(), op, arguments)  # for the error of a tensor with data
