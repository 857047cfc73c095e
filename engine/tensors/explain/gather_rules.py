"""Gathering and scattering: an index tensor says which elements to fetch, or where to put them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from .index_values import check_range
from .layout import Layout
from .pointwise_rules import broadcast_shape, written
from .registry import Outcome, Refusal, copy, rule, wrap
from .view_rules import view_


def _check_index(x: Layout, dim: int, index: Layout) -> int:
    if index.dtype not in (torch.int64, torch.int32):
        raise Refusal(f"The index must be int64, not {index.dtype}.", "Use .long().")
    dim = wrap(dim, x.ndim)
    if index.numel == 0:
        return dim
    if max(index.ndim, 1) != max(x.ndim, 1):
        raise Refusal(
            f"The index needs as many dimensions as the tensor: {index.ndim} and {x.ndim}."
        )
    for d, (asked, there) in enumerate(zip(index.shape, x.shape, strict=False)):
        if d != dim and asked > there:
            raise Refusal(
                f"The index has {asked} elements in dimension {d}, the tensor only {there}:"
                f" only dimension {dim} may be longer."
            )
    return dim


@rule("gather")
def gather(x: Layout, dim: int, index: Layout, *, sparse_grad: bool = False) -> Outcome:
    del sparse_grad
    unless = _check_values(x, _check_index(x, dim, index), index)
    return _fetched(
        x.fresh(index.shape),
        "element by element, the index says which to fetch: its shape is the result's.",
        unless,
    )


def _check_values(x: Layout, dim: int, index: Layout) -> str:
    return check_range(index, x.shape[dim] if x.ndim else 1, dim, raises=RuntimeError)


def _open(unless: str) -> list[str]:
    return [f"not checked: torch refuses if {unless}"] if unless else []


def _fetched(result: Layout, why: str, unless: str) -> Outcome:
    return replace(copy(result, why, _open(unless)), unless=unless)


@rule("take_along_dim")
def take_along_dim(x: Layout, indices: Layout, dim: int | None = None) -> Outcome:
    if indices.dtype != torch.int64:
        raise Refusal(f"The indices must be int64, not {indices.dtype}.", "Use .long().")
    if dim is None:
        for flat in (x, indices):  # read with view(-1), which may find no strides
            if flat.numel:
                view_(flat, -1)
        unless = check_range(indices, x.numel, 0, raises=RuntimeError)
        result = x.fresh((indices.numel,))
        return _fetched(result, "without dim both are read as flat lists.", unless)
    if x.ndim == 0:
        raise Refusal("A tensor without dimensions has none to take along.", "Leave dim out.")
    if x.ndim != indices.ndim:
        raise Refusal(
            f"The indices need as many dimensions as the tensor: {indices.ndim} and {x.ndim}."
        )
    dim = wrap(dim, x.ndim)
    if x.shape[dim] == 0 and indices.numel:
        raise Refusal(
            f"Dimension {dim} has no elements to take.", "Take from another.", raises=RuntimeError
        )
    around = list(x.shape)
    around[dim] = indices.shape[dim]
    shape = broadcast_shape([tuple(around), indices.shape])
    return copy(
        x.fresh(shape),
        "gather, with both broadcast along all other dimensions.",
        [f"an index i reads i % {x.shape[dim]}: beyond an end it starts again at the other"],
    )


@rule("take")
def take(x: Layout, index: Layout) -> Outcome:
    if index.dtype != torch.int64:
        raise Refusal(f"The index must be int64, not {index.dtype}.", "Use .long().")
    if x.numel == 0 and index.numel:
        raise Refusal("There is nothing to take from.", raises=IndexError)
    unless = check_range(index, x.numel, 0, raises=IndexError, from_end=True)
    return _fetched(x.fresh(index.shape), "x is read as a flat list, in C order.", unless)


@rule("index_select")
def index_select(x: Layout, dim: int, index: Layout) -> Outcome:
    dim = wrap(dim, x.ndim)
    if index.ndim > 1 or index.dtype not in (torch.int64, torch.int32):
        raise Refusal("The index must be a vector of int64.")
    size = x.shape[dim] if x.ndim else 1
    if x.ndim == 0 and index.numel != 1:
        raise Refusal("A tensor without dimensions has one element to select.", raises=RuntimeError)
    # Dimension 1, and what is empty, are checked elsewhere in torch, with another error.
    raises = IndexError if x.ndim < 2 or (x.numel and dim != 1) else RuntimeError
    if size == 0 and index.numel:
        raise Refusal(f"Dimension {dim} has no elements to select.", raises=raises)
    unless = check_range(index, size, dim, raises=raises)
    shape = (*x.shape[:dim], index.numel, *x.shape[dim + 1 :]) if x.ndim else ()
    why = f"whole slices along dimension {dim} are copied, one per index."
    return _fetched(x.fresh(shape), why, unless)


def _check_scatter(x: Layout, dim: int, index: Layout, src: Any) -> str:
    if index.dtype not in (torch.int64, torch.int32):
        raise Refusal(f"The index must be int64, not {index.dtype}.", "Use .long().")
    dim = wrap(dim, x.ndim)
    if not isinstance(src, Layout):
        return _check_values(x, _check_index(x, dim, index), index)
    if src.dtype != x.dtype:
        raise Refusal(f"src is {src.dtype}, the tensor {x.dtype}: scatter converts nothing.")
    _check_index(x, dim, index)
    if index.numel and (
        max(src.ndim, 1) != max(index.ndim, 1)
        or any(a > b for a, b in zip(index.shape, src.shape, strict=False))
    ):
        raise Refusal(f"The index {index.shape} asks for more than src {src.shape} holds.")
    return _check_values(x, dim, index)


@rule("scatter")
def scatter(x: Layout, dim: int, index: Layout, src: Any = None, *, value: Any = None) -> Outcome:
    unless = _check_scatter(x, dim, index, value if src is None else src)
    return _fetched(x.fresh(), "a copy in C order, then written where the index says.", unless)


@rule("scatter_add")
def scatter_add(x: Layout, dim: int, index: Layout, src: Layout) -> Outcome:
    unless = _check_scatter(x, dim, index, src)
    return _fetched(x.fresh(), "a copy in C order, then added to where the index says.", unless)


@rule("scatter_")
def scatter_(x: Layout, dim: int, index: Layout, src: Any = None, *, value: Any = None) -> Outcome:
    unless = _check_scatter(x, dim, index, value if src is None else src)
    return replace(written(x, (), None), reasoning=tuple(_open(unless)), unless=unless)


@rule("scatter_add_")
def scatter_add_(x: Layout, dim: int, index: Layout, src: Layout) -> Outcome:
    unless = _check_scatter(x, dim, index, src)
    return replace(written(x, (), None), reasoning=tuple(_open(unless)), unless=unless)
