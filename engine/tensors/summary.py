"""Tensors as plain values that a view can show: statistics, a picture, the numbers as text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice

import torch

from ..protocol import Picture, TensorSummary, Value
from .counting import Counts
from .readable import Readable, dtype_name, readable

MAX_TEXT_ELEMENTS = 64
MAX_PICTURE_CELLS = 64 * 1024 // 4
MAX_CELLS = 24_000
"""Cells in all pictures of a snapshot together: 96 KB, so that a snapshot stays small."""
MAX_DETAILED_VALUES = 64
PIECE = 1 << 18
"""Elements whose statistics are computed at once: 2 MiB as float64, which a cache holds."""


def summarise(t: torch.Tensor) -> TensorSummary:
    """Shape, dtype and statistics of any tensor. Never raises; changes neither graph nor RNG.

    Statistics are computed in float64 over the finite elements. `std` is the sample standard
    deviation (torch.std's default, N - 1), or None below two elements; `norm` is the 2-norm. A
    complex tensor has only a norm, that of the magnitudes. `note` says why data cannot be read.
    """
    with torch.no_grad():
        return _summarise(readable(t), t)


def picture(t: torch.Tensor, max_cells: int = 4096) -> Picture | None:
    """The numbers of `t` to paint, at most `max_cells` (and 64 KiB) of them.

    A tensor of up to 2 dimensions gives a heat map (rows, columns), a vector one row. From 3-D on
    the last two dimensions are images: (N, C, H, W) gives (N * C, H, W). Of a large tensor, the
    last images are left out, and every n-th row and column is taken. Complex elements give their
    magnitudes. None when there is nothing to paint.
    """
    with torch.no_grad():
        return _picture(readable(t), min(max_cells, MAX_PICTURE_CELLS))


def value(label: str, t: torch.Tensor, max_cells: int = 4096) -> Value:
    """All that a view shows of `t`; up to 64 elements there is a `text`, as torch prints them."""
    with torch.no_grad():
        known = readable(t)
        return Value(
            label=label,
            summary=_summarise(known, t),
            picture=_picture(known, min(max_cells, MAX_PICTURE_CELLS)),
            text=_text(known),
        )


def shown_values(labelled: Sequence[tuple[str, torch.Tensor | None]]) -> tuple[Value | None, ...]:
    """The labelled tensors of one snapshot as a view shows them. Their pictures share MAX_CELLS;
    more than MAX_DETAILED_VALUES tensors have summaries only."""
    count = sum(tensor is not None for _, tensor in labelled)
    if count > MAX_DETAILED_VALUES:
        return tuple(
            None if tensor is None else Value(label, summarise(tensor))
            for label, tensor in labelled
        )
    cells = MAX_CELLS // max(1, count)
    return tuple(t if t is None else value(label, t, cells) for label, t in labelled)


def shown_groups(*groups: Mapping[str, torch.Tensor]) -> tuple[tuple[Value, ...], ...]:
    """As `shown_values`, for tensors in groups."""
    shown = iter(shown_values([pair for group in groups for pair in group.items()]))
    return tuple(tuple(v for v in islice(shown, len(group)) if v is not None) for group in groups)


def _summarise(known: Readable, t: torch.Tensor) -> TensorSummary:
    dense = known.dense
    shape = known.shape
    numel = math.prod(shape)
    if dense is not None and -1 in shape:
        numel = dense.numel()
    head = {
        "shape": shape,
        "dtype": dtype_name(known.dtype),
        "device": known.device,
        "size_bytes": max(numel, 0) * known.dtype.itemsize,
        "note": known.note,
    }
    if dense is None or numel == 0:
        return TensorSummary(**head)
    stored, times = _without_repeats(dense)
    counts = Counts()
    counts.count_zeros(numel - dense.numel())  # elements that a sparse tensor does not store
    for x in stored.reshape(-1).split(PIECE):
        counts.count((x.abs() if x.is_complex() else x).double(), times)
    is_complex = dense.is_complex()
    return TensorSummary(
        **head,
        minimum=None if is_complex else counts.minimum,
        maximum=None if is_complex else counts.maximum,
        mean=None if is_complex else counts.mean,
        std=None if is_complex else counts.std,
        norm=counts.norm,
        zeros=counts.zeros,
        nans=counts.nans,
        infs=counts.positive_infs + counts.negative_infs,
    )


def _without_repeats(dense: torch.Tensor) -> tuple[torch.Tensor, int]:
    """`dense` with each expanded dimension cut to size 1, and how often each element repeats."""
    times = 1
    for dim, (size, stride) in enumerate(zip(dense.shape, dense.stride(), strict=True)):
        if stride == 0 and size > 1:
            dense, times = dense.narrow(dim, 0, 1), times * size
    return dense, times


def _picture(known: Readable, max_cells: int) -> Picture | None:
    dense = known.dense
    if dense is None or dense.numel() == 0 or known.partial or -1 in known.shape:
        return None
    if dense.ndim < 2:
        dense = dense.reshape(1, -1)
    rows, columns = fit_rows_columns(dense.shape[-2], dense.shape[-1], max_cells)
    row_step = -(-dense.shape[-2] // rows)
    column_step = -(-dense.shape[-1] // columns)
    small = dense[..., ::row_step, ::column_step]
    if small.ndim > 2:
        small = _first_images(small, max(1, max_cells // (small.shape[-2] * small.shape[-1])))
    cells = (small.abs() if small.is_complex() else small).to(torch.float32).contiguous()
    return Picture(
        shape=tuple(cells.shape),
        data=cells.numpy().astype("<f4", copy=False).tobytes(),
        source_shape=known.shape,
        sampled=cells.numel() < dense.numel(),
    )


def _first_images(images: torch.Tensor, count: int) -> torch.Tensor:
    """The first `count` images of (..., H, W) as (N, H, W), without a copy of the others."""
    while images.ndim > 3:
        each = math.prod(images.shape[1:-2])
        needed = -(-count // each)
        images = images[0] if needed == 1 else images[:needed].flatten(0, 1)
    return images[:count]


def fit_rows_columns(rows: int, columns: int, cells: int) -> tuple[int, int]:
    """The largest (rows, columns) of at most `cells` cells; the shorter side is cut last."""
    side = max(1, math.isqrt(cells))
    if rows <= columns:
        rows = min(rows, side)
        return rows, min(columns, cells // rows)
    columns = min(columns, side)
    return min(rows, cells // columns), columns


def _text(known: Readable) -> str:
    dense = known.dense
    if dense is None or known.partial or not 0 < dense.numel() <= MAX_TEXT_ELEMENTS:
        return ""
    printed = repr(dense).removeprefix("tensor(")
    if dense.ndim == 0:
        return printed.rstrip(")").split(",")[0]
    body = printed[: printed.rindex("]") + 1]
    indent = " " * len("tensor(")
    return "\n".join(line.removeprefix(indent) for line in body.split("\n"))
