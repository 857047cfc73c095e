"""Operations that give the same cells another shape, and those that do so when they can."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from .layout import Ints, Layout, contiguous_stride, runs_of, view_stride
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
                f"a break before dimension {first}: one step along dimension {first - 1} is"
                f" {x.stride[first - 1]} cells, walking on would be {length * x.stride[last]}"
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
def view_(x: Layout, *shape: Any) -> Outcome:
    if len(shape) == 1 and isinstance(shape[0], torch.dtype):
        return _view_dtype(x, shape[0])
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


def _view_dtype(x: Layout, dtype: torch.dtype) -> Outcome:
    if dtype == x.dtype:
        return view(x, f"the elements are {dtype} already.")
    if dtype.itemsize != x.dtype.itemsize:
        raise NotCovered("view to a dtype of another size")
    return view(replace(x, dtype=dtype), f"the same bytes, read as {dtype}.")


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


@rule("T")
def big_t(x: Layout) -> Outcome:
    if x.ndim not in (0, 2):
        raise NotCovered("T of other tensors than matrices, which torch is giving up")
    return _permuted(x, range(x.ndim)[::-1], _REORDERED)


@rule("mT")
def matrix_t(x: Layout) -> Outcome:
    if x.ndim == 0:
        raise NotCovered("mT of a tensor without dimensions, which torch is giving up")
    if x.ndim < 2:
        raise Refusal(f"mT swaps the last two dimensions: the tensor has {x.ndim}.")
    return _permuted(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2], _REORDERED)


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


@rule("narrow")
def narrow(x: Layout, dim: int, start: int, length: int) -> Outcome:
    if x.ndim == 0:
        raise Refusal("A tensor without dimensions cannot be narrowed.")
    dim = wrap(dim, x.ndim)
    size = x.shape[dim]
    first = start + size if start < 0 else start
    if not 0 <= first <= size or length < 0 or first + length > size:
        raise Refusal(f"{length} elements from {start} do not lie within the {size} there are.")
    return view(sliced(x, dim, first, first + length, 1), "the same cells from a later start on.")


@rule("select")
def select(x: Layout, dim: int, index: int) -> Outcome:
    if x.ndim == 0:
        raise Refusal("A tensor without dimensions has nothing to select from.")
    dim = wrap(dim, x.ndim)
    return view(
        selected(x, dim, index), "one index is fixed: its dimension goes, the offset moves."
    )


def sliced(x: Layout, dim: int, start: int, stop: int, step: int) -> Layout:
    """x[start:stop:step] along `dim`; indices count from 0 and lie within the dimension."""
    shape, stride = list(x.shape), list(x.stride)
    shape[dim] = max(0, -(-(stop - start) // step))
    stride[dim] *= step
    return x.view(shape, stride, x.offset + start * x.stride[dim])


def selected(x: Layout, dim: int, index: int) -> Layout:
    """x[index] along `dim`. Raises Refusal out of range."""
    size = x.shape[dim]
    if not -size <= index < size:
        raise Refusal(
            f"index {index} is out of range: dimension {dim} has {size} elements.",
            f"Choose one from {-size} to {size - 1}." if size else "It has none to choose from.",
        )
    offset = x.offset + (index % size) * x.stride[dim]
    return x.view(x.shape[:dim] + x.shape[dim + 1 :], x.stride[:dim] + x.stride[dim + 1 :], offset)


@rule("unbind")
def unbind(x: Layout, dim: int = 0) -> Outcome:
    if x.ndim == 0:
        raise Refusal("A tensor without dimensions cannot be taken apart.")
    dim = wrap(dim, x.ndim)
    parts = tuple(selected(x, dim, i) for i in range(x.shape[dim]))
    return Outcome("view", parts, "each part fixes one index: all are views.", many=True)


def _cut(x: Layout, dim: int, sizes: Sequence[int]) -> Outcome:
    parts, start = [], 0
    for size in sizes:
        parts.append(sliced(x, dim, start, start + size, 1))
        start += size
    why = "each piece reads its own cells of the same storage: all are views."
    return Outcome("view", tuple(parts), why, many=True)


@rule("split")
def split(x: Layout, split_size: int | Sequence[int], dim: int = 0) -> Outcome:
    if x.ndim == 0:
        raise Refusal("A tensor without dimensions cannot be split.")
    dim = wrap(dim, x.ndim)
    size = x.shape[dim]
    if not isinstance(split_size, int):
        sizes = spread((split_size,))
        if sum(sizes) != size or any(n < 0 for n in sizes):
            raise Refusal(f"{list(sizes)} add up to {sum(sizes)}; dimension {dim} has {size}.")
        return _cut(x, dim, sizes)
    if split_size < 0 or (split_size == 0 and size):
        raise Refusal(f"Pieces of {split_size} elements cannot be cut.")
    count = max(1, -(-size // split_size)) if split_size else 1
    sizes = [split_size] * (count - 1)
    return _cut(x, dim, [*sizes, size - sum(sizes)])


@rule("chunk")
def chunk(x: Layout, chunks: int, dim: int = 0) -> Outcome:
    if x.ndim == 0:
        raise Refusal("A tensor without dimensions cannot be cut.")
    if chunks < 1:
        raise Refusal("At least one chunk must be asked for.")
    dim = wrap(dim, x.ndim)
    size = -(-x.shape[dim] // chunks)
    if size == 0:
        return _cut(x, dim, [0] * chunks)
    done = split(x, size, dim)
    return replace(
        done, why=f"pieces of {size} (the size divided by {chunks}, rounded up), all of them views."
    )


@rule("unfold")
def unfold(x: Layout, dimension: int, size: int, step: int) -> Outcome:
    dim = wrap(dimension, x.ndim)
    length = x.shape[dim] if x.ndim else 1
    if not 0 <= size <= length or step < 1:
        raise Refusal(f"Windows of {size} every {step} do not fit a dimension of {length}.")
    if x.ndim == 0:
        return view(x.view((size,), (1,)), "one window over the only element.")
    shape, stride = [*x.shape, size], [*x.stride, x.stride[dim]]
    shape[dim], stride[dim] = (length - size) // step + 1, x.stride[dim] * step
    why = "windows are a second stride over the same cells"
    return view(x.view(shape, stride), f"{why}: they overlap." if step < size else f"{why}.")


@rule("as_strided", "as_strided_")
def as_strided(
    x: Layout, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Outcome:
    shape, strides = spread((size,)), spread((stride,))
    if len(shape) != len(strides):
        raise Refusal(f"{len(shape)} sizes need as many strides, not {len(strides)}.")
    if any(n < 0 for n in (*shape, *strides)):
        raise Refusal("Sizes and strides must not be negative.")
    offset = x.offset if storage_offset is None else storage_offset
    result = x.view(shape, strides, offset)
    if offset < 0:
        raise Refusal("The offset must not be negative.")
    needed = (offset + result.extent()) * x.dtype.itemsize
    if result.numel and needed > x.storage_bytes:
        raise Refusal(
            f"The last element would lie at byte {needed} of a storage of {x.storage_bytes} bytes.",
            "Take smaller sizes, strides or offset.",
        )
    return view(result, "the cells are read exactly as you say, whatever the tensor's own shape.")


@rule("detach", "detach_")
def detach(x: Layout) -> Outcome:
    return view(
        replace(x, unwritable=""),
        "the same memory, without a history: writing to one is seen in the other.",
    )


@rule("contiguous")
def contiguous(x: Layout) -> Outcome:
    if x.is_contiguous:
        return same(x, "it is contiguous already: the tensor itself, nothing is copied.")
    wanted = contiguous_stride(x.shape)
    dim = max(d for d in range(x.ndim) if x.shape[d] != 1 and x.stride[d] != wanted[d])
    return copy(
        x.fresh(),
        f"dimension {dim} has stride {x.stride[dim]} where C order has {wanted[dim]}:"
        f" {x.numel * x.dtype.itemsize:,} bytes are copied.",
    )
