"""Which memory is whose: one small number for each piece of memory, as long as it lives."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class _Piece:
    """A storage or array that is still there; `start` is 0 when it has no memory of its own."""

    device: str
    start: int
    end: int
    number: int


class Storages:
    """Numbers pieces of memory from 1 on. Equal numbers share memory: views of one storage, two
    storages over the same addresses (two `torch.from_numpy` of one array), and the array itself.

    A number stays while something of the piece lives, and may be given again afterwards. Nothing
    is kept alive by being numbered.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[weakref.ref, int]] = {}

    def number(self, value: torch.Tensor | np.ndarray) -> int | None:
        """None for kinds of tensors that have no storage of their own (sparse, jagged)."""
        owner = _owner(value)
        if owner is None:
            return None
        key = id(owner)
        known = self._numbers.get(key)
        if known is not None and known[0]() is owner:
            return known[1]
        number = self._shared_number(owner) or self._free_number()
        self._numbers[key] = (weakref.ref(owner), number)
        return number

    def _shared_number(self, owner: torch.UntypedStorage | np.ndarray) -> int:
        device, start, end = _range(owner)
        for piece in self._living():
            overlaps = start < piece.end and piece.start < end
            if start and piece.start and overlaps and piece.device == device:
                return piece.number
        return 0

    def _free_number(self) -> int:
        taken = {piece.number for piece in self._living()}
        return next(number for number in range(1, len(taken) + 2) if number not in taken)

    def _living(self) -> Iterator[_Piece]:
        for key, (reference, number) in list(self._numbers.items()):
            owner = reference()
            if owner is None:
                del self._numbers[key]
            else:
                yield _Piece(*_range(owner), number)


def _owner(value: torch.Tensor | np.ndarray) -> torch.UntypedStorage | np.ndarray | None:
    """The object that stands for the memory: torch keeps one Python object per storage for as
    long as the storage lives."""
    if isinstance(value, np.ndarray):
        while isinstance(value.base, np.ndarray):
            value = value.base
        return value
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        try:
            return value.untyped_storage()
        except Exception:  # layouts without a storage raise errors of several types
            return None


def _range(owner: torch.UntypedStorage | np.ndarray) -> tuple[str, int, int]:
    """(device, first address, address after the last); start 0 for no memory."""
    if isinstance(owner, np.ndarray):
        if owner.size == 0:
            return "cpu", 0, 0
        spans = [(n - 1) * step for n, step in zip(owner.shape, owner.strides, strict=True)]
        start = owner.ctypes.data + sum(span for span in spans if span < 0)
        return "cpu", start, start + sum(abs(span) for span in spans) + owner.itemsize
    try:
        start = owner.data_ptr()
    except RuntimeError:  # a fake tensor's
        start = 0
    return str(owner.device), start, start + owner.nbytes()
