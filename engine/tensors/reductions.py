"""Reductions: which elements of a tensor fold into each element of the result."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch

from ..errors import LabError, error_report
from ..protocol import Cells, ErrorReport, ReductionSnapshot
from .cells import (
    MAX_TRIED,
    computable,
    dense_of,
    element_or_first,
    filled,
    slices,
    text_at,
    texts_of,
    trial,
    window,
)
from .error_help import explain_error
from .operands import Operand
from .readable import dtype_name

Shape = tuple[int, ...]

OPS = (
    "sum",
    "mean",
    "prod",
    "amax",
    "amin",
    "max",
    "min",
    "argmax",
    "argmin",
    "median",
    "any",
    "all",
    "std",
    "var",
    "norm",
    "logsumexp",
)
ONE_DIM = ("prod", "max", "min", "argmax", "argmin", "median")
"""These fold one dimension or all of them."""
WINNERS = {
    "amax": "argmax",
    "max": "argmax",
    "argmax": "argmax",
    "amin": "argmin",
    "min": "argmin",
    "argmin": "argmin",
}
MAX_FOLDED = 1 << 24
"""A window of results is computed from up to so many elements."""
MAX_TERMS = 12


def folded_dims(dims: tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """The dimensions counted from 0, in order. Those that are not there are left out."""
    if not dims:  # torch takes an empty tuple for all dimensions
        return tuple(range(ndim))
    return tuple(sorted({dim % ndim for dim in dims if -ndim <= dim < ndim}))


def result_shape(shape: Shape, folded: Shape, keepdim: bool) -> Shape:
    if keepdim:
        return tuple(1 if d in folded else size for d, size in enumerate(shape))
    return tuple(size for d, size in enumerate(shape) if d not in folded)


def reads_of(element: Shape, ndim: int, folded: Shape, keepdim: bool) -> tuple[int | None, ...]:
    """Per dimension of the source the index that `element` of the result reads, None for all."""
    kept = iter([at for d, at in enumerate(element) if not (keepdim and d in folded)])
    return tuple(None if d in folded else next(kept) for d in range(ndim))


def reduction(
    source: Operand,
    op: str,
    dims: tuple[int, ...] | None = None,
    keepdim: bool = False,
    element: Shape | None = None,
) -> ReductionSnapshot:
    """Everything a view shows of one reduction. Raises LabError on an unknown `op`."""
    if op not in OPS:
        raise LabError(f"`{op}` is not a reduction.", hint=f"One of {', '.join(OPS)}.")
    ndim = len(source.shape)
    arguments = _arguments(dims, keepdim, ndim)
    code = _code(source, op, arguments)
    folded = folded_dims(dims, ndim)
    dense = dense_of(source)
    try:
        fact = _by_torch(source, dense, op, arguments)
    except (RuntimeError, TypeError, IndexError) as error:
        return ReductionSnapshot(
            expression=source.text,
            op=op,
            code=code,
            source_shape=source.shape,
            folded=folded,
            shape=None,
            dtype="",
            source=filled(window(source.shape), dense),
            result=None,
            element=None,
            reads=(),
            count=0,
            terms=(),
            value="",
            winner=None,
            error=_explained(error, source, op, dims),
        )
    shape = tuple(fact.shape)
    element = element_or_first(element, shape)
    reads = () if element is None else reads_of(element, ndim, folded, keepdim)
    details = _Details(op, source.shape, folded, reads, dense)
    result = window(shape, element or ())
    result = details.computed(result, arguments)
    return ReductionSnapshot(
        expression=source.text,
        op=op,
        code=code,
        source_shape=source.shape,
        folded=folded,
        shape=shape,
        dtype=dtype_name(fact.dtype),
        source=filled(window(source.shape, reads), dense),
        result=result,
        element=element,
        reads=reads,
        count=math.prod(source.shape[d] for d in folded),
        terms=details.terms(),
        value=text_at(result, element),
        winner=details.winner(),
        note=details.note or _note(op, math.prod(source.shape[d] for d in folded)),
    )


class _Details:
    """What can be told from the numbers; nothing where there are none."""

    def __init__(
        self,
        op: str,
        shape: Shape,
        folded: Shape,
        reads: tuple[int | None, ...],
        dense: torch.Tensor | None,
    ) -> None:
        self._op, self._shape, self._folded, self._dense = op, shape, folded, dense
        self._reads = reads
        self.note = ""
        self._fold: torch.Tensor | None = None
        if dense is not None and (reads or not shape):
            self._fold = dense[tuple(slice(None) if at is None else at for at in reads)]

    def computed(self, result: Cells, arguments: dict[str, Any]) -> Cells:
        """The result's window with its numbers, from the part of the source that it folds."""
        if self._dense is None:
            return result
        shown = iter(slices(result))
        part = []
        for d in range(len(self._shape)):
            if d in self._folded:
                part.append(slice(None))
                if "keepdim" in arguments:
                    next(shown)
            else:
                part.append(next(shown))
        taken = self._dense[tuple(part)]
        if taken.numel() > MAX_FOLDED:
            self.note = "Too many elements to fold at every look: run the line for the numbers."
            return result
        try:
            numbers = _call(computable(taken), self._op, arguments)
        except RuntimeError as error:  # a kernel that only the real, large tensor asks for
            self.note = str(error)
            return result
        return Cells(result.shape, result.start, result.size, texts_of(numbers))

    def terms(self) -> tuple[str, ...]:
        if self._fold is None:
            return ()
        return texts_of(_first(self._fold, MAX_TERMS))

    def winner(self) -> Shape | None:
        if self._fold is None or self._op not in WINNERS or not 0 < self._fold.numel() < MAX_FOLDED:
            return None
        fold = self._fold.to(torch.uint8) if self._fold.dtype == torch.bool else self._fold
        flat = int(getattr(computable(fold), WINNERS[self._op])())
        where = iter(int(at) for at in torch.unravel_index(torch.tensor(flat), self._fold.shape))
        return tuple(next(where) if at is None else at for at in self._reads)


