"""Arrays that are mapped from a file: only what is indexed is read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class MappedArray:
    """An array that is as it stands in a file, from byte `offset` on; with `columns`, the first of
    its last dimension only. A process of a worker maps it anew."""

    path: Path
    offset: int
    dtype: np.dtype
    whole_shape: tuple[int, ...]
    is_fortran: bool = False
    columns: int | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "array"}

    @property
    def shape(self) -> tuple[int, ...]:
        *first, last = self.whole_shape
        return (*first, last if self.columns is None else self.columns)

    @property
    def ndim(self) -> int:
        return len(self.whole_shape)

    @cached_property
    def array(self) -> np.ndarray:
        order = "F" if self.is_fortran else "C"
        mapped = np.memmap(self.path, self.dtype, "r", self.offset, self.whole_shape, order)
        return mapped if self.columns is None else mapped[..., : self.columns]

    def __getitem__(self, key: Any) -> np.ndarray:
        return np.array(self.array[key])


@dataclass(frozen=True, eq=False)
class ArrayStore:
    """The samples of arrays, one after the other, as `as_floats`. Images of uint8 are float32 from
    0 to 1."""

    parts: tuple[np.ndarray | MappedArray, ...]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def _is_image(self) -> bool:
        return is_image(self.parts[0])

    @property
    def sample_shape(self) -> tuple[int, ...]:
        shape = self.parts[0].shape[1:]
        return (1, *shape) if self._is_image and len(shape) == 2 else tuple(shape) or (1,)

    def read(self, rows: np.ndarray) -> np.ndarray:
        dtype = np.result_type(*(as_floats(np.empty(0, part.dtype)) for part in self.parts))
        found, start = np.empty((len(rows), *self.sample_shape), dtype), 0
        for part in self.parts:
            here = (rows >= start) & (rows < start + len(part))
            if here.any():
                block = part[rows[here] - start]
                block = as_images(block) if self._is_image else block
                found[here] = block.reshape(len(block), *self.sample_shape)
            start += len(part)
        return found


def is_image(array: np.ndarray | MappedArray) -> bool:
    return array.dtype == np.uint8 and array.ndim > 2


def as_floats(numbers: np.ndarray) -> np.ndarray:
    """As float32 if that has all numbers of the dtype, else as float64."""
    is_narrow = np.can_cast(numbers.dtype, np.float32)
    return numbers.astype(np.float32 if is_narrow else np.float64, copy=False)


def as_images(pixels: np.ndarray) -> np.ndarray:
    """uint8 (N, H, W) or (N, C, H, W) as float32 (N, C, H, W) from 0 to 1."""
    images = pixels.astype(np.float32)
    images /= 255
    return images[:, None] if images.ndim == 3 else images
