"""Statistics and histogram of a tensor in one pass, read in pieces."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from ...protocol import Histogram
from ..counting import Counts
from ..readable import readable

CHUNK = 1 << 18
"""Elements counted at once: 2 MiB as float64."""
FINE_BINS = 2048
SHOWN_BINS = 64


class Statistics(Counts):
    """Statistics of any tensor. `advance` reads one piece at a time; then the fields are complete.

    `magnitudes`: the tensor is complex, and its numbers' magnitudes are counted.
    """

    def __init__(self, t: Tensor) -> None:
        super().__init__()
        self.total = t.numel()
        self.done = 0
        self.magnitudes = t.is_complex()
        self._bins = _Bins(not (t.is_floating_point() or t.is_complex() or t.is_quantized))
        self._pieces = pieces(t)

    def advance(self) -> bool:
        """Count one more piece; returns False if there is none."""
        piece = next(self._pieces, None)
        if piece is None:
            return False
        with torch.no_grad():
            dense = readable(piece).dense
            if dense is None:  # the tensor's memory has been released since: stop counting
                self.total = self.done
                return False
            x = (dense.abs() if dense.is_complex() else dense).double().reshape(-1)
            finite = self.count(x)
            if finite is not None:
                self._bins.add(*finite)
        self.done += piece.numel()
        return True

    def add_zeros(self, count: int) -> None:
        """Count `count` zeros, which a sparse tensor does not store."""
        self.total += count
        self.done += count
        if count:
            self.count_zeros(count)
            self._bins.add(torch.zeros(1, dtype=torch.float64), 0.0, 0.0, weight=count)

    def histogram(self) -> Histogram | None:
        if self.minimum is None or self.maximum is None:
            return None
        return self._bins.histogram(self.minimum, self.maximum)


class _Bins:
    """A histogram of a range that is not known beforehand. When a number lies outside, neighbouring
    bins are joined: the same number of bins covers twice the range."""

    def __init__(self, whole_numbers: bool) -> None:
        self._whole_numbers = whole_numbers
        self._low = 0.0
        self._width = 0.0
        self._counts = torch.zeros(FINE_BINS, dtype=torch.int64)

    def add(self, x: Tensor, low: float, high: float, weight: int = 1) -> None:
        """Count numbers, of which `low` is the least and `high` the largest."""
        if not self._width:
            self._start(low, high)
        while not (self._low <= low and high < self._low + FINE_BINS * self._width):
            self._widen(upwards=low >= self._low)
            if not math.isfinite(self._low + FINE_BINS * self._width):
                return  # the range is larger than float64 can hold
        at = (x - self._low).div_(self._width).to(torch.int64)
        at.clamp_(0, FINE_BINS - 1)  # rounding and overflow may lead beyond both ends
        self._counts += torch.bincount(at, minlength=FINE_BINS) * weight

    def histogram(self, minimum: float, maximum: float) -> Histogram | None:
        """The bins from minimum to maximum, joined into at most SHOWN_BINS + 1."""
        if not math.isfinite(self._low + FINE_BINS * self._width):
            return None
        first = math.floor((minimum - self._low) / self._width)
        last = min(FINE_BINS - 1, math.floor((maximum - self._low) / self._width))
        joined = -(-(last - first + 1) // SHOWN_BINS)
        shown = self._counts[first : last + 1]
        shown = torch.nn.functional.pad(shown, (0, -len(shown) % joined)).view(-1, joined).sum(1)
        return Histogram(
            low=self._low + first * self._width,
            width=self._width * joined,
            counts=tuple(shown.tolist()),
        )

    def _start(self, low: float, high: float) -> None:
        """Bins that cover the first piece. Their width is a power of two: joining them is exact."""
        if self._whole_numbers:
            self._width = 1.0
        else:
            spread = high / FINE_BINS - low / FINE_BINS or max(abs(low), 1.0) / FINE_BINS**2
            self._width = 2.0 ** max(math.ceil(math.log2(spread)), -1000)
        self._low = math.floor(low / self._width) * self._width

    def _widen(self, upwards: bool) -> None:
        half = FINE_BINS // 2
        joined = self._counts.view(half, 2).sum(1)
        self._counts = torch.zeros_like(self._counts)
        if upwards:
            self._counts[:half] = joined
        else:
            self._counts[half:] = joined
            self._low -= FINE_BINS * self._width
        self._width *= 2


def pieces(t: Tensor) -> Iterator[Tensor]:
    """Views of `t` of at most CHUNK elements, in the order of memory."""
    with torch.no_grad(), torch.DisableTorchFunctionSubclass():
        t = t.detach()
    waiting = [t]
    while waiting:
        part = waiting.pop()
        if part.numel() <= CHUNK:
            if part.numel():
                yield part
            continue
        with torch.no_grad(), torch.DisableTorchFunctionSubclass():
            strides = part.stride()
            dim = max((d for d in range(part.ndim) if part.shape[d] > 1), key=lambda d: strides[d])
            per_entry = part.numel() // part.shape[dim]
            length = max(1, CHUNK // per_entry)
            if per_entry > CHUNK:  # split this dimension in two, later the others
                length = max(1, part.shape[dim] // 2)
            waiting += reversed(part.split(length, dim))
