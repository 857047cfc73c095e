"""Reductions: many elements fold into one, so the result has memory of its own, in C order."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from .layout import Ints, Layout
from .promotion import category
from .registry import RULES, NotCovered, Outcome, Refusal, copy, rule, wrap, wrap_all

KNOWN = frozenset(
    {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
    | {torch.float16, torch.bfloat16, torch.float32, torch.float64}
    | {torch.complex64, torch.complex128}
)
"""Dtypes for which torch's CPU has the kernels named here."""

_ALL = object()
"""In place of a dim that was not given, where None is refused."""

Typing = Callable[[Layout, torch.dtype | None], tuple[torch.dtype, str]]


def check_known(*layouts: Layout) -> None:
    """Raises NotCovered for tensors of a device or dtype with kernels of its own."""
    for x in layouts:
        if x.dtype not in KNOWN or x.device != "cpu":
            raise NotCovered(f"{x.dtype} on {x.device} here")


def _folded_dims(x: Layout, dim: Any) -> Ints:
    """The dimensions that go, counted from 0: all of them without `dim`."""
    if dim is None or (isinstance(dim, tuple | list) and not dim):
        return tuple(range(x.ndim))
    return wrap_all(dim if isinstance(dim, tuple | list) else (dim,), x.ndim)


def _folded(x: Layout, dims: Ints, keepdim: bool, dtype: torch.dtype) -> Layout:
    shape = [1 if d in dims else size for d, size in enumerate(x.shape) if keepdim or d not in dims]
    return x.fresh(shape, dtype=dtype)


def _made(x: Layout, dims: Ints, result: Layout, told: Sequence[str]) -> Outcome:
    count = math.prod(x.shape[d] for d in dims if d < x.ndim)
    what = "all dimensions" if len(dims) == x.ndim else f"dimension {', '.join(map(str, dims))}"
    why = f"{count} elements fold into each one of the result, along {what}: a new tensor."
    return replace(copy(result, why, [t for t in told if t]), work=x.numel)


def _one(dim: Any, x: Layout, name: str) -> int:
    if dim is None or isinstance(dim, tuple | list):
        raise Refusal(f"{name} folds one dimension, not {dim}.", raises=TypeError)
    return wrap(dim, x.ndim)


def _needs_some(x: Layout, dims: Ints, name: str, whole: type[Exception], named: bool) -> None:
    """Raises Refusal where nothing would fold: some reductions of nothing have no value."""
    if x.numel or all(x.shape[d] for d in dims if d < x.ndim):
        return
    raise Refusal(
        f"There is nothing to fold: the shape is {x.shape}, and {name} of nothing has no value.",
        "Name a dimension that has elements.",
        raises=IndexError if named else whole,
    )


# -- dtypes --------------------------------------------------------------------------------------


def summed(x: Layout, dtype: torch.dtype | None) -> tuple[torch.dtype, str]:
    if dtype is not None:
        return dtype, f"{dtype} was asked for."
    if category(x.dtype) < 2:
        return torch.int64, "whole numbers and bool add up in int64, so that they do not overflow."
    return x.dtype, ""


def _averaged(x: Layout, dtype: torch.dtype | None) -> tuple[torch.dtype, str]:
    if category(dtype or x.dtype) < 2:
        raise Refusal(
            f"A mean is a fraction, which {dtype or x.dtype} cannot hold.",
            "Convert it first: .float().mean(), or give dtype=torch.float32.",
            raises=RuntimeError,
        )
    return dtype or x.dtype, f"{dtype} was asked for." if dtype else ""


def _kept(x: Layout, dtype: torch.dtype | None) -> tuple[torch.dtype, str]:
    return x.dtype, ""


def ordered(x: Layout, dtype: torch.dtype | None = None) -> tuple[torch.dtype, str]:
    if x.dtype.is_complex:
        raise Refusal("Complex numbers have no order.", "Take .abs() first.", raises=RuntimeError)
    return x.dtype, ""


