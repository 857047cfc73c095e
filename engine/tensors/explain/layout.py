"""How a tensor lies in its storage, and the arithmetic torch does on that: pure integers.

The formulas are torch's own: `aten/src/ATen/TensorUtils.cpp` (view strides), `ExpandUtils.cpp`
(expand, dense strides) and `TensorIterator.cpp` (strides of element-wise results).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch

Ints = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """Element (i, j, ...) lies `offset + i * stride[0] + j * stride[1] + ...` elements into the
    storage. Layouts with one `memory` number share a storage of `storage_bytes` bytes; None is
    memory that does not exist yet. `unwritable` is empty, or why autograd refuses to write here.
    `grad` says that the tensor requires grad: it does itself, or will when the line has run.
    `conj`: complex numbers are read with the other sign of their imaginary parts. `data` reads the
    elements, for the few rules whose result depends on them (masks, indices); None: unknown."""

    shape: Ints
    stride: Ints
    offset: int
    dtype: torch.dtype
    device: str = "cpu"
    memory: int | None = None
    storage_bytes: int = 0
    unwritable: str = ""
    conj: bool = False
    grad: Literal["", "own", "derived"] = ""
    data: Callable[[], torch.Tensor] | None = field(default=None, compare=False, repr=False)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """In C order, without gaps; dimensions of one element have any stride."""
        if self.numel == 0:
            return True
        pairs = zip(self.shape, self.stride, contiguous_stride(self.shape), strict=True)
        return all(size == 1 or stride == wanted for size, stride, wanted in pairs)

    @property
    def is_dense(self) -> bool:
        """Without gaps and overlaps, in any order of its dimensions."""
        if self.is_contiguous:
            return True
        wanted = 1
        for stride, size in sorted(
            (stride, size) for stride, size in zip(self.stride, self.shape, strict=True) if size > 1
        ):
            if stride != wanted:
                return False
            wanted *= size
        return True

    @property
    def repeats(self) -> bool:
        """Several elements certainly read one cell: a stride of 0."""
        return self.numel > 0 and any(
            stride == 0 and size > 1 for size, stride in zip(self.shape, self.stride, strict=True)
        )

    @property
    def is_channels_last(self) -> bool:
        """What torch takes for channels_last: strides that grow from C over W, H to N (4-D), or
        from C over W, H, D to N (5-D)."""
        if self.ndim not in (4, 5) or self.stride[1] == 0:
            return False
        least = 0
        for dim in (1, *range(self.ndim - 1, 1, -1), 0):
            if self.shape[dim] == 0 or self.stride[dim] < least:
                return False
            if dim == 0 and least == self.stride[1]:
                return False
            least = self.stride[dim] * max(self.shape[dim], 1)
        return True

    def view(
        self, shape: Sequence[int], stride: Sequence[int], offset: int | None = None
    ) -> Layout:
        """Another layout over the same memory."""
        return replace(
            self,
            shape=tuple(shape),
            stride=tuple(stride),
            offset=self.offset if offset is None else offset,
            data=None,
        )

    def fresh(
        self,
        shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        dtype: torch.dtype | None = None,
        device: str | None = None,
    ) -> Layout:
        """A tensor in memory of its own: C-contiguous unless `stride` is given."""
        shape = self.shape if shape is None else tuple(shape)
        return Layout(
            shape=shape,
            stride=contiguous_stride(shape) if stride is None else tuple(stride),
            offset=0,
            dtype=dtype or self.dtype,
            device=device or self.device,
        )

    def extent(self) -> int:
        """Elements from the first to the last one that is read."""
        if self.numel == 0:
            return 0
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))

    def __str__(self) -> str:
        return f"shape {self.shape}, stride {self.stride}, offset {self.offset}"


def contiguous_stride(shape: Sequence[int]) -> Ints:
    """Strides of a tensor in C order: the product of all sizes to the right."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def channels_last_stride(shape: Sequence[int]) -> Ints:
    """Strides of an (N, C, *spatial) tensor whose channels lie side by side."""
    strides, step = [0] * len(shape), 1
    for dim in (1, *range(len(shape) - 1, 1, -1), 0):
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


