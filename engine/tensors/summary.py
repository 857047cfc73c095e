"""Tensors as plain values that a view can show: statistics, a picture, the numbers as text."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from ..protocol import Picture, TensorSummary, Value
from .readable import Readable, dtype_name, readable

MAX_TEXT_ELEMENTS = 64
MAX_PICTURE_CELLS = 64 * 1024 // 4
PIECE = 1 << 22
"""Elements whose statistics are computed at once: 32 MiB as float64."""


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
    absent = numel - dense.numel()  # elements a sparse tensor does not store: zeros
    nans = infs = count = 0
    zeros, total, norm, ends = absent, 0.0, 0.0, [0.0] if absent else []
    for x in _pieces(stored):
        nan, inf = int(x.isnan().sum()), int(x.isinf().sum())
        nans, infs = nans + nan * times, infs + inf * times
        x = x[torch.isfinite(x)] if nan or inf else x
        zeros += int((x == 0).sum()) * times
        norm = math.hypot(norm, float(torch.linalg.vector_norm(x)) * math.sqrt(times))
        count += x.numel() * times
        if x.numel() and not x.is_complex():
            total += float(x.sum()) * times
            ends += [float(end) for end in torch.aminmax(x)]
    count += absent
    if not count:
        return TensorSummary(**head, zeros=zeros, nans=nans, infs=infs)
    if dense.is_complex():
        return TensorSummary(**head, norm=norm, zeros=zeros, nans=nans, infs=infs)
    mean = total / count
    squares = absent * mean**2
    for x in _pieces(stored):
        x = x[torch.isfinite(x)] if nans or infs else x
        squares += float(((x - mean) ** 2).sum()) * times
    return TensorSummary(
        **head,
        minimum=min(ends),
        maximum=max(ends),
        mean=mean,
        std=math.sqrt(squares / (count - 1)) if count > 1 else None,
        norm=norm,
        zeros=zeros,
        nans=nans,
        infs=infs,
    )


def _without_repeats(dense: torch.Tensor) -> tuple[torch.Tensor, int]:
    """`dense` with each expanded dimension cut to size 1, and how often each element repeats."""
    times = 1
    for dim, (size, stride) in enumerate(zip(dense.shape, dense.stride(), strict=True)):
        if stride == 0 and size > 1:
            dense, times = dense.narrow(dim, 0, 1), times * size
    return dense, times


def _pieces(dense: torch.Tensor) -> Iterator[torch.Tensor]:
    """All elements in float64 or complex128, PIECE at a time, so that the copies stay small."""
    wide = torch.complex128 if dense.is_complex() else torch.float64
    for piece in dense.reshape(-1).split(PIECE):
        yield piece.to(wide)


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
