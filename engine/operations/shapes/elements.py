"""The elements of a tensor that a view has room for, as text: a window."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from ...protocol import Cells
from ...tensors.texts import cell_text
from .operands import Operand

ROWS = 8
COLUMNS = 10
TILES = 6
"""A window shows the last two dimensions as rows and columns, all others as tiles of these."""
MAX_TRIED = 1 << 16
"""Operations on tensors of up to this many elements are tried on the tensors themselves."""


def window_sizes(shape: Sequence[int], tiles: int = TILES) -> tuple[int, ...]:
    """The number of elements of each dimension in a window."""
    sizes: list[int] = []
    tiles_left = tiles
    for place, size in enumerate(reversed(shape)):
        if place < 2:
            fitting = min(size, ROWS if place else COLUMNS)
        else:
            fitting = min(size, tiles_left)
            tiles_left //= max(fitting, 1)
        sizes.append(fitting)
    return tuple(reversed(sizes))


def window(shape: Sequence[int], focus: Sequence[int | None] = (), tiles: int = TILES) -> Cells:
    """The window with element `focus`, without texts. Windows are like pages: the window stays the
    same while the focus moves in it. For None, or without a focus, a dimension's window is its
    first.
    """
    size = window_sizes(shape, tiles)
    focus = focus or (None,) * len(shape)
    start = tuple(
        0 if at is None or fitting == 0 else min(at // fitting * fitting, whole - fitting)
        for at, fitting, whole in zip(focus, size, shape, strict=True)
    )
    return Cells(tuple(shape), start, size)


def slices(cells: Cells) -> tuple[slice, ...]:
    return tuple(
        slice(start, start + size) for start, size in zip(cells.start, cells.size, strict=True)
    )


def filled(cells: Cells, dense: torch.Tensor | None) -> Cells:
    """The window with its elements from `dense`, the whole strided tensor."""
    if dense is None:
        return cells
    return with_texts(cells, dense[slices(cells)])


def cells_of(operand: Operand, focus: Sequence[int | None] = ()) -> Cells:
    """The operand's window with element `focus`, with texts if the operand has numbers."""
    return filled(window(operand.shape, focus), operand.dense)


def with_texts(cells: Cells, shown: torch.Tensor) -> Cells:
    """The window with its elements from `shown`, a tensor of the window's size."""
    return Cells(cells.shape, cells.start, cells.size, texts_of(shown))


def texts_of(t: torch.Tensor) -> tuple[str, ...]:
    """The texts of all elements of a small strided tensor, in C order."""
    return tuple(cell_text(item) for item in t.reshape(-1).tolist())


def first_of(t: torch.Tensor, count: int) -> torch.Tensor:
    """The first `count` elements in C order, without a copy of the others."""
    places = torch.arange(min(count, t.numel()))
    return t[torch.unravel_index(places, t.shape)] if len(places) else t.reshape(-1)


def trial(operand: Operand) -> torch.Tensor:
    """A tensor on which an operation is tried for an operand. Up to MAX_TRIED elements it is the
    operand's tensor, or zeros for a typed shape; otherwise a meta tensor. Errors on meta have other
    words, and dtypes without a kernel are not refused."""
    unread = operand.tensor is not None and operand.dense is None
    if math.prod(operand.shape) > MAX_TRIED or unread:
        return torch.empty(operand.shape, dtype=operand.dtype, device="meta")
    if operand.tensor is not None:
        return operand.tensor
    return torch.zeros(operand.shape)


def computable(t: torch.Tensor) -> torch.Tensor:
    """`t`, or a copy in a wider dtype if torch has few kernels for its own (float8, uint16 to
    uint64)."""
    if t.is_floating_point() and t.element_size() == 1:
        return t.float()
    return t.to(torch.int64) if t.dtype in (torch.uint16, torch.uint32, torch.uint64) else t


def element_or_first(element: Sequence[int] | None, shape: Sequence[int]) -> tuple[int, ...] | None:
    """`element` if it is in `shape`, else the first element; None if there is none."""
    if 0 in shape:
        return None
    if (
        element is not None
        and len(element) == len(shape)
        and all(0 <= at < size for at, size in zip(element, shape, strict=True))
    ):
        return tuple(element)
    return (0,) * len(shape)


def text_at(cells: Cells | None, element: Sequence[int] | None) -> str:
    """The text of an element in the window; "" without one."""
    if cells is None or element is None or not cells.texts:
        return ""
    flat = 0
    for at, start, size in zip(element, cells.start, cells.size, strict=True):
        flat = flat * size + at - start
    return cells.texts[flat]
