"""Operations that give memory of its own: clones, conversions, joining, gathering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from .layout import Ints, Layout, channels_last_stride, contiguous_stride, preserved_stride
from .pointwise_rules import broadcast_shape, written
from .promotion import result_dtype
from .registry import NotCovered, Outcome, Refusal, copy, rule, same, spread, wrap
from .view_rules import expand, unsqueeze, view_


def _copied(
    x: Layout, memory_format: torch.memory_format, dtype: torch.dtype, device: str
) -> Layout:
    if memory_format == torch.preserve_format:
        stride = preserved_stride(x)
    elif memory_format == torch.contiguous_format:
        stride = contiguous_stride(x.shape)
    else:
        wanted = 4 if memory_format == torch.channels_last else 5
        if x.ndim != wanted:
            raise Refusal(f"{memory_format} is for {wanted} dimensions; the tensor has {x.ndim}.")
        stride = channels_last_stride(x.shape)
    return x.fresh(stride=stride, dtype=dtype, device=device)


@rule("clone")
def clone(x: Layout, *, memory_format: torch.memory_format = torch.preserve_format) -> Outcome:
    why = "clone always copies"
    if memory_format == torch.preserve_format:
        why += (
            ", and keeps the strides of a dense tensor"
            if x.is_dense
            else ", and closes the gaps and overlaps, in the same order of dimensions"
        )
    return copy(_copied(x, memory_format, x.dtype, x.device), why + ".")


@rule("to")
def to(
    x: Layout,
    *where: Any,
    dtype: torch.dtype | None = None,
    device: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: torch.memory_format = torch.preserve_format,
) -> Outcome:
    for target in where:
        if isinstance(target, Layout):
            dtype, device = target.dtype, target.device
        elif isinstance(target, torch.dtype):
            dtype = target
        elif isinstance(target, str | torch.device):
            device = target
        elif target is not None:
            raise NotCovered(f"to({target!r})")
    del non_blocking
    place = x.device if device is None else str(torch.device(device))
    return _converted(x, dtype or x.dtype, place, copy, memory_format)


def _converted(
    x: Layout, dtype: torch.dtype, device: str, always: bool, memory_format: torch.memory_format
) -> Outcome:
    if memory_format != torch.preserve_format:
        raise NotCovered("to with a memory format")
    if (dtype, device) == (x.dtype, x.device) and not always:
        return same(x, f"it is {_name(dtype)} on {device} already: the tensor itself.")
    why = f"{_name(dtype)} numbers have other bytes than {_name(x.dtype)} ones"
    if dtype == x.dtype:
        why = "a copy was asked for" if device == x.device else f"{device} has its own memory"
    return copy(_copied(x, memory_format, dtype, device), f"{why}: a copy.")


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


_CASTS = {
    "float": torch.float32, "double": torch.float64, "half": torch.float16,
    "bfloat16": torch.bfloat16, "long": torch.int64, "int": torch.int32, "short": torch.int16,
    "char": torch.int8, "byte": torch.uint8, "bool": torch.bool, "cfloat": torch.complex64,
    "cdouble": torch.complex128,
}  # fmt: skip


def _add_cast(name: str, dtype: torch.dtype) -> None:
    rule(name)(lambda x: _converted(x, dtype, x.device, False, torch.preserve_format))


for _cast, _dtype in _CASTS.items():
    _add_cast(_cast, _dtype)


@rule("type")
def type_(x: Layout, dtype: Any = None) -> Outcome:
    if not isinstance(dtype, torch.dtype):
        raise NotCovered("type() without a dtype")
    return _converted(x, dtype, x.device, False, torch.preserve_format)


@rule("type_as")
def type_as(x: Layout, other: Layout) -> Outcome:
    return _converted(x, other.dtype, other.device, False, torch.preserve_format)


@rule("cpu")
def cpu(x: Layout) -> Outcome:
    return _converted(x, x.dtype, "cpu", False, torch.preserve_format)


@rule("repeat")
def repeat(x: Layout, *repeats: Any) -> Outcome:
    counts = spread(repeats)
    if len(counts) < x.ndim:
        raise Refusal(f"repeat needs a count for each of {x.ndim} dimensions: {counts}.")
    if any(count < 0 for count in counts):
        raise Refusal("A count must not be negative.")
    shape = (1,) * (len(counts) - x.ndim) + x.shape
    tiled = tuple(size * count for size, count in zip(shape, counts, strict=True))
    return copy(x.fresh(tiled), "repeat writes every repetition out (expand would not copy).")


@rule("tile")
def tile(x: Layout, *dims: Any) -> Outcome:
    counts = spread(dims)
    return repeat(x, (1,) * (x.ndim - len(counts)) + counts)


def _all_tensors(tensors: Any) -> Sequence[Layout]:
    if not isinstance(tensors, tuple | list) or not tensors:
        raise Refusal("A list or tuple of at least one tensor is needed: cat([x, y]).")
    if not all(isinstance(t, Layout) for t in tensors):
        raise Refusal("Everything in the list must be a tensor.")
    if len({t.device for t in tensors}) > 1:
        raise Refusal("The tensors lie on different devices.", "Move them with .to(device).")
    return tensors


@rule("cat", "concat", "concatenate")
def cat(tensors: Any, dim: int = 0) -> Outcome:
    layouts = _all_tensors(tensors)
    dtype, dtype_why = result_dtype(layouts)
    if any(t.ndim == 0 for t in layouts):
        raise Refusal("Tensors without dimensions cannot be joined end to end.", "Use stack.")
    real = [t for t in layouts if t.shape != (0,)]
    if not real:
        return copy(layouts[0].fresh(dtype=dtype), "nothing joined with nothing.", [dtype_why])
    dim = wrap(dim, real[0].ndim)
    for t in real:
        others = zip(t.shape, real[0].shape, strict=False)
        if t.ndim != real[0].ndim or any(a != b for d, (a, b) in enumerate(others) if d != dim):
            raise Refusal(
                f"{real[0].shape} and {t.shape} differ beside dimension {dim}, along which they"
                " are joined.",
                "All other sizes must be equal.",
            )
    shape = list(real[0].shape)
    shape[dim] = sum(t.shape[dim] for t in real)
    stride = None
    if all(t.is_channels_last for t in layouts) and len({t.ndim for t in layouts}) == 1:
        stride = channels_last_stride(shape)
    return copy(
        real[0].fresh(shape, stride, dtype),
        f"all are written one after the other along dimension {dim} into new memory.",
        [dtype_why],
    )


@rule("stack")
def stack(tensors: Any, dim: int = 0) -> Outcome:
    layouts = _all_tensors(tensors)
    dim = wrap(dim, layouts[0].ndim + 1)
    for t in layouts:
        if t.shape != layouts[0].shape:
            raise Refusal(
                f"stack needs equal shapes: {layouts[0].shape} and {t.shape}.",
                "cat joins along a dimension that is there already.",
            )
    if dim < layouts[0].ndim:
        joined = cat(layouts, dim)
        shape = layouts[0].shape
        made = view_(joined.result, (*shape[:dim], len(layouts), *shape[dim:])).result
    else:
        joined = cat([unsqueeze(t, dim).result for t in layouts], dim)
        made = joined.result
    return replace(
        joined,
        results=(made,),
        why=f"a new dimension {dim} counts the tensors; all are copied into new memory.",
    )


# -- gathering -----------------------------------------------------------------------------------


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


def expanded(x: Layout, shape: Ints) -> Layout:
    """`x` stretched to `shape`, as broadcasting does it."""
    return expand(x, shape).result
