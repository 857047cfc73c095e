"""The cell of an element: offset plus index times stride, as a number and in words."""

from __future__ import annotations

from engine.protocol import StorageSnapshot

Index = tuple[int, ...]


def has_element(snapshot: StorageSnapshot, index: Index) -> bool:
    """Whether the tensor has an element of this index."""
    return len(index) == len(snapshot.shape) and all(
        0 <= i < n for i, n in zip(index, snapshot.shape, strict=True)
    )


def cell_of(snapshot: StorageSnapshot, index: Index) -> int:
    """The number of the cell that an element reads: offset + i·stride + j·stride + …"""
    steps = (i * s for i, s in zip(index, snapshot.strides, strict=True))
    return snapshot.offset + sum(steps)


def sum_terms(snapshot: StorageSnapshot, index: Index) -> tuple[str, ...]:
    """Index times stride of each dimension, as text: `("1·4", "2·1")`."""
    return tuple(f"{i}·{s}" for i, s in zip(index, snapshot.strides, strict=True))


def sum_text(snapshot: StorageSnapshot, index: Index) -> str:
    """The whole sum as text: `offset 4 + 1·4 + 2·1 = 10`."""
    parts = (f"offset {snapshot.offset}", *sum_terms(snapshot, index))
    return f"{' + '.join(parts)} = {cell_of(snapshot, index)}"


def index_of_position(shape: tuple[int, ...], position: int) -> Index:
    """The index of the element number `position`, counted row by row from 0."""
    index: list[int] = []
    for n in reversed(shape):
        position, i = divmod(position, max(n, 1))
        index.append(i)
    return tuple(reversed(index))


def element_name(expression: str, index: Index) -> str:
    """An element as Python code (`x[1, 2]`); for a scalar, the tensor's own expression."""
    return f"{expression}[{', '.join(map(str, index))}]" if index else expression


def neighbours(snapshot: StorageSnapshot, index: Index) -> tuple[tuple[int, int, int], ...]:
    """For each dimension of size > 1: (dimension, cell of the element, cell of the next element
    along the dimension). The last element of a dimension gives the step that leads to it."""
    steps: list[tuple[int, int, int]] = []
    here = cell_of(snapshot, index)
    for dim, (i, n, stride) in enumerate(zip(index, snapshot.shape, snapshot.strides, strict=True)):
        if n > 1:
            start = here if i + 1 < n else here - stride
            steps.append((dim, start, start + stride))
    return tuple(steps)
