"""Operations that give memory of its own: clones, conversions, repeating, joining."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from .layout import Layout, channels_last_stride, contiguous_stride, preserved_stride
from .promotion import result_dtype
from .registry import NotCovered, Outcome, Refusal, copy, rule, same, spread, wrap
from .view_rules import unsqueeze, view_


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
            raise Refusal(
                f"{memory_format} is for {wanted} dimensions; the tensor has {x.ndim}.",
                raises=RuntimeError,
            )
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
    kept = memory_format in (torch.preserve_format, _suggested_format(x))
    if (dtype, device) == (x.dtype, x.device) and kept and not always:
        told = "" if memory_format == torch.preserve_format else f", as {_name(memory_format)},"
        return same(x, f"it is {_name(dtype)} on {device}{told} already: the tensor itself.")
    why = f"{_name(dtype)} numbers have other bytes than {_name(x.dtype)} ones"
    if dtype == x.dtype:
        why = "a copy was asked for"
        if device != x.device:
            why = f"{device} has its own memory"
        elif not always:
            why = f"{_name(memory_format)} lays the elements out in another order"
    return copy(_copied(x, memory_format, dtype, device), f"{why}: a copy.")


def _suggested_format(x: Layout) -> torch.memory_format:
    """The format that torch takes a tensor to be in (`suggest_memory_format`): contiguous_format
    for everything that does not look like channels_last, transposed or not."""
    if x.is_channels_last:
        return torch.channels_last if x.ndim == 4 else torch.channels_last_3d
    return torch.contiguous_format


def _name(value: torch.dtype | torch.memory_format) -> str:
    return str(value).removeprefix("torch.")


_CASTS = {
    "float": torch.float32, "double": torch.float64, "half": torch.float16,
    "bfloat16": torch.bfloat16, "long": torch.int64, "int": torch.int32, "short": torch.int16,
    "char": torch.int8, "byte": torch.uint8, "bool": torch.bool, "cfloat": torch.complex64,
    "cdouble": torch.complex128,
}  # fmt: skip


def _add_cast(name: str, dtype: torch.dtype) -> None:
    def cast(x: Layout, *, memory_format: torch.memory_format = torch.preserve_format) -> Outcome:
        return _converted(x, dtype, x.device, False, memory_format)

    rule(name)(cast)


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


@rule("contiguous")
def contiguous(
    x: Layout, *, memory_format: torch.memory_format = torch.contiguous_format
) -> Outcome:
    if memory_format == torch.preserve_format and not x.is_contiguous:
        raise Refusal("contiguous needs an order to bring the elements into.", raises=RuntimeError)
    if memory_format in (torch.contiguous_format, torch.preserve_format):
        if x.is_contiguous:
            return same(x, "it is contiguous already: the tensor itself, nothing is copied.")
        wanted, order = contiguous_stride(x.shape), "C order"
    else:
        wanted, order = _copied(x, memory_format, x.dtype, x.device).stride, _name(memory_format)
        pairs = zip(x.shape, x.stride, wanted, strict=True)
        if all(size == 1 or stride == of for size, stride, of in pairs):
            return same(x, f"it lies as {order} already: the tensor itself, nothing is copied.")
    dim = max(d for d in range(x.ndim) if x.shape[d] != 1 and x.stride[d] != wanted[d])
    return copy(
        x.fresh(stride=wanted),
        f"dimension {dim} has stride {x.stride[dim]} where {order} has {wanted[dim]}:"
        f" {x.numel * x.dtype.itemsize:,} bytes are copied.",
    )
