"""Arrays of NumPy: .npy, and .npz, an archive of them. Arrays of objects are pickles: refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from ...system.errors import LabError
from ...tensors.readable import dtype_name
from ..contents.archive import Archive, Record
from ..contents.artifact import Artifact, Entry, damaged, with_own_keys
from ..contents.file_bytes import FileBytes, byteswapped, checked_shape, require_memory

_HEAD_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class Compressed:
    """An array in a compressed record of an archive: it is read whole."""

    archive: Archive
    record: Record
    skip: int
    dtype: torch.dtype
    swapped: bool
    stride: tuple[int, ...]

    def read(self, shape: tuple[int, ...]) -> Tensor:
        require_memory(2 * self.record.size_bytes, self.record.name)
        data = self.archive.read(self.record, self.record.size_bytes)[self.skip :]
        if not data:
            return torch.empty(shape, dtype=self.dtype)
        flat = torch.frombuffer(bytearray(data), dtype=self.dtype)
        if self.swapped:
            flat = byteswapped(flat)
        return flat.as_strided(shape, self.stride)


@dataclass(frozen=True)
class _Header:
    shape: tuple[int, ...]
    dtype: np.dtype
    stride: tuple[int, ...]
    size: int
    swapped: bool

    @property
    def size_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def torch_dtype(self) -> torch.dtype | None:
        """None for what torch has no numbers for: text, dates, records."""
        found = getattr(torch, self.dtype.newbyteorder("=").name, None)
        return found if isinstance(found, torch.dtype) else None


def open_npy(path: Path) -> Artifact:
    """The index of one array. Raises LabError."""
    with path.open("rb") as file:
        header = _header(path.name, file.read(_HEAD_BYTES))
        if file.seek(0, 2) < header.size + header.size_bytes:
            raise damaged(path.name, "it is shorter than its header says")
    kind = header.torch_dtype
    place = None
    if kind is not None:
        place = FileBytes(
            path, header.size, header.size_bytes, kind, 0, header.stride, header.swapped
        )
    entry = _entry(path.stem, header, place, header.size)
    return Artifact(path, "numpy", "NumPy array", with_own_keys([entry]))


def open_npz(path: Path, archive: Archive) -> Artifact:
    """The index of an archive of arrays. Raises LabError."""
    entries = []
    for record in archive.records.values():
        header = _header(f"{record.name} in {path.name}", archive.head(record, _HEAD_BYTES))
        if header.size + header.size_bytes != record.size_bytes:
            raise damaged(path.name, f"{record.name} has another size than its header says")
        kind, start, place = header.torch_dtype, None, None
        if not record.compressed:
            start = archive.start_of(record) + header.size
        if kind is not None and start is not None:
            place = FileBytes(
                path, start, header.size_bytes, kind, 0, header.stride, header.swapped
            )
        elif kind is not None:
            place = Compressed(archive, record, header.size, kind, header.swapped, header.stride)
        entries.append(_entry(record.name.removesuffix(".npy"), header, place, start))
    return Artifact(path, "numpy", "archive of NumPy arrays", with_own_keys(entries))


def _header(name: str, head: bytes) -> _Header:
    """The header of an array, from the first bytes of its file."""
    file: BinaryIO = BytesIO(head)
    try:
        version = np.lib.format.read_magic(file)
        read: Any = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read is None:
            raise ValueError(f"version {version} of the format")
        shape, fortran, dtype = read(file)
    except Exception as error:  # what is in the header goes through numpy and ast
        raise damaged(name, f"its header is not that of an array ({str(error)[:100]})") from error
    if dtype.hasobject:
        raise LabError(
            f"{name} was refused: its elements are Python objects, a pickle that could run any"
            " code. Nothing of it was run.",
            hint="Ask its author for arrays of numbers: np.save(path, x, allow_pickle=False).",
        )
    shape = checked_shape(name, shape)
    ordered = tuple(reversed(shape)) if fortran else shape
    stride = tuple(math.prod(ordered[place + 1 :]) for place in range(len(ordered)))
    stride = tuple(reversed(stride)) if fortran else stride
    return _Header(shape, dtype, stride, file.tell(), not dtype.isnative)


def _entry(
    key: str, header: _Header, place: FileBytes | Compressed | None, offset: int | None
) -> Entry:
    kind = header.torch_dtype
    name = str(header.dtype) if kind is None else dtype_name(kind)
    note = "" if kind is not None else f"torch has no dtype for {header.dtype}"
    if header.swapped and kind is not None:
        note = "big-endian in the file; turned round when it is read"
    return Entry(key, "tensor", header.shape, name, header.size_bytes, place, offset, note=note)