def runs_of(shape: Ints, stride: Ints) -> list[tuple[int, int]]:
    """Neighbouring dimensions that can be walked as one, as (first, last): a stride is the next
    one's stride times its size. Dimensions of one element belong to any run."""
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


def view_stride(shape: Ints, stride: Ints, new_shape: Ints) -> Ints | None:
    """The strides with which the same cells read as `new_shape`, of as many elements; None when
    no strides do (`at::detail::computeStride`): each new dimension must lie within one run."""
    if not shape:
        return (1,) * len(new_shape)
    if math.prod(shape) == 0:
        return stride if shape == new_shape else contiguous_stride(new_shape)
    new_stride = [0] * len(new_shape)
    new_dim = len(new_shape) - 1
    for first, last in reversed(runs_of(shape, stride)):
        run_numel, base, filled = math.prod(shape[first : last + 1]), stride[last], 1
        while new_dim >= 0 and (filled < run_numel or new_shape[new_dim] == 1):
            new_stride[new_dim] = filled * base
            filled *= new_shape[new_dim]
            new_dim -= 1
        if filled != run_numel:
            return None
    return tuple(new_stride) if new_dim == -1 else None


def _fastest_first(shape: Ints, strides: Sequence[Ints]) -> list[int]:
    """Dimensions by how close together their elements lie, as the first operand that can tell
    has them; ties keep C order (TensorIterator's insertion sort with ambiguous comparisons)."""

    def order(dim0: int, dim1: int) -> int:
        for stride in strides:
            stride0, stride1 = stride[dim0], stride[dim1]
            if stride0 == 0 or stride1 == 0:
                continue
            if stride0 != stride1:
                return -1 if stride0 < stride1 else 1
            if shape[dim0] > shape[dim1]:
                return 1
        return 0

    dims = list(reversed(range(len(shape))))
    for i in range(1, len(dims)):
        moving = i
        for before in reversed(range(i)):
            comparison = order(dims[before], dims[moving])
            if comparison > 0:
                dims[before], dims[moving] = dims[moving], dims[before]
                moving = before
            elif comparison < 0:
                break
    return dims


def preserved_stride(x: Layout) -> Ints:
    """Strides of a copy with `memory_format=torch.preserve_format`: the same when `x` is dense,
    else its order of dimensions without the gaps (`infer_dense_strides`)."""
    if x.is_dense:
        return x.stride
    if x.ndim == 1:
        return (1,)
    strides, step = [0] * x.ndim, 1
    for dim in _fastest_first(x.shape, [x.stride]):
        strides[dim] = step
        step *= max(x.shape[dim], 1)
    return tuple(strides)


def broadcast_stride(x: Layout, shape: Ints) -> Ints:
    """Strides with which `x` reads as `shape`, 0 where it is stretched."""
    padding = len(shape) - x.ndim
    own = (
        0 if size == 1 and wanted != 1 else stride
        for size, stride, wanted in zip(x.shape, x.stride, shape[padding:], strict=True)
    )
    return (0,) * padding + tuple(own)


def elementwise_stride(operands: Sequence[Layout], shape: Ints) -> Ints:
    """Strides of a new tensor computed element by element from `operands`, broadcast to `shape`
    (TensorIterator): C order, unless all operands agree on another one."""
    if _one_shape(operands):
        if all(x.is_contiguous for x in operands):
            return contiguous_stride(shape)
        if all(_is_channels_last_dense(x) for x in operands):
            return channels_last_stride(shape)
        if all(x.is_dense and x.stride == operands[0].stride for x in operands):
            return operands[0].stride
    if len(shape) < 2:
        return contiguous_stride(shape)
    dims = _fastest_first(shape, [broadcast_stride(x, shape) for x in operands])
    if dims == list(reversed(range(len(shape)))):
        return contiguous_stride(shape)
    strides, step = [0] * len(shape), 1
    for dim in dims:
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


def _one_shape(operands: Sequence[Layout]) -> bool:
    return all(x.shape == operands[0].shape for x in operands)


def _is_channels_last_dense(x: Layout) -> bool:
    if x.ndim != 4:
        return False
    pairs = zip(x.shape, x.stride, channels_last_stride(x.shape), strict=True)
    return all(size == 1 or stride == wanted for size, stride, wanted in pairs)
