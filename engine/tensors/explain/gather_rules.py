"""Gathering and scattering: an index tensor says which elements to fetch, or where to put them."""

from __future__ import annotations

from typing import Any

import torch

from .layout import Layout
from .pointwise_rules import broadcast_shape, written
from .registry import NotCovered, Outcome, Refusal, copy, rule, wrap


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
    _check_index(x, dim, index)
    return copy(
        x.fresh(index.shape),
        "element by element, the index says which to fetch: its shape is the result's.",
    )


@rule("take_along_dim")
def take_along_dim(x: Layout, indices: Layout, dim: int | None = None) -> Outcome:
    if indices.dtype != torch.int64:
        raise Refusal(f"The indices must be int64, not {indices.dtype}.", "Use .long().")
    if dim is None:
        return copy(x.fresh((indices.numel,)), "without dim both are read as flat lists.")
    if x.ndim == 0:
        raise Refusal("A tensor without dimensions has none to take along.", "Leave dim out.")
    if x.ndim != indices.ndim:
        raise Refusal(
            f"The indices need as many dimensions as the tensor: {indices.ndim} and {x.ndim}."
        )
    dim = wrap(dim, x.ndim)
    around = list(x.shape)
    around[dim] = indices.shape[dim]
    shape = broadcast_shape([tuple(around), indices.shape])
    return copy(x.fresh(shape), "gather, with both broadcast along all other dimensions.")


@rule("index_select")
def index_select(x: Layout, dim: int, index: Layout) -> Outcome:
    dim = wrap(dim, x.ndim)
    if index.ndim > 1 or index.dtype not in (torch.int64, torch.int32):
        raise Refusal("The index must be a vector of int64.")
    if x.ndim == 0:
        raise NotCovered("index_select of a tensor without dimensions")
    shape = (*x.shape[:dim], index.numel, *x.shape[dim + 1 :])
    return copy(x.fresh(shape), f"whole slices along dimension {dim} are copied, one per index.")


def _check_scatter(x: Layout, dim: int, index: Layout, src: Any) -> None:
    if index.dtype not in (torch.int64, torch.int32):
        raise Refusal(f"The index must be int64, not {index.dtype}.", "Use .long().")
    dim = wrap(dim, x.ndim)
    if not isinstance(src, Layout):
        _check_index(x, dim, index)
        return
    if src.dtype != x.dtype:
        raise Refusal(f"src is {src.dtype}, the tensor {x.dtype}: scatter converts nothing.")
    _check_index(x, dim, index)
    if index.numel and (
        max(src.ndim, 1) != max(index.ndim, 1)
        or any(a > b for a, b in zip(index.shape, src.shape, strict=False))
    ):
        raise Refusal(f"The index {index.shape} asks for more than src {src.shape} holds.")


@rule("scatter")
def scatter(x: Layout, dim: int, index: Layout, src: Any = None, *, value: Any = None) -> Outcome:
    _check_scatter(x, dim, index, value if src is None else src)
    return copy(x.fresh(), "a copy in C order, then written where the index says.")


@rule("scatter_add")
def scatter_add(x: Layout, dim: int, index: Layout, src: Layout) -> Outcome:
    _check_scatter(x, dim, index, src)
    return copy(x.fresh(), "a copy in C order, then added to where the index says.")


@rule("scatter_")
def scatter_(x: Layout, dim: int, index: Layout, src: Any = None, *, value: Any = None) -> Outcome:
    _check_scatter(x, dim, index, value if src is None else src)
    return written(x, (), None)


@rule("scatter_add_")
def scatter_add_(x: Layout, dim: int, index: Layout, src: Layout) -> Outcome:
    _check_scatter(x, dim, index, src)
    return written(x, (), None)
