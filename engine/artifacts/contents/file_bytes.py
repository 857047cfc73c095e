"""Tensors whose numbers lie plainly in a file."""

from __future__ import annotations

import math
import mmap
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch
from torch import Tensor

from ...system.errors import LabError

COPIED_BYTES = 16 * 2**20
"""The most bytes of a tensor that are copied into memory; a larger tensor is mapped, so that parts
which are not looked at are not read."""
MAX_DIMS = 64


@dataclass(frozen=True, slots=True)
class FileBytes:
    """`size_bytes` of a file from `offset` on are a storage of `dtype`. The tensor begins at its
    element `start`, and has `stride` (None: one element after the other). `swapped`: the numbers
    have the other byte order. Its numbers are the conjugates of those in the file where it
    `is_conjugate`, and the negatives where it `is_negative`."""

    file: Path
    offset: int
    size_bytes: int
    dtype: torch.dtype
    start: int = 0
    stride: tuple[int, ...] | None = None
    swapped: bool = False
    is_conjugate: bool = False
    is_negative: bool = False

    def read(self, shape: tuple[int, ...]) -> Tensor:
        found = self._stored(shape)
        if self.is_conjugate or self.is_negative:
            require_memory(2 * found.numel() * self.dtype.itemsize, "A tensor")
        if self.is_conjugate:
            found = torch.conj_physical(found)
        try:
            return torch.neg(found) if self.is_negative else found
        except RuntimeError as error:
            raise LabError(f"{self.file.name} has negatives of numbers that have none.") from error

    def _stored(self, shape: tuple[int, ...]) -> Tensor:
        if not self.size_bytes:
            return torch.empty(shape, dtype=self.dtype)
        count = self.size_bytes // self.dtype.itemsize
        flat = self._flat(count)
        if self.swapped:
            flat = byteswapped(flat)
        if self.dtype == torch.bool:
            flat = flat.view(torch.uint8) != 0
        if self.stride is None:
            return flat[: math.prod(shape)].view(shape)
        return flat.as_strided(shape, self.stride, self.start)

    def _flat(self, count: int) -> Tensor:
        try:
            with self.file.open("rb") as file:
                if self.size_bytes <= COPIED_BYTES:
                    file.seek(self.offset)
                    data = bytearray(file.read(self.size_bytes))
                    if len(data) < self.size_bytes:
                        raise _cut_off(self.file)
                    return torch.frombuffer(data, dtype=self.dtype, count=count)
                if file.seek(0, 2) < self.offset + self.size_bytes:
                    raise _cut_off(self.file)
                before = self.offset % mmap.ALLOCATIONGRANULARITY
                mapped = mmap.mmap(
                    file.fileno(),
                    before + self.size_bytes,
                    access=mmap.ACCESS_COPY,  # what is written stays in memory
                    offset=self.offset - before,
                )
                return torch.frombuffer(mapped, dtype=self.dtype, count=count, offset=before)
        except OSError as error:
            raise LabError(
                f"{self.file.name} cannot be read: {error.strerror or error}.",
                hint="Was it moved or deleted? Open it again.",
            ) from error


def byteswapped(flat: Tensor) -> Tensor:
    """A copy with the bytes of each number turned round."""
    parts = 2 if flat.is_complex() else 1
    raw = flat.view(torch.uint8).view(-1, flat.dtype.itemsize // parts)
    return raw.flip(1).reshape(-1).view(flat.dtype)


def checked_shape(key: str, shape: object) -> tuple[int, ...]:
    """The shape of a tensor. Raises LabError if it is none that torch can have."""
    is_shape = (
        isinstance(shape, list | tuple)
        and len(shape) <= MAX_DIMS
        and all(type(size) is int and 0 <= size < 2**63 for size in shape)
        and math.prod(size or 1 for size in shape) < 2**60
    )
    if not is_shape:
        raise LabError(f"The shape of {key} is none that a tensor can have.")
    return tuple(shape)  # pyright: ignore[reportArgumentType]


def check_stride(
    key: str, shape: tuple[int, ...], start: object, stride: object, elements: int
) -> tuple[int, ...]:
    """The stride of a tensor in a storage of `elements` elements. Raises LabError if it leads out
    of the storage."""
    is_stride = (
        isinstance(stride, tuple)
        and len(stride) == len(shape)
        and all(type(step) is int and 0 <= step < 2**60 for step in stride)
        and type(start) is int
        and 0 <= start < 2**60
    )
    if not is_stride:
        raise LabError(f"The strides of {key} are none that a tensor can have.")
    last = start + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))  # pyright: ignore
    if 0 not in shape and last >= elements:
        raise LabError(f"{key} reads {last + 1:,} elements of a storage that has {elements:,}.")
    return stride  # pyright: ignore[reportReturnType]


def require_memory(size_bytes: int, what: str) -> None:
    """Raises LabError if this is more than half of the memory that is free."""
    if size_bytes > psutil.virtual_memory().available // 2:
        raise LabError(
            f"{what} would take {size_bytes:,} bytes of memory, more than half of what is free.",
            hint="Save it uncompressed and in one file: then it is mapped, not copied.",
        )


def _cut_off(file: Path) -> LabError:
    return LabError(
        f"{file.name} is shorter than when it was opened.", hint="Open it again, whole."
    )
