"""Operations along a dimension that stays: running sums, softmax, sorting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from .layout import Layout, preserved_stride
from .pointwise_rules import written
from .promotion import category
from .reduction_rules import check_known, ordered, summed, with_indices
from .registry import Outcome, Refusal, copy, rule, wrap


def _along(x: Layout, dtype: torch.dtype, dim: int, what: str, told: Sequence[str]) -> Outcome:
    why = f"{what} along dimension {dim}, which stays: new numbers, in C order."
    return copy(x.fresh(dtype=dtype), why, [t for t in told if t])


def _check_sums(x: Layout, dtype: torch.dtype) -> None:
    if dtype == torch.bool and x.ndim and x.numel:
        raise Refusal("Sums do not fit into bool.", "Use .int() first.", raises=RuntimeError)


@rule("cumsum", "cumprod")
def cumsum(input: Layout, dim: int, *, dtype: torch.dtype | None = None) -> Outcome:
    check_known(input)
    result_dtype, told = summed(input, dtype)
    _check_sums(input, result_dtype)
    return _along(input, result_dtype, wrap(dim, input.ndim), "all so far", [told])


@rule("cumsum_", "cumprod_")
def cumsum_(x: Layout, dim: int) -> Outcome:
    check_known(x)
    wrap(dim, x.ndim)
    _check_sums(x, x.dtype)
    return written(x, (), None)


@rule("softmax", "log_softmax")
def softmax(input: Layout, dim: int, dtype: torch.dtype | None = None) -> Outcome:
    check_known(input)
    place = wrap(dim, input.ndim)
    result_dtype = dtype or input.dtype
    if category(result_dtype) != 2 and input.numel:
        raise Refusal(
            f"Shares of 1 are fractions, which {result_dtype} cannot hold.",
            "Convert it first: .float(), or give dtype=torch.float32.",
            raises=RuntimeError,
        )
    return _along(input, result_dtype, place, "shares that add up to 1", [])


def _sorted(x: Layout, dim: int) -> Outcome:
    check_known(x)
    dim = wrap(dim, x.ndim)
    ordered(x)
    result = x.fresh(stride=preserved_stride(x))
    return copy(result, f"sorted along dimension {dim}: new numbers, in x's own order in memory.")


@rule("sort")
def sort(
    input: Layout, dim: int = -1, descending: bool = False, *, stable: bool = False
) -> Outcome:
    return with_indices(_sorted(input, dim))


@rule("argsort")
def argsort(
    input: Layout, dim: int = -1, descending: bool = False, *, stable: bool = False
) -> Outcome:
    done = _sorted(input, dim)
    return replace(done, results=(replace(done.result, dtype=torch.int64),))


@rule("topk")
def topk(
    input: Layout, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Outcome:
    check_known(input)
    dim = wrap(dim, input.ndim)
    size = input.shape[dim] if input.ndim else 1
    if not 0 <= k <= size:
        raise Refusal(f"{k} of {size} elements cannot be taken.", raises=RuntimeError)
    ordered(input)
    if input.dtype == torch.bool:
        raise Refusal("topk does not take bool.", "Use .int().", raises=RuntimeError)
    shape = [k if d == dim else n for d, n in enumerate(input.shape)]
    return with_indices(
        copy(input.fresh(shape), f"the {k} first along dimension {dim}: a new tensor.")
    )