def _extreme(x: Layout, dtype: torch.dtype | None) -> tuple[torch.dtype, str]:
    """As `ordered`; of no elements torch compares none, and refuses nothing."""
    return ordered(x, dtype) if x.numel else _kept(x, dtype)


def _truth(x: Layout, dtype: torch.dtype | None) -> tuple[torch.dtype, str]:
    if x.dtype == torch.uint8:
        return torch.uint8, "uint8 once was torch's bool: the answer is uint8."
    return torch.bool, "the answer is true or false: bool."


def _spread_of(x: Layout, dtype: torch.dtype | None) -> tuple[torch.dtype, str]:
    if category(x.dtype) < 2:
        raise Refusal(
            f"{x.dtype} cannot hold the fractions of a variance or a norm.",
            "Convert it first: .float().",
            raises=RuntimeError,
        )
    if x.dtype.is_complex:
        return x.dtype.to_real(), "of complex numbers it is a real number."
    return x.dtype, ""


# -- any number of dimensions --------------------------------------------------------------------


def _add_fold(name: str, typing: Typing, needs_some: bool = False) -> None:
    def fold(
        input: Layout, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
    ) -> Outcome:
        check_known(input)
        if dtype is not None and name not in ("sum", "mean"):
            raise NotCovered(f"{name} with a dtype")
        _ask_dims(dim, name)
        if typing is _truth and isinstance(dim, tuple | list) and not dim:
            raise NotCovered(f"{name} along no dimension")
        if needs_some:  # torch looks at the dims of these first
            _check_some(input, dim, name)
        result_dtype, told = typing(input, dtype)
        dims = _folded_dims(input, dim)
        return _made(input, dims, _folded(input, dims, keepdim, result_dtype), [told])

    rule(name)(fold)


def _check_some(x: Layout, dim: Any, name: str) -> None:
    if dim is None or dim in ((), []):
        _needs_some(x, tuple(range(x.ndim)), name, RuntimeError, named=False)
    else:
        asked = dim if isinstance(dim, tuple | list) else (dim,)
        _needs_some(x, tuple(wrap(d, x.ndim) for d in asked), name, IndexError, named=True)
        wrap_all(asked, x.ndim)


def _ask_dims(dim: Any, name: str) -> None:
    for d in dim if isinstance(dim, tuple | list) else (dim,):
        if d is not None and (isinstance(d, bool) or not isinstance(d, int)):
            raise Refusal(f"{name} takes dimensions, not {d!r}.", raises=TypeError)


_add_fold("sum", summed)
_add_fold("mean", _averaged)
_add_fold("amax", _extreme, needs_some=True)
_add_fold("amin", _extreme, needs_some=True)
_add_fold("any", _truth)
_add_fold("all", _truth)


@rule("count_nonzero")
def count_nonzero(input: Layout, dim: Any = None) -> Outcome:
    check_known(input)
    dims = _folded_dims(input, dim)
    return _made(input, dims, _folded(input, dims, False, torch.int64), ["a count is int64."])


