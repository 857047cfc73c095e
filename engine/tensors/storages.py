"""Small numbers for pieces of memory, by which a view shows which tensors share memory."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from .reach import Held


@dataclass(frozen=True)
class _Piece:
    """A living storage or array, from address `start` to `end`; `start` is 0 if without memory."""

    device: str
    start: int
    end: int
    number: int


class Storages:
    """Numbers pieces of memory from 1. Tensors and arrays that share memory have one number: views
    of one storage, two `torch.from_numpy` of one array, and the array itself.

    A piece keeps its number while a tensor or array on it lives; then the number may be used for
    another piece. The numbers keep nothing alive.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[weakref.ref, int]] = {}

    def number(self, value: Held) -> int | None:
        """The number of a tensor's or array's memory; None for tensors without a storage of their
        own (sparse, jagged)."""
        return self.numbers([value])[0]

    def numbers(self, values: Iterable[Held]) -> list[int | None]:
        """`number` of each of `values`. The living pieces are listed once for all."""
        pieces: list[_Piece] | None = None
        found: list[int | None] = []
        for value in values:
            owner = _owner(value)
            if owner is None:
                found.append(None)
                continue
            known = self._numbers.get(id(owner))
            if known is not None and known[0]() is owner:
                found.append(known[1])
                continue
            pieces = list(self._living()) if pieces is None else pieces
            piece = _new_piece(owner, pieces)
            pieces.append(piece)
            self._numbers[id(owner)] = (weakref.ref(owner), piece.number)
            found.append(piece.number)
        return found

    def _living(self) -> Iterator[_Piece]:
        for key, (reference, number) in list(self._numbers.items()):
            owner = reference()
            if owner is None:
                del self._numbers[key]
            else:
                yield _Piece(*_range(owner), number)


def _new_piece(owner: torch.UntypedStorage | np.ndarray, pieces: list[_Piece]) -> _Piece:
    """The owner's piece, with the number of a piece that it overlaps, or the first free number."""
    device, start, end = _range(owner)
    for piece in pieces:
        overlaps = start < piece.end and piece.start < end
        if start and piece.start and overlaps and piece.device == device:
            return _Piece(device, start, end, piece.number)
    taken = {piece.number for piece in pieces}
    return _Piece(device, start, end, next(n for n in itertools.count(1) if n not in taken))


def _owner(value: Held) -> torch.UntypedStorage | np.ndarray | None:
    """The object that identifies the memory. torch keeps one Python object for a storage while the
    storage lives."""
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
    """(device, first address, address after the last); the first is 0 if there is no memory."""
    if isinstance(owner, np.ndarray):
        if owner.size == 0:
            return "cpu", 0, 0
        spans = [(n - 1) * step for n, step in zip(owner.shape, owner.strides, strict=True)]
        start = owner.ctypes.data + sum(span for span in spans if span < 0)
        return "cpu", start, start + sum(abs(span) for span in spans) + owner.itemsize
    try:
        start = owner.data_ptr()
    except RuntimeError:  # a fake tensor's storage has no address
        start = 0
    return str(owner.device), start, start + owner.nbytes()
