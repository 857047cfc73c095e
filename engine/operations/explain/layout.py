"""The layout of a tensor in its storage: sizes, strides and offset, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..memory.footprint import contiguous_strides

Ints = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """Element (i, j, ...) is element `offset + i * stride[0] + j * stride[1] + ...` of the storage.
    Layouts with the same `memory` number share a storage."""

    shape: Ints
    stride: Ints
    offset: int
    dtype: torch.dtype
    device: str = "cpu"
    memory: int = 0

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.numel * self.dtype.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are in C order, without gaps. The stride of a dimension of size 1
        does not matter."""
        return self.numel == 0 or not self.strides_off(contiguous_strides(self.shape))

    @property
    def is_dense(self) -> bool:
        """Whether there are no gaps and no overlaps, in any order of the dimensions."""
        if self.is_contiguous:
            return True
        wanted = 1
        for stride, size in sorted(zip(self.stride, self.shape, strict=True)):
            if size > 1 and stride != wanted:
                return False
            wanted *= size
        return True

    def strides_off(self, wanted: Sequence[int]) -> list[int]:
        """The dimensions whose stride is not `wanted`, except those of size 1."""
        pairs = zip(self.shape, self.stride, wanted, strict=True)
        return [d for d, (size, stride, of) in enumerate(pairs) if size != 1 and stride != of]

    def extent(self) -> int:
        """The number of storage elements from the first to the last one that is read."""
        if self.numel == 0:
            return 0
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))


def layout_of(t: torch.Tensor, memory: int = 0) -> Layout:
    return Layout(
        shape=tuple(t.shape),
        stride=tuple(t.stride()),
        offset=int(t.storage_offset()),
        dtype=t.dtype,
        device=str(t.device),
        memory=memory,
    )


def runs_of(shape: Ints, stride: Ints) -> list[tuple[int, int]]:
    """The runs (first, last) of dimensions that can be walked as one dimension: in a run, a stride
    is the next stride times the next size (`at::detail::computeStride`). Dimensions of size 1 fit
    in any run. Each dimension of a view must lie within one run."""
    if not shape:
        return []
    runs, last, length = [], len(shape) - 1, 1
    base = stride[-1]
    for dim in reversed(range(len(shape))):
        length *= shape[dim]
        if dim == 0 or (shape[dim - 1] != 1 and stride[dim - 1] != length * base):
            runs.append((dim, last))
            if dim > 0:
                base, length, last = stride[dim - 1], 1, dim - 1
    return runs[::-1]
