"""A tensor field by field, as torch reports it, for every kind of tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

import torch

from ..protocol import TensorReport
from ..tensors.readable import Readable, readable
from ..tensors.storages import Storages

MAX_ELEMENTS = 1000
"""Tensors with more elements are reported without values."""

T = TypeVar("T")


def report_tensors(tensors: Mapping[str, torch.Tensor]) -> dict[str, TensorReport]:
    """One report for each tensor. Tensors that share memory have the same `storage_id`, from 1.

    Draws no random numbers and builds no graph.
    """
    numbers = Storages().numbers(tensors.values())
    return {
        name: report(tensor, number)
        for (name, tensor), number in zip(tensors.items(), numbers, strict=True)
    }


def report(t: torch.Tensor, storage_id: int | None = None) -> TensorReport:
    """The fields are those of `TensorReport`. Never raises: a field that this kind of tensor does
    not have is None."""
    with torch.no_grad(), torch.DisableTorchFunctionSubclass():
        known = _known(t)
        strided = or_none(lambda: t.layout) == torch.strided
        return TensorReport(
            shape=known.shape,
            dtype=str(known.dtype),
            device=known.device,
            stride=or_none(lambda: tuple(int(n) for n in t.stride())) if strided else None,
            storage_offset=or_none(lambda: int(t.storage_offset())) if strided else None,
            is_contiguous=or_none(t.is_contiguous) if strided else None,
            requires_grad=bool(or_none(lambda: t.requires_grad)),
            is_leaf=bool(or_none(lambda: t.is_leaf)),
            grad_fn=or_none(lambda: None if t.grad_fn is None else type(t.grad_fn).__name__),
            version=or_none(lambda: t._version),
            storage_id=storage_id,
            values=or_none(lambda: _values(t, known)),
            grad=or_none(lambda: _gradient(t)),
        )


def _known(t: torch.Tensor) -> Readable:
    """`readable(t)`, which may copy; for a tensor too large to be reported, only its metadata."""
    size = None if or_none(lambda: t.is_nested) else or_none(t.numel)
    if size is None or size <= MAX_ELEMENTS:
        return readable(t)
    return Readable(tuple(int(n) for n in t.shape), t.dtype, str(t.device), None)


def _gradient(t: torch.Tensor) -> object:
    if not (t.is_leaf or t.retains_grad):  # torch warns when .grad of such a tensor is read
        return None
    return None if t.grad is None else _values(t.grad, _known(t.grad))


def _values(t: torch.Tensor, known: Readable) -> object:
    """The values as nested lists; None if there are too many elements, or no data."""
    dense = known.dense
    if dense is None or known.partial or dense.numel() > MAX_ELEMENTS:
        return None
    if -1 in known.shape:  # ragged
        return [_values(part, readable(part)) for part in t.unbind()]
    # A list without elements can still contain a million empty lists.
    if math.prod(max(n, 1) for n in known.shape) > MAX_ELEMENTS:
        return None
    return _plain(dense.reshape(known.shape).tolist())


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, complex):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def or_none(read: Callable[[], T]) -> T | None:
    """The result of `read`, or None if it raises: any attribute of a user's object, and of some
    kinds of tensors, may."""
    try:
        return read()
    except KeyboardInterrupt:
        raise
    except BaseException:  # an exit, too
        return None
