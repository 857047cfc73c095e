"""Samples that stay in their files: the rows of a batch are read when it is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

CHUNK_BYTES = 1 << 24
"""So many bytes of samples are read at once where all of them are looked at."""
Change = Callable[[Tensor], Tensor]


class Store(Protocol):
    """The samples of a source, as `read` gives them: float32 (len(rows), *sample_shape), or float64
    where float32 does not have all of their numbers."""

    @property
    def sample_shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...

    def read(self, rows: np.ndarray) -> np.ndarray: ...


class StoredRows:
    """These rows of a store, to be used as a tensor (N, *sample_shape) of float32 on the CPU is:
    what is indexed is read. Each sample that is read goes through the `changes`, functions of a
    batch, and is made float32 last."""

    dtype, device = torch.float32, torch.device("cpu")

    def __init__(self, store: Store, rows: np.ndarray, changes: Sequence[Change] = ()) -> None:
        self._store, self._rows, self._changes = store, rows, tuple(changes)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), *self._store.sample_shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Of the tensor that it stands for."""
        return 4 * int(np.prod(self.shape, dtype=np.int64))

    def size(self, dim: int) -> int:
        return self.shape[dim]

    def is_floating_point(self) -> bool:
        return True

    def index_select(self, dim: int, rows: Tensor) -> Tensor:
        assert dim == 0
        return self._read(self._rows[rows.numpy()])

    def __getitem__(self, key: Any) -> Tensor:
        """One sample, or those of a slice or of row numbers."""
        if isinstance(key, Tensor):
            return self.index_select(0, key)
        if isinstance(key, slice):
            return self._read(self._rows[key])
        return self._read(self._rows[[key]])[0]

    def split(self, size: int) -> Iterator[Tensor]:
        return (self[start : start + size] for start in range(0, len(self), size))

    def chunks(self) -> Iterator[Tensor]:
        """All samples, CHUNK_BYTES of them at once, before they are made float32."""
        size = _rows_of_chunk(self)
        starts = range(0, len(self), size)
        return (self._changed(self._rows[start : start + size]) for start in starts)

    def taken(self, rows: np.ndarray) -> StoredRows:
        """These of its rows."""
        return StoredRows(self._store, self._rows[rows], self._changes)

    def changed(self, change: Change) -> StoredRows:
        return StoredRows(self._store, self._rows, (*self._changes, change))

    def _read(self, rows: np.ndarray) -> Tensor:
        return self._changed(rows).float()

    def _changed(self, rows: np.ndarray) -> Tensor:
        x = torch.from_numpy(self._store.read(rows))
        for change in self._changes:
            x = change(x)
        return x


@lru_cache(maxsize=2)  # it reads all of it
def figures_of(x: StoredRows) -> tuple[Tensor, Tensor]:
    """As `channel_figures`."""
    return channel_figures(x)


def channel_figures(x: Tensor | StoredRows) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each channel of samples (N, C, ...), float64 (1, C, 1, ...).
    They are counted from the first number on, as in `preparing.scale_of`."""
    dims = [dim for dim in range(x.ndim) if dim != 1]
    count, first, mean, squares = 0, torch.zeros(()), torch.zeros(()), torch.zeros(())
    for chunk in x.chunks() if isinstance(x, StoredRows) else x.split(_rows_of_chunk(x)):
        if not count:
            first = chunk[(slice(1), slice(None), *[slice(1)] * (x.ndim - 2))].double()
        part = chunk.double() - first
        own, size = part.mean(dims, keepdim=True), part.numel() // part.shape[1]
        squares = squares + (part - own).square().sum(dims, keepdim=True)
        squares = squares + (own - mean).square() * (count * size / (count + size))
        mean = mean + (own - mean) * (size / (count + size))
        count += size
    return first + mean, (squares / count).sqrt()


@lru_cache(maxsize=2)  # it reads all of it
def limits_of(x: StoredRows) -> tuple[Tensor, Tensor]:
    """The least and the greatest value of each element of a sample."""
    low, high = torch.tensor(torch.inf), torch.tensor(-torch.inf)
    for chunk in map(Tensor.float, x.chunks()):
        low, high = torch.minimum(low, chunk.amin(0)), torch.maximum(high, chunk.amax(0))
    return low, high


def _rows_of_chunk(x: Tensor | StoredRows) -> int:
    return max(1, CHUNK_BYTES * len(x) // max(1, x.nbytes))
