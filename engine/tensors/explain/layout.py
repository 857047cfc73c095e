"""How a tensor lies in its storage: sizes, strides and offset, and what they say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

Ints = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """Element (i, j, ...) lies `offset + i * stride[0] + j * stride[1] + ...` elements into the
    storage. Layouts with one `memory` number share a storage."""

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
        """In C order, without gaps; dimensions of one element have any stride."""
        return self.numel == 0 or not self.strides_off(contiguous_stride(self.shape))

    @property
    def is_dense(self) -> bool:
        """Without gaps and overlaps, in any order of its dimensions."""
        if self.is_contiguous:
            return True
        wanted = 1
        for stride, size in sorted(zip(self.stride, self.shape, strict=True)):
            if size > 1 and stride != wanted:
                return False
            wanted *= size
        return True

    def strides_off(self, wanted: Sequence[int]) -> list[int]:
        """The dimensions of more than one element whose stride is another than `wanted`."""
        pairs = zip(self.shape, self.stride, wanted, strict=True)
        return [d for d, (size, stride, of) in enumerate(pairs) if size != 1 and stride != of]

    def extent(self) -> int:
        """Elements from the first to the last one that is read."""
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


def contiguous_stride(shape: Sequence[int]) -> Ints:
    """Strides of a tensor in C order: the product of all sizes to the right."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def runs_of(shape: Ints, stride: Ints) -> list[tuple[int, int]]:
    """Neighbouring dimensions that can be walked as one, as (first, last): a stride is the next
    one's stride times its size (`at::detail::computeStride`). Dimensions of one element belong to
    any run; each dimension of a view of another shape must lie within one."""
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
