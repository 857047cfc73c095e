"""Which memory is whose: one small number for each piece of memory, as long as it lives."""

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

    def number(self, value: Held) -> int | None:
        """None for kinds of tensors that have no storage of their own (sparse, jagged)."""
        return self.numbers([value])[0]

    def numbers(self, values: Iterable[Held]) -> list[int | None]:
        """As `number`, of many at once: looks through what lives only once."""
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
    """With the number of a piece that it overlaps, or the first free one."""
    device, start, end = _range(owner)
    for piece in pieces:
        overlaps = start < piece.end and piece.start < end
        if start and piece.start and overlaps and piece.device == device:
            return _Piece(device, start, end, piece.number)
    taken = {piece.number for piece in pieces}
    return _Piece(device, start, end, next(n for n in itertools.count(1) if n not in taken))


def _owner(value: Held) -> torch.UntypedStorage | np.ndarray | None:
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
