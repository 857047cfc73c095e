"""The part of a tensor that a view can show under a slice. The cost is that of the visible part.

A tensor is sliced before it is read, so that only the window is copied from the device, conjugated
or dequantised. Layouts that cannot be sliced (sparse, nested, quantised per channel) are expanded
whole, up to a limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from msgspec.structs import replace
from torch import Tensor
from torch.nn.parameter import is_lazy

from ...protocol import DimCut, Picture
from ...system.private_torch import is_functorch_wrapped_tensor
from ..readable import MAX_EXPANDED_ELEMENTS, readable, storage_fault
from ..summary import MAX_PICTURE_CELLS, fit_rows_columns, picture
from ..texts import texts
from .slices import parse_slice

MAX_CELLS = 4000
"""The most cells of one window."""


@dataclass(frozen=True)
class Cut:
    """A tensor under a slice.

    `data` has the dimensions that the slice leaves. It is the tensor itself, sliced (on any
    device, conjugated or quantised), or `readable`'s plain tensor where that cannot be sliced. It
    is None if there are no numbers; `note` says why. `present` marks the elements that exist in a
    ragged tensor.
    """

    dims: tuple[DimCut, ...]
    data: Tensor | None
    note: str = ""
    present: Tensor | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(dim.count for dim in self.dims if not dim.fixed)

    @property
    def rows(self) -> int:
        return math.prod(self.shape[:-1])

    @property
    def columns(self) -> int:
        return self.shape[-1] if self.shape else 1


def cut_tensor(t: Tensor, slice_text: str, expression: str = "x") -> Cut:
    """`t` under a typed slice. Raises LabError only for a slice that does not fit."""
    with torch.no_grad(), torch.DisableTorchFunctionSubclass():
        if _can_be_sliced(t):
            dims = parse_slice(slice_text, expression, tuple(t.shape))
            try:
                return Cut(dims, _sliced(t.detach(), dims), _note(t))
            except Exception as error:  # a dtype or subclass that cannot be indexed
                return Cut(dims, None, readable(t).note or f"unreadable: {error}")
        if not is_lazy(t) and t.is_nested:
            return _ragged(t, slice_text, expression)
        known = readable(t)
        if known.partial:
            assert known.dense is not None
            dims = parse_slice(slice_text, expression, tuple(known.dense.shape))
            return Cut(
                dims, _sliced(known.dense, dims), f"{known.note}: these are the stored numbers"
            )
        dims = parse_slice(slice_text, expression, known.shape)
        data = None if known.dense is None else _sliced(known.dense.reshape(known.shape), dims)
        return Cut(dims, data, known.note or _note(t))


def read_window(
    cut: Cut, row_start: int, row_count: int, column_start: int, column_count: int
) -> tuple[tuple[str, ...], ...]:
    """The texts of a window of the cut, clipped to its rows and columns, at most MAX_CELLS."""
    if cut.data is None:
        return ()
    first, last = _clip(row_start, row_count, cut.rows)
    left, right = _clip(column_start, column_count, cut.columns)
    if first == last or left == right:
        return ()
    last = min(last, first + max(1, MAX_CELLS // (right - left)))
    right = min(right, left + MAX_CELLS)
    with torch.no_grad(), torch.DisableTorchFunctionSubclass():
        width = right - left
        shown = _plain(rows_of(cut.data, cut.shape, first, last, left, right))
        if shown is None:
            return ()
        words = texts(shown)
        if cut.present is not None:
            there = rows_of(cut.present, cut.shape, first, last, left, right).reshape(-1).tolist()
            words = [word if is_there else "" for word, is_there in zip(words, there, strict=True)]
    return tuple(tuple(words[at : at + width]) for at in range(0, len(words), width))


def why_unreadable(cut: Cut) -> str:
    """Why the numbers cannot be read, or "". It is tried on the first number."""
    if cut.data is None:
        return cut.note
    with torch.no_grad(), torch.DisableTorchFunctionSubclass():
        fault = "" if cut.data.device.type == "meta" else storage_fault(cut.data)
        if fault:
            return fault
        known = readable(cut.data[(slice(0, 1),) * cut.data.ndim])
    return known.note if known.dense is None else ""


def window_picture(cut: Cut) -> tuple[Picture | None, tuple[int, int]]:
    """The picture of the cut, and the step between its (rows, columns).

    Rows and columns are left out before anything is read; see `summary.picture` for which.
    """
    if cut.data is None or cut.present is not None or 0 in cut.shape or why_unreadable(cut):
        return None, (1, 1)
    with torch.no_grad(), torch.DisableTorchFunctionSubclass():
        data = cut.data if cut.data.ndim > 1 else cut.data.reshape(1, -1)
        high, wide = data.shape[-2:]
        rows, columns = fit_rows_columns(high, wide, MAX_PICTURE_CELLS)
        step = (-(-high // rows), -(-wide // columns))
        small = data[..., :: step[0], :: step[1]]
        images = max(1, MAX_PICTURE_CELLS // (small.shape[-2] * small.shape[-1]))
        small = _first_images(small, images)
        plain = _plain(small)
        shown = None if plain is None else picture(plain, MAX_PICTURE_CELLS)
    if shown is None:
        return None, (1, 1)
    sampled = math.prod(shown.shape) < math.prod(cut.shape)
    return replace(shown, source_shape=cut.shape, sampled=sampled), step


def _can_be_sliced(t: Tensor) -> bool:
    return (
        not is_lazy(t)
        and not t.is_nested
        and t.layout == torch.strided
        and not is_functorch_wrapped_tensor(t)
        and not _per_channel(t)  # indexing its axis gives the channels wrong scales
    )


def _per_channel(t: Tensor) -> bool:
    return t.is_quantized and t.qscheme() != torch.per_tensor_affine


def _note(t: Tensor) -> str:
    if t.is_quantized:
        if _per_channel(t):
            return f"quantised per channel along dim {t.q_per_channel_axis()}"
        return f"quantised: (stored - {t.q_zero_point()}) · {t.q_scale():.6g}"
    if t.layout != torch.strided:
        return f"layout {str(t.layout).removeprefix('torch.')}: zeros are not stored"
    if t.is_conj():
        return "a conjugate view: the imaginary parts in memory have the other sign"
    if t.is_neg():
        return "a negative view: the numbers in memory have the other sign"
    return ""


def _sliced(t: Tensor, dims: tuple[DimCut, ...]) -> Tensor:
    index = tuple(
        dim.start
        if dim.fixed
        else slice(dim.start, max(dim.start, dim.start + (dim.count - 1) * dim.step + 1), dim.step)
        if dim.count
        else slice(0, 0)
        for dim in dims
    )
    return t[index]


def _ragged(t: Tensor, slice_text: str, expression: str) -> Cut:
    """A nested tensor, padded to one shape."""
    known = readable(t)
    if known.dense is None:
        dims = parse_slice(slice_text, expression, tuple(max(n, 0) for n in known.shape))
        return Cut(dims, None, known.note)
    read = [readable(part).dense for part in t.detach().unbind()]
    parts = [part for part in read if part is not None]  # all of them: `known` could be read
    box = tuple(max(sizes) for sizes in zip(*(part.shape for part in parts), strict=True))
    if len(parts) * math.prod(box) > MAX_EXPANDED_ELEMENTS:
        dims = parse_slice(slice_text, expression, (known.dense.numel(),))
        note = f"{known.note}; too large to be laid out: these are its elements in order"
        return Cut(dims, _sliced(known.dense, dims), note)
    padded = torch.zeros((len(parts), *box), dtype=known.dtype)
    present = torch.zeros(padded.shape, dtype=torch.bool)
    for at, part in enumerate(parts):
        inside = (at, *(slice(0, n) for n in part.shape))
        padded[inside] = part
        present[inside] = True
    dims = parse_slice(slice_text, expression, tuple(padded.shape))
    note = f"nested: {len(parts)} tensors of their own shapes; empty cells do not exist"
    return Cut(dims, _sliced(padded, dims), note, _sliced(present, dims))


def rows_of(
    t: Tensor, shape: tuple[int, ...], first: int, last: int, left: int, right: int
) -> Tensor:
    """Columns `left` to `right` of rows `first` to `last` of `t`, on its device and in its dtype.
    Rows are counted through all dimensions but the last."""
    if t.ndim < 2:
        return t.reshape(1, -1)[:, left:right]
    t = t[..., left:right]
    if t.ndim == 2:
        return t[first:last]
    high = shape[-2]
    blocks: list[Tensor] = []
    row = first
    while row < last:  # a matrix at a time
        matrix, start = divmod(row, high)
        stop = min(high, start + last - row)
        blocks.append(t[tuple(map(int, np.unravel_index(matrix, shape[:-2])))][start:stop])
        row += stop - start
    if len(blocks) == 1:
        return blocks[0]
    plain = [block for block in map(_plain, blocks) if block is not None]
    return torch.cat(plain) if plain else blocks[0]


def _first_images(t: Tensor, images: int) -> Tensor:
    """A part of `t` with at least its first images; all leading dimensions count images."""
    if t.ndim <= 3:
        return t[:images] if t.ndim == 3 else t
    per_entry = math.prod(t.shape[1:-2])
    if per_entry >= images:
        return _first_images(t[0], images)
    return t[: -(-images // per_entry)]


def _plain(t: Tensor) -> Tensor | None:
    return readable(t).dense


def _clip(start: int, count: int, size: int) -> tuple[int, int]:
    start = min(max(start, 0), size)
    return start, min(start + max(count, 0), size)
