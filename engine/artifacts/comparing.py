"""How two files differ, key by key."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from ..errors import LabError
from ..protocol import ArtifactDifference
from ..tensors.values.statistics import CHUNK
from .contents.artifact import Artifact, Entry

MAX_ELEMENTS = 2**40


def compare(first: Artifact, second: Artifact) -> Iterator[ArtifactDifference | None]:
    """The rows of the comparison, in the order of the first file; None between pieces of large
    tensors."""
    others = {entry.key: entry for entry in second.entries}
    for entry in first.entries:
        other = others.pop(entry.key, None)
        if other is None:
            yield ArtifactDifference(entry.key, "only first", _entry_text(entry))
        else:
            yield from _compared(first, entry, second, other)
    for other in others.values():
        yield ArtifactDifference(other.key, "only second", "", _entry_text(other))


def _compared(
    first: Artifact, a: Entry, second: Artifact, b: Entry
) -> Iterator[ArtifactDifference | None]:
    sides = _entry_text(a), _entry_text(b)
    if a.kind == "value" or b.kind == "value":
        same = (a.kind, a.dtype, a.text) == (b.kind, b.dtype, b.text)
        yield ArtifactDifference(a.key, "equal" if same else "different", *sides)
    elif a.shape != b.shape:
        yield ArtifactDifference(a.key, "shape", *sides)
    elif a.place is None or b.place is None or math.prod(a.shape) > MAX_ELEMENTS:
        note = a.note or b.note or "it is too large"
        yield ArtifactDifference(a.key, "unread", *sides, note=note)
    else:
        try:
            x, y = first.tensor(a.key), second.tensor(b.key)
        except LabError as error:
            yield ArtifactDifference(a.key, "unread", *sides, note=str(error))
            return
        absolute = relative = 0.0
        for one, two in _pieces(x, y):
            largest, share = _difference(one, two)
            absolute, relative = max(absolute, largest), max(relative, share)
            yield None
        verdict = "dtype" if a.dtype != b.dtype else "different" if absolute else "equal"
        yield ArtifactDifference(a.key, verdict, *sides, absolute, relative)


def _pieces(x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Both tensors in the same pieces."""
    waiting = [(x, y)]
    while waiting:
        one, two = waiting.pop()
        if one.numel() <= CHUNK:
            if one.numel():
                yield one, two
            continue
        dim = max(range(one.ndim), key=lambda d: one.shape[d])
        half = one.shape[dim] // 2
        parts = [half, one.shape[dim] - half]
        waiting += reversed(list(zip(one.split(parts, dim), two.split(parts, dim), strict=True)))


def _difference(x: Tensor, y: Tensor) -> tuple[float, float]:
    """The largest absolute and relative difference. Equal infinities and two NaNs differ by 0; NaN
    or infinity differs infinitely from any other number."""
    wide = torch.complex128 if x.is_complex() or y.is_complex() else torch.float64
    a, b = x.to(wide), y.to(wide)
    same = (a == b) | (a.isnan() & b.isnan())
    if not (x.is_floating_point() or x.is_complex() or y.is_floating_point() or y.is_complex()):
        same = x == y  # whole numbers of 64 bits do not all fit into float64
    if bool(same.all()):
        return 0.0, 0.0
    difference = (a - b).abs().masked_fill(same, 0.0).nan_to_num(math.inf, math.inf)
    share = (difference / b.abs()).masked_fill(same, 0.0).nan_to_num(math.inf, math.inf)
    # Whole numbers so large that float64 does not tell them apart differ by at least 1.
    return float(difference.max()) or 1.0, float(share.max())


def _entry_text(entry: Entry) -> str:
    if entry.kind == "value":
        return entry.text
    return f"{entry.shape} {entry.dtype}"
