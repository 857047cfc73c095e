"""Operations that give a part of the cells, or several: pieces, windows, any strides at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .layout import Layout
from .registry import Outcome, Refusal, rule, spread, view, wrap


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
            raises=IndexError,
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