@rule("std", "var")
def std(
    input: Layout,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Outcome:
    check_known(input)
    if isinstance(dim, bool):  # std(False): the form with `unbiased` alone
        if unbiased is not None or keepdim:
            raise Refusal("The first of several arguments is dim.", raises=TypeError)
        dim, unbiased = None, dim
    dtype, told = _spread_of(input, None)
    dims = _folded_dims(input, dim)
    count = math.prod(input.shape[d] for d in dims if d < input.ndim)
    less = correction if correction is not None else int(unbiased is not False)
    warning = f"torch warns here: it divides by {count} - {less}, which is not above 0."
    degrees = [warning] if isinstance(less, int) and count <= less else []
    return _made(input, dims, _folded(input, dims, keepdim, dtype), [told, *degrees])


@rule("norm")
def norm(
    input: Layout,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
) -> Outcome:
    check_known(input)
    if isinstance(p, bool) or dtype is not None:
        raise NotCovered("this norm")
    if isinstance(p, int | float):
        if (p < 0 or math.isinf(p)) and input.numel == 0:
            raise NotCovered("this norm of nothing")
    elif p not in ("fro", None):
        raise NotCovered("this norm")
    result_dtype, told = _spread_of(input, None)
    dims = _folded_dims(input, dim)
    return _made(input, dims, _folded(input, dims, keepdim, result_dtype), [told])


@rule("logsumexp")
def logsumexp(input: Layout, dim: Any, keepdim: bool = False) -> Outcome:
    check_known(input)
    dims = _folded_dims(input, dim)
    whole = category(input.dtype) < 2
    dtype = torch.get_default_dtype() if whole else input.dtype
    told = f"whole numbers give the default dtype, {dtype}." if whole else ""
    return _made(input, dims, _folded(input, dims, keepdim, dtype), [told])


# -- one dimension, or all -----------------------------------------------------------------------


@rule("prod")
def prod(
    input: Layout, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Outcome:
    check_known(input)
    dims = tuple(range(input.ndim)) if dim is None else (_one(dim, input, "prod"),)
    result_dtype, told = summed(input, dtype)
    return _made(input, dims, _folded(input, dims, keepdim, result_dtype), [told])


def _add_arg(name: str) -> None:
    def arg(input: Layout, dim: int | None = None, keepdim: bool = False) -> Outcome:
        check_known(input)
        if input.dtype == torch.bool:
            raise Refusal(f"{name} does not take bool.", "Use .int().", raises=RuntimeError)
        ordered(input)
        dims = tuple(range(input.ndim)) if dim is None else (_one(dim, input, name),)
        _needs_some(input, dims, name, IndexError, dim is not None)
        where = "without dim it counts through the whole tensor, in C order." if dim is None else ""
        result = _folded(input, dims, keepdim, torch.int64)
        return _made(input, dims, result, ["a place is int64.", where])

    rule(name)(arg)


_add_arg("argmax")
_add_arg("argmin")


def _add_extreme(name: str) -> None:
    def extreme(
        input: Layout, dim: Any = _ALL, keepdim: bool = False, other: Any = None
    ) -> Outcome:
        if other is not None or isinstance(dim, Layout):
            return RULES[f"{name}imum"](input, dim if other is None else other)
        check_known(input)
        if dim is not _ALL:
            return _pair(input, name, dim, keepdim)
        if keepdim:
            raise NotCovered(f"{name} with keepdim alone")
        dims = tuple(range(input.ndim))
        _needs_some(input, dims, name, RuntimeError, named=False)
        ordered(input)
        return _made(input, dims, _folded(input, dims, False, input.dtype), [])

    rule(name)(extreme)


def _pair(x: Layout, name: str, dim: Any, keepdim: bool) -> Outcome:
    """Values and their indices along one dimension."""
    dims = (_one(dim, x, name),)
    _needs_some(x, dims, name, IndexError, named=True)
    ordered(x)
    values = _folded(x, dims, keepdim, x.dtype)
    return with_indices(
        _made(x, dims, values, [f"{name} with a dim gives values and their indices."])
    )


def with_indices(done: Outcome) -> Outcome:
    """What torch gives as `.values` and `.indices`: two new tensors of one shape."""
    results = (done.result, replace(done.result, dtype=torch.int64))
    return replace(done, results=results, many=True, names=("values", "indices"))


_add_extreme("max")
_add_extreme("min")


def _no_bool_median(x: Layout) -> None:
    if x.dtype == torch.bool:
        raise Refusal("median does not take bool.", "Use .int().", raises=RuntimeError)


@rule("median")
def median(input: Layout, dim: Any = None, keepdim: bool = False) -> Outcome:
    check_known(input)
    if dim is not None:
        done = _pair(input, "median", dim, keepdim)
        _no_bool_median(input)
        return done
    if input.numel:
        ordered(input)
        _no_bool_median(input)
    dims = tuple(range(input.ndim))
    return _made(input, dims, _folded(input, dims, False, input.dtype), [])
