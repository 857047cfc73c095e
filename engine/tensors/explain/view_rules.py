"""Operations that give the same cells another shape, and those that do so when they can."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from .byte_rules import read_as
from .layout import Ints, Layout, runs_of, view_stride
from .registry import NotCovered, Outcome, Refusal, copy, rule, same, spread, view, wrap, wrap_all


def _ask_size(shape: Ints, numel: int) -> Ints:
    """`shape` with its -1, if any, worked out. Raises Refusal when it cannot hold `numel`."""
    unknown = shape.count(-1)
    if unknown > 1 or any(size < -1 for size in shape):
        raise Refusal(f"{shape} is no shape: one size may be -1, all others count elements.")
    known = math.prod(size for size in shape if size != -1)
    if unknown:
        if known == 0 or numel % known:
            raise Refusal(
                f"{numel} elements do not divide into {shape}: "
                + ("-1 could be anything." if known == 0 else f"{numel} / {known} is not whole."),
                "Sizes must multiply to the number of elements.",
            )
        return tuple(numel // known if size == -1 else size for size in shape)
    if known != numel:
        product = " · ".join(map(str, shape)) or "1"
        raise Refusal(
            f"{product} = {known}, but the tensor has {numel} elements.",
            "Sizes must multiply to the number of elements; write -1 for one to have it worked"
            " out.",
        )
    return shape


def _reasoning(x: Layout, shape: Ints) -> list[str]:
    """Torch's rule for views, on these numbers."""
    if x.numel == 0:
        return ["A tensor without elements reads no cell: any shape without elements fits."]
    told = []
    for first, last in runs_of(x.shape, x.stride):
        dims = f"dimension {first}" if first == last else f"dimensions {first} to {last}"
        told.append(
            f"{dims}: {math.prod(x.shape[first : last + 1])} elements, {x.stride[last]} apart"
        )
        if first > 0:
            length = math.prod(x.shape[first : last + 1])
            told.append(
                f"a break before dimension {first}: one step along dimension {first - 1} leads"
                f" {x.stride[first - 1]} on in memory, walking on would lead"
                f" {length * x.stride[last]}"
            )
    new_stride = view_stride(x.shape, x.stride, shape)
    if new_stride is None:
        told.append(f"the new shape {shape} has a dimension that crosses a break: no stride fits")
    else:
        told.append(f"each new dimension lies within one of these runs: strides {new_stride}")
    return told


def _check_given(shape: tuple[Any, ...]) -> None:
    if not shape:
        raise Refusal("A shape is needed.", "() is the shape without dimensions.")


@rule("view")
def view_(x: Layout, *shape: Any, dtype: torch.dtype | None = None) -> Outcome:
    if dtype is not None or (len(shape) == 1 and isinstance(shape[0], torch.dtype)):
        return read_as(x, dtype or shape[0])
    _check_given(shape)
    new_shape = _ask_size(spread(shape), x.numel)
    new_stride = view_stride(x.shape, x.stride, new_shape)
    if new_stride is None:
        raise Refusal(
            f"view must not copy, and no strides read the cells of shape {x.shape}, stride"
            f" {x.stride} as {new_shape} in this order.",
            "reshape copies where it must; contiguous() first does the same.",
            _reasoning(x, new_shape),
        )
    return view(
        x.view(new_shape, new_stride),
        "view never copies: new strides read the same cells in the same order.",
        _reasoning(x, new_shape),
    )


@rule("view_as")
def view_as(x: Layout, other: Layout) -> Outcome:
    return view_(x, other.shape)


@rule("reshape")
def reshape(x: Layout, *shape: Any) -> Outcome:
    _check_given(shape)
    return _reshaped(x, _ask_size(spread(shape), x.numel), "reshape")


@rule("reshape_as")
def reshape_as(x: Layout, other: Layout) -> Outcome:
    return _reshaped(x, _ask_size(other.shape, x.numel), "reshape")


def _reshaped(x: Layout, shape: Ints, name: str) -> Outcome:
    stride = view_stride(x.shape, x.stride, shape)
    reasoning = _reasoning(x, shape)
    if stride is not None:
        return view(
            x.view(shape, stride),
            f"{name} gives a view when strides can be found, and here they can.",
            reasoning,
        )
    return copy(
        x.fresh(shape),
        f"{name} copies only when it must: no strides read these cells as {shape} in order.",
        reasoning,
    )


