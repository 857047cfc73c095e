"""The same bytes, read as numbers of another dtype."""

from __future__ import annotations

from dataclasses import replace

import torch

from .layout import Layout
from .registry import NotCovered, Outcome, Refusal, rule, same, view


def read_as(x: Layout, dtype: torch.dtype) -> Outcome:
    """`x.view(dtype)` (`view_dtype` in aten/src/ATen/native/TensorConversions.cpp): with elements
    of another size the last dimension grows or shrinks, so its elements must lie side by side."""
    if x.conj:
        raise Refusal(
            "A conjugate view cannot be read as another dtype: its imaginary parts have the other"
            " sign in memory.",
            "resolve_conj() writes the conjugates out.",
            raises=RuntimeError,
        )
    if dtype == x.dtype:
        return view(x, f"the elements are {dtype} already.")
    old, new = x.dtype.itemsize, dtype.itemsize
    if old == new:
        return view(replace(x, dtype=dtype, data=None), f"the same bytes, read as {dtype}.")
    if x.ndim == 0:
        raise _unfit(x, dtype, "a tensor without dimensions has none that could grow or shrink.")
    if old > new:
        if x.stride[-1] != 1:
            raise _unfit(x, dtype, f"the last stride must be 1, and is {x.stride[-1]}.")
        return _split(x, dtype, old // new)
    return _merged(x, dtype, new // old)


def _split(x: Layout, dtype: torch.dtype, ratio: int) -> Outcome:
    result = x.view(
        (*x.shape[:-1], x.shape[-1] * ratio),
        (*(stride * ratio for stride in x.stride[:-1]), 1),
        x.offset * ratio,
    )
    return view(
        replace(result, dtype=dtype),
        f"the same bytes: each element is read as {ratio} of {dtype}.",
        [f"the last size, the other strides and the offset are multiplied by {ratio}"],
    )


def _merged(x: Layout, dtype: torch.dtype, ratio: int) -> Outcome:
    if x.shape[-1] % ratio:
        told = f"the last size, {x.shape[-1]}, must be divisible by {ratio}."
        raise _unfit(x, dtype, told)
    if x.offset % ratio:
        raise _unfit(x, dtype, f"the offset, {x.offset}, must be divisible by {ratio}.")
    if x.stride[-1] != 1:
        raise _unfit(x, dtype, f"the last stride must be 1, and is {x.stride[-1]}.")
    for dim, stride in enumerate(x.stride[:-1]):
        if stride % ratio:
            told = f"the stride of dimension {dim}, {stride}, must be divisible by {ratio}."
            raise _unfit(x, dtype, told)
    result = x.view(
        (*x.shape[:-1], x.shape[-1] // ratio),
        (*(stride // ratio for stride in x.stride[:-1]), 1),
        x.offset // ratio,
    )
    return view(
        replace(result, dtype=dtype),
        f"the same bytes: {ratio} elements side by side are read as one of {dtype}.",
        [f"the last size, the other strides and the offset are divided by {ratio}"],
    )


def _unfit(x: Layout, dtype: torch.dtype, why: str) -> Refusal:
    return Refusal(
        f"{x.dtype} has {x.dtype.itemsize} bytes and {dtype} {dtype.itemsize}: {why}",
        f"contiguous() first puts the elements side by side; to({dtype}) converts the numbers.",
        raises=RuntimeError,
    )


@rule("real")
def real(x: Layout) -> Outcome:
    if not x.dtype.is_complex:
        return same(x, "the numbers are real already: the tensor itself.")
    return _part(x, 0)


@rule("imag")
def imag(x: Layout) -> Outcome:
    if not x.dtype.is_complex:
        raise Refusal(f"{x.dtype} has no imaginary part.", raises=RuntimeError)
    if x.conj:
        raise NotCovered("imag of a conjugate view")
    return _part(x, 1)


def _part(x: Layout, which: int) -> Outcome:
    stride = tuple(2 * s for s in x.stride)
    result = replace(x.view(x.shape, stride, 2 * x.offset + which), dtype=x.dtype.to_real())
    return view(
        replace(result, conj=False),
        "a complex number is two real ones side by side: every second one is read.",
    )
