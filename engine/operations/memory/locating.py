"""The cell of an element, and all elements of all tensors and arrays in a cell."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from torch import Tensor

from ...protocol import CellReader, LocationSnapshot
from ...system.errors import LabError, sendable
from ...tensors.reach import Held, Reached
from .footprint import Footprint, Index
from .storage import Placement, placement_of

MAX_ELEMENTS = 32
"""Elements of one tensor that are listed for a cell."""
MAX_READERS = 64


def locate(
    expression: str,
    t: Tensor,
    others: Reached,
    index: Index | None = None,
    cell: int | None = None,
) -> LocationSnapshot:
    """The cell of an element or the elements of a cell, and which of `others` share a byte with it.
    Raises LabError for an index or cell outside the tensor, and for a tensor without a storage."""
    placement = placement_of(t)
    if isinstance(placement, str):
        raise LabError(f"`{expression}` has no cells to show. {placement}")
    if index is not None:
        try:
            cell = placement.footprint.cell_of(index)
        except IndexError as error:
            raise LabError(f"`{expression}`: {error}") from None
    if cell is None or not 0 <= cell < placement.cells:
        raise LabError(
            f"The storage under `{expression}` has {placement.cells:,} cells, not {cell}."
        )
    mine = _reader(expression, t, placement, cell)
    found = [] if mine is None else [mine]
    notes = [others.cut] if others.cut else []
    for name, other in others.held.items():
        reader = None if name == expression else _reader(name, other, placement, cell)
        if reader is not None and len(found) == MAX_READERS:
            notes.append(f"More than {MAX_READERS} tensors read it: these are the first.")
            break
        if reader is not None:
            found.append(reader)
    if index is None and mine is not None:
        index = mine.elements[0]
    return LocationSnapshot(
        expression=expression, index=index, cell=cell, readers=tuple(found), note=" ".join(notes)
    )


def _reader(name: str, value: Held, owner: Placement, cell: int) -> CellReader | None:
    """The first elements of `value` that share a byte with a cell of `owner`; None without any."""
    is_tensor = isinstance(value, Tensor)
    reading = _of_tensor(value, owner, cell) if is_tensor else _of_array(value, owner, cell)
    elements = tuple(itertools.islice(reading, MAX_ELEMENTS + 1))
    if not elements:
        return None
    return CellReader(
        expression=sendable(name),
        elements=elements[:MAX_ELEMENTS],
        more=len(elements) > MAX_ELEMENTS,
        kind="tensor" if is_tensor else "numpy",
    )


def _of_tensor(t: Tensor, owner: Placement, cell: int) -> Iterator[Index]:
    reader = placement_of(t)
    if isinstance(reader, str):
        return
    between = 0
    if reader.storage is not owner.storage:
        if not (owner.address and reader.address and reader.device == owner.device):
            return
        between = owner.address - reader.address
    first_byte = between + cell * owner.element_bytes
    last_byte = first_byte + owner.element_bytes - 1
    for own_cell in range(
        first_byte // reader.element_bytes, last_byte // reader.element_bytes + 1
    ):
        yield from reader.footprint.elements_at(own_cell)


def _of_array(array: np.ndarray, owner: Placement, cell: int) -> Iterator[Index]:
    """NumPy's strides are in bytes and may be negative: such a dimension is counted backwards."""
    if not owner.address or owner.device.type != "cpu":
        return
    first_byte = owner.address + cell * owner.element_bytes
    steps = tuple(zip(array.shape, array.strides, strict=True))
    lowest = array.ctypes.data + sum((n - 1) * step for n, step in steps if step < 0)
    in_bytes = Footprint(array.shape, tuple(abs(step) for step in array.strides), lowest)
    for start in range(first_byte - array.itemsize + 1, first_byte + owner.element_bytes):
        for index in in_bytes.elements_at(start):
            yield tuple(
                n - 1 - i if step < 0 else i for i, (n, step) in zip(index, steps, strict=True)
            )
