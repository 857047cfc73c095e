"""Where a strided tensor's elements lie in its storage: arithmetic on shape, strides and offset.

No tensor is read here. A cell is a part of the storage as large as one element.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...protocol import Contiguity

SEARCH_STEPS = 100_000
"""The steps after which the search for a cell's elements is given up; hardly any strides need as
many."""

Index = tuple[int, ...]


@dataclass(frozen=True)
class Footprint:
    """A tensor's sizes, strides and offset, in elements as torch gives them."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def end(self) -> int:
        """One past the last cell; `offset` if there are no elements."""
        if self.numel == 0:
            return self.offset
        steps = zip(self.shape, self.strides, strict=True)
        return self.offset + sum((n - 1) * s for n, s in steps) + 1

    def cell_of(self, index: Index) -> int:
        """offset + i·stride + j·stride + … Raises IndexError for an index outside the shape."""
        if len(index) != len(self.shape) or not all(
            0 <= i < n for i, n in zip(index, self.shape, strict=True)
        ):
            raise IndexError(f"{index} is not an element of a tensor of shape {self.shape}")
        return self.offset + sum(i * s for i, s in zip(index, self.strides, strict=True))

    def elements_at(self, cell: int) -> Iterator[Index]:
        """All elements in a cell, in order of their index along the largest stride.

        A gap has none; a cell has several where a stride is 0 or windows overlap. The search ends
        after SEARCH_STEPS, which only overlapping strides of four or more dimensions reach.
        """
        expanded = [k for k, s in enumerate(self.strides) if s == 0]
        for index in self._first_elements_at(cell):
            for free in _indices([self.shape[k] for k in expanded]):
                for k, i in zip(expanded, free, strict=True):
                    index[k] = i
                yield tuple(index)

    def count_at(self, cell: int, most: int) -> int:
        """The number of elements in a cell, or `most` if there are more."""
        repeats = math.prod(n for n, s in zip(self.shape, self.strides, strict=True) if s == 0)
        found = sum(1 for _ in itertools.islice(self._first_elements_at(cell), most))
        return min(found * repeats, most)

    def _first_elements_at(self, cell: int) -> Iterator[list[int]]:
        """The cell's elements with index 0 along every stride of 0. Yields one list, which it
        changes each time."""
        if not self.offset <= cell < self.end:
            return
        dims = [k for k, s in enumerate(self.strides) if s]
        dims.sort(key=lambda k: -self.strides[k])
        index = [0] * len(self.shape)
        for _ in self._sums(dims, cell - self.offset, index, itertools.count()):
            yield index

    def _sums(
        self, dims: list[int], rest: int, index: list[int], steps: Iterator[int]
    ) -> Iterator[None]:
        """Set `index` to each one whose steps along `dims` (largest stride first) sum to `rest`."""
        if not dims:
            yield
            return
        k, others = dims[0], dims[1:]
        stride, size = self.strides[k], self.shape[k]
        reach = sum((self.shape[d] - 1) * self.strides[d] for d in others)
        divisor = math.gcd(*(self.strides[d] for d in others))  # 0 when there are none
        lowest = max(0, -(-(rest - reach) // stride))
        for i in range(lowest, min(size - 1, rest // stride) + 1):
            if next(steps) > SEARCH_STEPS:
                return
            left = rest - i * stride
            if left % divisor == 0 if divisor else left == 0:
                index[k] = i
                yield from self._sums(others, left, index, steps)

    def position_of(self, index: Index) -> int:
        """An element's number in C order, row by row, whatever the strides are."""
        position = 0
        for i, n in zip(index, self.shape, strict=True):
            position = position * n + i
        return position


def _indices(shape: list[int]) -> Iterator[Index]:
    """All indices of a shape, in C order. itertools.product would make a tuple of each range."""
    if not shape:
        yield ()
        return
    for i in range(shape[0]):
        for rest in _indices(shape[1:]):
            yield (i, *rest)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of `.contiguous()`: each is the product of the sizes to its right.

    Sizes of 0 count as 1, as in torch.
    """
    strides: list[int] = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def explain_contiguity(print_: Footprint, itemsize: int) -> Contiguity:
    """Why a tensor is contiguous or not, by the rule of `Tensor.is_contiguous`: each stride must be
    the product of the sizes to its right. The stride of a dimension of size 1 does not matter."""
    expected = contiguous_strides(print_.shape)
    wrong = [
        k
        for k in reversed(range(len(print_.shape)))
        if print_.shape[k] != 1 and print_.strides[k] != expected[k]
    ]
    if not wrong or print_.numel == 0:
        return Contiguity(
            is_contiguous=True,
            expected=expected,
            text=(
                "Contiguous: reading the elements row by row walks the storage cell by cell."
                if print_.numel
                else "Contiguous: without elements there is nothing to be out of order."
            ),
        )
    k = wrong[0]
    stride, size = print_.strides[k], print_.shape[k]
    if stride == 0:
        why = (
            f"the {size} elements of dim {k} all read the same cell (stride 0, as expand makes it)"
        )
    elif k == len(print_.shape) - 1:
        why = (
            f"neighbours in dim {k} are {stride} cells apart; row by row they would be side by side"
        )
    else:
        inner = " × ".join(str(n) for n in print_.shape[k + 1 :])
        why = (
            f"dim {k} has stride {stride}; row by row it would be {expected[k]}, the number of"
            f" elements to its right ({inner})"
        )
    copied = print_.numel * itemsize
    return Contiguity(
        is_contiguous=False,
        breaking_dim=k,
        expected=expected,
        copy_bytes=copied,
        text=f"Not contiguous: {why}.",
    )
