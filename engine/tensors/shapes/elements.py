"""A few elements of a tensor as text: the window of it that a view has room for."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from ...protocol import Cells
from .operands import Operand

ROWS = 8
COLUMNS = 10
TILES = 6
MAX_TRIED = 1 << 16
"""A window shows the last two dimensions as rows and columns, all others as tiles of these."""


def window_sizes(shape: Sequence[int], tiles: int = TILES) -> tuple[int, ...]:
    """How many elements of each dimension fit."""
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
    """The window, without texts, that `focus` lies in; windows lie side by side like pages, so
    that nothing moves while the focus stays in one. None (or no focus) is the dimension's start.
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
    """The window with the elements of `dense`, a strided tensor of the window's whole shape."""
    if dense is None:
        return cells
    return with_texts(cells, dense[slices(cells)])


def cells_of(operand: Operand, focus: Sequence[int | None] = ()) -> Cells:
    """The operand's window that `focus` lies in, with its elements where it has numbers."""
    return filled(window(operand.shape, focus), operand.dense)


def with_texts(cells: Cells, shown: torch.Tensor) -> Cells:
    """The window with the elements of `shown`, which has the window's own size."""
    return Cells(cells.shape, cells.start, cells.size, texts_of(shown))


def texts_of(t: torch.Tensor) -> tuple[str, ...]:
    """All elements of a small strided tensor, in C order."""
    return tuple(cell_text(item) for item in t.reshape(-1).tolist())


def first_of(t: torch.Tensor, count: int) -> torch.Tensor:
    """The first elements in C order, without a copy of all the others."""
    places = torch.arange(min(count, t.numel()))
    return t[torch.unravel_index(places, t.shape)] if len(places) else t.reshape(-1)


def cell_text(item: bool | int | float | complex) -> str:
    """An element with four significant digits, integers whole."""
    if isinstance(item, complex):
        return f"{item.real:.3g}{item.imag:+.3g}j"
    if isinstance(item, float):
        return f"{item:.4g}"
    return str(item)


def trial(operand: Operand) -> torch.Tensor:
    """What stands for an operand when torch is asked what it makes of it: the tensor itself up to
    MAX_TRIED elements, a shape's zeros, else one without data. Meta has words of its own for
    errors, and does not know which dtypes have no kernel."""
    unread = operand.tensor is not None and operand.dense is None
    if math.prod(operand.shape) > MAX_TRIED or unread:
        return torch.empty(operand.shape, dtype=operand.dtype, device="meta")
    if operand.tensor is not None:
        return operand.tensor
    return torch.zeros(operand.shape)


def computable(t: torch.Tensor) -> torch.Tensor:
    """`t`, or a wider copy where torch has few kernels for its dtype (float8, uint16 to 64)."""
    if t.is_floating_point() and t.element_size() == 1:
        return t.float()
    return t.to(torch.int64) if t.dtype in (torch.uint16, torch.uint32, torch.uint64) else t


def element_or_first(element: Sequence[int] | None, shape: Sequence[int]) -> tuple[int, ...] | None:
    """`element` if it lies in `shape`, else the first one; None when there is none."""
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
    """The text of an element in the window; empty where there is none."""
    if cells is None or element is None or not cells.texts:
        return ""
    flat = 0
    for at, start, size in zip(element, cells.start, cells.size, strict=True):
        flat = flat * size + at - start
    return cells.texts[flat]
