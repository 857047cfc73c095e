"""Which tensors of a file have bytes in common, and how many bytes each adds to earlier ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .artifact import Entry
from .file_bytes import FileBytes

MAX_CELLS = 2**24
MAX_VISITS = 2**29
"""The most cells that are looked at for one file, some seconds of work."""


class Memory(NamedTuple):
    """`shares` is the first earlier tensor that has a byte of this one, "" if there is none.
    `added_bytes` of this tensor, as many as `added_elements` take, are in no earlier one. Without
    `is_exact` the bytes between the elements were counted as if they belonged to the tensor."""

    shares: str
    added_elements: int
    added_bytes: int
    is_exact: bool = True


class _View(NamedTuple):
    """The bytes of a tensor: runs of `run` bytes, the first of which begins at byte `start`, the
    others at steps of `dims`, (count, step in bytes)."""

    entry: Entry
    start: int
    run: int
    dims: tuple[tuple[int, int], ...]

    @property
    def end(self) -> int:
        return self.start + sum((count - 1) * step for count, step in self.dims) + self.run

    @property
    def is_overlapping(self) -> bool:
        """Whether elements may overlap each other."""
        if self.run * math.prod(count for count, _ in self.dims) != self.entry.size_bytes:
            return True
        inner = self.run
        for count, step in self.dims:
            if step < inner:
                return True
            inner += (count - 1) * step
        return False


def memory_of(entries: Iterable[Entry]) -> dict[str, Memory]:
    """The memory of each tensor of a file, by its key. Bytes count once, for the first tensor that
    has them, and so do the elements of expanded tensors."""
    found: dict[str, Memory] = {}
    views: dict[str, list[_View]] = {}
    for entry in entries:
        if entry.kind != "tensor":
            continue
        elements = math.prod(entry.shape) if entry.size_bytes else 0
        found[entry.key] = Memory("", elements, entry.size_bytes)
        if isinstance(entry.place, FileBytes) and entry.size_bytes:
            views.setdefault(str(entry.place.file), []).append(_view(entry, entry.place))
    visits = 0
    for of_file in views.values():
        for group in _groups(of_file):
            visits += _count(group, found, MAX_VISITS - visits)
    return found


def _view(entry: Entry, place: FileBytes) -> _View:
    """The bytes of an entry, in as few runs as there are."""
    item = place.dtype.itemsize
    run, dims = item, []
    if place.stride is None:
        run = entry.size_bytes
    else:
        steps = zip(place.stride, entry.shape, strict=True)
        for step, count in sorted((step * item, count) for step, count in steps):
            if step <= run:
                run += (count - 1) * step
            elif dims and step % dims[-1][1] == 0 and step <= math.prod(dims[-1]):
                inner, least = dims[-1]
                dims[-1] = inner + (count - 1) * step // least, least
            elif count > 1:
                dims.append((count, step))
    return _View(entry, place.offset + place.start * item, run, tuple(dims))


def _groups(views: list[_View]) -> Iterator[list[_View]]:
    """Those of which one begins before another has ended, in the order of the file's keys."""
    numbered = sorted(enumerate(views), key=lambda each: each[1].start)
    group: list[tuple[int, _View]] = []
    end = 0
    for number, view in numbered:
        if group and view.start >= end:
            yield [each for _, each in sorted(group, key=lambda each: each[0])]
            group = []
        group.append((number, view))
        end = max(end, view.end)
    if group:
        yield [each for _, each in sorted(group, key=lambda each: each[0])]


def _count(group: list[_View], found: dict[str, Memory], left: int) -> int:
    """Add the memory of a group to what was found; returns how many cells were looked at. A cell
    has the number of the first tensor that lies in it."""
    if len(group) == 1 and not group[0].is_overlapping:
        return 0
    start, end = min(view.start for view in group), max(view.end for view in group)
    cell = math.gcd(*(n for v in group for n in (v.start - start, v.run, *(s for _, s in v.dims))))
    visits = sum(
        (view.end - view.start) // cell + math.prod(count for count, _ in view.dims)
        for view in group
    )
    is_strided = any(view.dims for view in group)
    is_grid = is_strided and visits <= left and end - start <= MAX_CELLS * cell
    if is_grid:
        edges = range(start, end + 1, cell)
        widths = np.broadcast_to(cell, (len(edges) - 1,))
        bounds = [((view.start - start) // cell, (view.end - start) // cell) for view in group]
    else:
        edges = np.unique([edge for view in group for edge in (view.start, view.end)])
        bounds = _bounds(group, edges)
        if is_long := sum(last - first for first, last in bounds) > left:
            edges = np.append(edges[:: -(-len(edges) * len(group) // max(1, left))], end)
            bounds = _bounds(group, edges)
        widths = np.diff(edges)
        is_strided = is_strided or is_long
        visits = sum(last - first for first, last in bounds)
    owners = np.zeros(len(widths), np.int32)
    for number, (view, (first, last)) in enumerate(zip(group, bounds, strict=True), 1):
        entry = view.entry
        cells = part = owners[first:last]
        if is_grid:
            shape = *(count for count, _ in view.dims), view.run // cell
            strides = *(step // cell * part.itemsize for _, step in view.dims), part.itemsize
            cells = as_strided(part, shape, strides)
        owner = int(cells.min(initial=number, where=cells > 0))
        np.copyto(cells, number, where=cells == 0)
        added = min(int(widths[first:last][part == number].sum()), entry.size_bytes)
        shares = group[owner - 1].entry.key if owner < number else ""
        item = entry.size_bytes // math.prod(entry.shape)
        found[entry.key] = Memory(shares, -(-added // item), added, is_grid or not is_strided)
    return visits


def _bounds(group: list[_View], edges: np.ndarray) -> list[tuple[int, int]]:
    """The first cell of each view, and the one after its last: cells lie between the edges."""
    first = np.searchsorted(edges, [view.start for view in group], "right") - 1
    last = np.searchsorted(edges, [view.end for view in group], "left")
    return list(zip(first.tolist(), last.tolist(), strict=True))
