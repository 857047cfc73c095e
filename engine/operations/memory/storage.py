"""The flat storage under a live tensor, and a window of its cells."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import torch
from torch import Tensor
from torch.nn.parameter import is_lazy

from ...protocol import Contiguity, StorageSnapshot
from ...recording.writes import version_of
from ...system.private_torch import is_functorch_wrapped_tensor
from ...tensors.readable import dtype_name
from ...tensors.texts import cell_text
from .footprint import Footprint, explain_contiguity

MAX_CELLS = 4096
"""Cells in one window."""
MAX_COUNTED = 99
"""The elements in one cell are counted up to this number."""

_STORED_AS = {
    torch.quint8: torch.uint8,
    torch.qint8: torch.int8,
    torch.qint32: torch.int32,
}
"""The integer dtypes in which quantised tensors are stored."""


@dataclass(frozen=True)
class Placement:
    """A tensor's storage, and the footprint of its elements in it. `note` says what is special
    about it, or why `has_data` is false."""

    storage: torch.UntypedStorage
    footprint: Footprint
    dtype: torch.dtype
    element_bytes: int
    has_data: bool
    note: str = ""

    @property
    def cells(self) -> int:
        """The number of whole elements that the storage has room for."""
        return self.storage.nbytes() // self.element_bytes

    @property
    def device(self) -> torch.device:
        return self.storage.device

    @property
    def address(self) -> int:
        """The address of the storage's first byte; 0 without memory."""
        return self.storage.data_ptr() if self.has_data else 0


def placement_of(t: Tensor) -> Placement | str:
    """The storage under a tensor, or the reason why there is none to show. Never raises for a
    tensor, reads no element, and changes no graph, version or RNG."""
    with torch.no_grad(), torch.DisableTorchFunction():
        try:
            return _ground(t)
        except Exception as error:  # an unknown layout: the error is shown
            return f"Its storage cannot be read: {error}"


def _ground(t: Tensor) -> Placement | str:
    if is_lazy(t):
        return "It is not initialised: it has no storage yet."
    if t.is_nested:
        return "A nested tensor keeps tensors of several sizes: look at one of x.unbind()."
    if is_functorch_wrapped_tensor(t):
        return "Inside a torch.func transform it has no storage of its own."
    if t.layout != torch.strided:
        return _PARTS.get(t.layout, f"The layout {t.layout} has no strides.")
    footprint = Footprint(
        tuple(int(n) for n in t.shape), tuple(int(n) for n in t.stride()), int(t.storage_offset())
    )
    storage = t.untyped_storage()
    has_data, note = True, ""
    if storage.device.type == "meta":
        has_data, note = False, "It has a shape and strides but no data (meta device)."
    elif footprint.numel and (
        storage.data_ptr() == 0 or footprint.end * t.element_size() > storage.nbytes()
    ):
        has_data, note = False, "Its storage was released or shrunk: there is no data to read."
    elif t.is_quantized:
        note = "The cells hold the stored integers q; a value is scale · (q − zero_point)."
    elif t.is_conj():
        note = "The cells are not conjugated: the tensor is when it is read (x.conj() is a view)."
    elif t.is_neg():
        note = "The cells are not negated: the tensor is when it is read."
    return Placement(storage, footprint, t.dtype, t.element_size(), has_data, note)


_PARTS = {
    torch.sparse_coo: (
        "A COO tensor has no storage of its own: it keeps two tensors. Look at them:"
        " i, v = x._indices(), x._values()"
    ),
    torch.sparse_csr: (
        "A CSR tensor has no storage of its own: it keeps three tensors. Look at them:"
        " r, c, v = x.crow_indices(), x.col_indices(), x.values()"
    ),
    torch.sparse_csc: (
        "A CSC tensor has no storage of its own: it keeps three tensors. Look at them:"
        " c, r, v = x.ccol_indices(), x.row_indices(), x.values()"
    ),
}


def read_window(expression: str, t: Tensor, first: int | None, count: int) -> StorageSnapshot:
    """`count` cells (at most MAX_CELLS) of the storage under `t` from cell `first`, or from the
    tensor's first cell if that is None. The cost depends on `count`, not on the tensor."""
    placement = placement_of(t)
    if isinstance(placement, str):
        return StorageSnapshot(
            expression=expression,
            shape=_shape(t),
            dtype=dtype_name(t.dtype),
            device=str(t.device),
            note=placement,
        )
    footprint = placement.footprint
    count = min(max(count, 1), MAX_CELLS)
    if first is None:
        first = 0 if footprint.offset < count // 2 else footprint.offset // 64 * 64
    first = min(max(first, 0), max(placement.cells - 1, 0))
    window = range(first, min(first + count, placement.cells))
    elements = [next(footprint.elements_at(cell), None) for cell in window]
    return StorageSnapshot(
        expression=expression,
        shape=footprint.shape,
        dtype=dtype_name(placement.dtype),
        device=str(t.device),
        strides=footprint.strides,
        offset=footprint.offset,
        element_bytes=placement.element_bytes,
        storage_bytes=placement.storage.nbytes(),
        cells=placement.cells,
        first=first,
        values=_texts(placement, window),
        readers=tuple(footprint.count_at(cell, MAX_COUNTED) for cell in window),
        positions=tuple(
            -1 if index is None else footprint.position_of(index) for index in elements
        ),
        contiguity=_contiguity(t, placement),
        version=version_of(t),
        note=placement.note,
    )


def _contiguity(t: Tensor, placement: Placement) -> Contiguity:
    found = explain_contiguity(placement.footprint, placement.element_bytes)
    with torch.no_grad(), torch.DisableTorchFunction():
        if found.is_contiguous or t.dim() != 4:
            return found
        if not t.is_contiguous(memory_format=torch.channels_last):
            return found
    text = f"{found.text} In channels_last order it is: the channels of a pixel lie side by side."
    return msgspec.structs.replace(found, channels_last=True, text=text)


def _texts(placement: Placement, window: range) -> tuple[str, ...]:
    if not placement.has_data or not window:
        return ("",) * len(window)
    with torch.no_grad(), torch.DisableTorchFunction():
        dtype = _STORED_AS.get(placement.dtype, placement.dtype)
        flat = torch.empty(0, dtype=dtype, device=placement.storage.device)
        cells = flat.set_(placement.storage)[window.start : window.stop]  # pyright: ignore
        try:
            return tuple(cell_text(value) for value in cells.tolist())
        except (RuntimeError, NotImplementedError, TypeError):  # packed types cannot be read
            return ("?",) * len(window)


def _shape(t: Tensor) -> tuple[int, ...]:
    try:
        return tuple(int(n) for n in t.shape)
    except Exception:  # nested tensors and lazy parameters have no shape
        return ()