def _first(t: torch.Tensor, count: int) -> torch.Tensor:
    """The first elements in C order, without a copy of all the others."""
    if not t.numel():
        return t.reshape(-1)
    while t.ndim > 1 and t[0].numel() >= count:
        t = t[0]
    if t.ndim > 1:
        t = t[: -(-count // t[0].numel())]
    return t.reshape(-1)[:count]


def _note(op: str, count: int) -> str:
    if op in ("std", "var") and count < 2:
        return f"{op} divides by n - 1, which is not above 0 for {count}: the result is nan."
    return ""


def _arguments(dims: tuple[int, ...] | None, keepdim: bool, ndim: int) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    if dims:
        arguments["dim"] = dims[0] if len(dims) == 1 else dims
    elif keepdim:
        arguments["dim"] = tuple(range(ndim))
    if keepdim:
        arguments["keepdim"] = True
    return arguments


def _code(source: Operand, op: str, arguments: dict[str, Any]) -> str:
    text = source.text if source.tensor is not None else f"torch.zeros({source.shape})"
    written = ", ".join(f"{name}={value}" for name, value in arguments.items())
    pair = ".values" if op in ("max", "min", "median") and "dim" in arguments else ""
    return f"{text}.{op}({written}){pair}"


def _call(t: torch.Tensor, op: str, arguments: dict[str, Any]) -> torch.Tensor:
    with warnings.catch_warnings():  # that std of one element is nan is told in the note
        warnings.simplefilter("ignore", UserWarning)
        made = getattr(t, op)(**arguments)
    return made if isinstance(made, torch.Tensor) else made.values


def _by_torch(
    source: Operand, dense: torch.Tensor | None, op: str, arguments: dict[str, Any]
) -> torch.Tensor:
    """The result's shape and dtype, from torch."""
    try:
        return _call(trial(source, dense), op, arguments)
    except (RuntimeError, TypeError, IndexError):
        if source.tensor is None or not MAX_TRIED < math.prod(source.shape) <= MAX_FOLDED:
            raise
        return _call(source.blank(), op, arguments)  # in the words of a tensor with data


def _explained(
    error: Exception, source: Operand, op: str, dims: tuple[int, ...] | None
) -> ErrorReport:
    told = error_report(error)
    return ErrorReport(
        type=told.type,
        message=told.message,
        hint=_hint(told.message, source, op, dims) or explain_error(error),
    )


def _hint(message: str, source: Operand, op: str, dims: tuple[int, ...] | None) -> str:
    ndim = len(source.shape)
    missing = [dim for dim in dims or () if not -max(ndim, 1) <= dim < max(ndim, 1)]
    if missing:
        last = max(ndim, 1) - 1
        return (
            f"The shape {source.shape} has {ndim} dimensions: dim goes from {-last - 1} to {last},"
            f" and {missing[0]} is not among them."
        )
    if dims and len({dim % max(ndim, 1) for dim in dims}) < len(dims):
        return "The same dimension is named twice; -1 is another name for the last."
    if dims is not None and len(dims) > 1 and op in ONE_DIM:
        return f"{op} folds one dimension, or all of them: fold one after the other, or use amax."
    if not source.dtype.is_floating_point and ("float" in message or "nteger" in message):
        return (
            f"{source.text} holds {dtype_name(source.dtype)}, and {op} makes fractions: write"
            f" {source.text}.float().{op}(...)."
        )
    if 0 in source.shape:
        return f"There are no elements to fold, and {op} of nothing has no value."
    if source.dtype.is_complex:
        return f"Complex numbers have no order, so {op} is not defined; take .abs() first."
    return ""