@rule("flatten")
def flatten(x: Layout, start_dim: int = 0, end_dim: int = -1) -> Outcome:
    if x.ndim == 0:
        wrap_all((start_dim,), 0)
        wrap_all((end_dim,), 0)
        return _reshaped(x, (1,), "flatten")
    start, end = wrap(start_dim, x.ndim), wrap(end_dim, x.ndim)
    if start > end:
        raise Refusal(f"start_dim {start_dim} comes after end_dim {end_dim}.")
    if start == end:
        return same(x, "one dimension has nothing to be joined with: the tensor itself.")
    middle = math.prod(x.shape[start : end + 1])
    return _reshaped(x, (*x.shape[:start], middle, *x.shape[end + 1 :]), "flatten")


@rule("unflatten")
def unflatten(x: Layout, dim: int, sizes: Sequence[int]) -> Outcome:
    dim = wrap(dim, x.ndim)
    if x.ndim == 0:
        raise NotCovered("unflatten of a tensor without dimensions")
    inner = _ask_size(spread((sizes,)), x.shape[dim])
    return view_(x, (*x.shape[:dim], *inner, *x.shape[dim + 1 :]))


@rule("ravel")
def ravel(x: Layout) -> Outcome:
    if x.is_contiguous:
        return view_(x, -1) if x.numel else view_(x, 0)
    return copy(x.fresh((x.numel,)), "ravel copies unless the tensor is contiguous.")


@rule("squeeze", "squeeze_")
def squeeze(x: Layout, dim: int | Sequence[int] | None = None) -> Outcome:
    if dim is None:
        asked = tuple(range(x.ndim))
    else:
        asked = wrap_all(dim if isinstance(dim, tuple | list) else (dim,), x.ndim)
    gone = [d for d in asked if d < x.ndim and x.shape[d] == 1]
    kept = [d for d in range(x.ndim) if d not in gone]
    why = "a dimension of one element never moves the cell: it can be left out."
    if not gone:
        why = "no dimension asked for has one element, so none goes: a view of the same shape."
    return view(x.view([x.shape[d] for d in kept], [x.stride[d] for d in kept]), why)


@rule("unsqueeze", "unsqueeze_")
def unsqueeze(x: Layout, dim: int) -> Outcome:
    dim = wrap(dim, x.ndim + 1)
    stride = x.shape[dim] * x.stride[dim] if dim < x.ndim else 1
    return view(
        x.view((*x.shape[:dim], 1, *x.shape[dim:]), (*x.stride[:dim], stride, *x.stride[dim:])),
        "a dimension of one element needs no cell: its stride is never walked.",
    )


@rule("expand", "broadcast_to")
def expand(x: Layout, *size: Any) -> Outcome:
    asked = spread(size)
    padding = len(asked) - x.ndim
    if padding < 0:
        raise Refusal(f"expand keeps all {x.ndim} dimensions: {asked} has {len(asked)}.")
    shape, stride = [0] * len(asked), [0] * len(asked)
    for d in reversed(range(len(asked))):
        new, wanted = d < padding, asked[d]
        if new and wanted < 0:
            raise Refusal("A new dimension in front needs a size; -1 keeps an old one's.")
        size_d = 1 if new else x.shape[d - padding]
        if not new:
            stride[d] = x.stride[d - padding]
        elif x.ndim:
            stride[d] = shape[d + 1] * stride[d + 1]
        shape[d] = size_d if wanted == -1 else wanted
        if shape[d] != size_d:
            if size_d != 1 or shape[d] < 0:
                raise Refusal(
                    f"dimension {d - padding} has {size_d} elements and cannot be stretched to"
                    f" {wanted}: only a dimension of one element can.",
                )
            stride[d] = 0
    return view(
        x.view(shape, stride),
        "a stretched dimension has stride 0: all its elements read the same cell, nothing is"
        " copied.",
    )


@rule("expand_as")
def expand_as(x: Layout, other: Layout) -> Outcome:
    return expand(x, other.shape)


@rule("detach", "detach_", "data")
def detach(x: Layout) -> Outcome:
    return view(
        replace(x, unwritable=""),
        "the same memory, without a history: writing to one is seen in the other.",
    )
