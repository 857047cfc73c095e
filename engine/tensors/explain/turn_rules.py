"""Operations that give the dimensions in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .layout import Layout
from .registry import Outcome, Refusal, rule, same, spread, view, wrap, wrap_all


def _permuted(x: Layout, dims: Sequence[int], why: str) -> Outcome:
    return view(x.view([x.shape[d] for d in dims], [x.stride[d] for d in dims]), why)


_REORDERED = "only shape and strides change places; no element moves in memory."


@rule("permute")
def permute(x: Layout, *dims: Any) -> Outcome:
    order = spread(dims)
    if len(order) != x.ndim:
        raise Refusal(f"permute names every dimension once: {x.ndim} of them, not {len(order)}.")
    return _permuted(x, wrap_all(order, x.ndim), _REORDERED)


@rule("transpose", "swapaxes", "swapdims", "transpose_", "swapaxes_", "swapdims_")
def transpose(x: Layout, dim0: int, dim1: int) -> Outcome:
    dim0, dim1 = wrap(dim0, x.ndim), wrap(dim1, x.ndim)
    dims = list(range(x.ndim))
    if dims:
        dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    return _permuted(x, dims, _REORDERED)


@rule("t", "t_")
def t(x: Layout) -> Outcome:
    if x.ndim > 2:
        raise Refusal(f"t() is for matrices: the tensor has {x.ndim} dimensions.", "Use mT.")
    return _permuted(x, range(x.ndim)[::-1], _REORDERED)


_GIVING_UP = "torch warns here: "


@rule("T")
def big_t(x: Layout) -> Outcome:
    done = _permuted(x, range(x.ndim)[::-1], _REORDERED)
    if x.ndim == 2:
        return done
    meant = "It is meant for matrices; mT swaps the last two dimensions, permute any."
    if x.ndim == 0:
        meant = "Of a tensor without dimensions it changes nothing: leave it out."
    warning = f"{_GIVING_UP}T of a tensor with {x.ndim} dimensions is to become an error. {meant}"
    return replace(done, reasoning=(warning,))


def _swapped(x: Layout, name: str) -> Outcome:
    if x.ndim < 2:
        raise Refusal(
            f"{name} swaps the last two dimensions: the tensor has {x.ndim}.",
            "A vector needs a second one first: unsqueeze(0) makes a row, unsqueeze(1) a column.",
            raises=RuntimeError,
        )
    return _permuted(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2], _REORDERED)


@rule("mT")
def matrix_t(x: Layout) -> Outcome:
    if x.ndim == 0:
        warning = f"{_GIVING_UP}mT of a tensor without dimensions is to become an error."
        return same(x, "there is nothing to swap: the tensor itself.", [warning])
    return _swapped(x, "mT")


@rule("conj")
def conj(x: Layout) -> Outcome:
    if not x.dtype.is_complex:
        return same(x, "real numbers are their own conjugates: the tensor itself.")
    return view(
        replace(x, conj=not x.conj, data=None),
        "a mark on the tensor says that imaginary parts are read with the other sign: no number"
        " is written.",
    )


def _conjugated(done: Outcome) -> Outcome:
    """A transposed view read as its conjugate, which real numbers are already."""
    if not done.result.dtype.is_complex:
        return replace(done, why=f"{done.why} Real numbers are their own conjugates.")
    return replace(conj(done.result), why=f"{done.why} {conj(done.result).why}")


@rule("mH", "adjoint")
def matrix_h(x: Layout) -> Outcome:
    if x.ndim == 0:
        warning = f"{_GIVING_UP}mH of a tensor without dimensions is to go: write conj()."
        return replace(conj(x), reasoning=(warning,))
    return _conjugated(_swapped(x, "mH"))


@rule("H")
def big_h(x: Layout) -> Outcome:
    if x.ndim == 0:
        warning = f"{_GIVING_UP}H of a tensor without dimensions is to go: write conj()."
        return replace(conj(x), reasoning=(warning,))
    if x.ndim != 2:
        raise Refusal(
            f"H is for matrices: the tensor has {x.ndim} dimensions.",
            "mH takes batches of matrices." if x.ndim > 2 else "",
            raises=RuntimeError,
        )
    return _conjugated(_swapped(x, "H"))


@rule("movedim", "moveaxis")
def movedim(x: Layout, source: int | Sequence[int], destination: int | Sequence[int]) -> Outcome:
    sources = wrap_all(source if isinstance(source, tuple | list) else (source,), x.ndim)
    targets = wrap_all(
        destination if isinstance(destination, tuple | list) else (destination,), x.ndim
    )
    if len(sources) != len(targets):
        raise Refusal("movedim needs one destination for each source.")
    if x.ndim == 0:
        return _permuted(x, (), _REORDERED)
    order: dict[int, int] = dict(zip(targets, sources, strict=True))
    others = (d for d in range(x.ndim) if d not in sources)
    return _permuted(
        x, [order[d] if d in order else next(others) for d in range(x.ndim)], _REORDERED
    )
