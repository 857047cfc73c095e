"""Small numbers for pieces of memory, by which a view shows which tensors share memory."""

from __future__ import annotations

import bisect
import weakref
from collections.abc import Iterable

import numpy as np
import torch

from .reach import Held


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
        own (sparse, jagged). For many of them, call `numbers` first: it looks at the living pieces
        once for all."""
        return self.numbers([value])[0]

    def numbers(self, values: Iterable[Held]) -> list[int | None]:
        """`number` of each of `values`."""
        living: _Living | None = None
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
            living = self._living() if living is None else living
            number = living.number(owner)
            self._numbers[id(owner)] = (weakref.ref(owner), number)
            found.append(number)
        return found

    def _living(self) -> _Living:
        """The known pieces that still live; the others are forgotten."""
        living = _Living()
        for key, (reference, number) in list(self._numbers.items()):
            owner = reference()
            if owner is None:
                del self._numbers[key]
            else:
                living.add(owner, number)
        return living


class _Living:
    """The numbers that are taken, and the addresses that each one covers."""

    def __init__(self) -> None:
        self._spans: dict[str, _Spans] = {}
        self._taken: set[int] = set()
        self._next = 1

    def add(self, owner: torch.UntypedStorage | np.ndarray, number: int) -> None:
        device, start, end = _range(owner)
        self._taken.add(number)
        if start < end and start:
            self._spans.setdefault(device, _Spans()).add(start, end, number)

    def number(self, owner: torch.UntypedStorage | np.ndarray) -> int:
        """The number of memory that overlaps the owner's, or else the first free one; it is taken
        now."""
        device, start, end = _range(owner)
        number = None
        if start < end and start and device in self._spans:
            number = self._spans[device].find(start, end)
        if number is None:
            while self._next in self._taken:
                self._next += 1
            number = self._next
        self.add(owner, number)
        return number


class _Spans:
    """Addresses of one device, as spans in order that do not overlap, each with its number."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._numbers: list[int] = []

    def find(self, start: int, end: int) -> int | None:
        """The number of a span that overlaps these addresses."""
        last = bisect.bisect_left(self._starts, end) - 1
        return self._numbers[last] if last >= 0 and self._ends[last] > start else None

    def add(self, start: int, end: int, number: int) -> None:
        """Give a number to those of these addresses that have none."""
        first = bisect.bisect_right(self._ends, start)
        after = bisect.bisect_left(self._starts, end)
        spans: list[tuple[int, int, int]] = []
        for i in range(first, after):
            if start < self._starts[i]:
                spans.append((start, self._starts[i], number))
            spans.append((self._starts[i], self._ends[i], self._numbers[i]))
            start = self._ends[i]
        if start < end:
            spans.append((start, end, number))
        self._starts[first:after] = [span[0] for span in spans]
        self._ends[first:after] = [span[1] for span in spans]
        self._numbers[first:after] = [span[2] for span in spans]


def _owner(value: Held) -> torch.UntypedStorage | np.ndarray | None:
    """The object that identifies the memory. torch keeps one Python object for a storage while the
    storage lives."""
    if isinstance(value, np.ndarray):
        while isinstance(value.base, np.ndarray):
            value = value.base
        return value
    with torch.no_grad(), torch.DisableTorchFunctionSubclass():
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
