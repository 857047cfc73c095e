"""The histogram of a tensor's elements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...tensors.readable import as_floats

BINS = 64
EXACT = 1 << 24
"""torch.histc counts in float32, which is exact up to this number."""


class Counts(NamedTuple):
    """`counts` of BINS equal bins from the lowest to the highest finite element; if all are equal,
    the first bin has them. `others` are not finite."""

    low: float
    high: float
    others: int
    counts: np.ndarray


def histogram(values: Tensor) -> Counts | None:
    """None for a tensor without finite real elements."""
    if values.is_complex() or not values.numel():
        return None
    flat = values.detach().flatten()
    is_on_apple = flat.device.type == "mps"  # which has no float64
    flat = flat.float() if is_on_apple else as_floats(flat)
    others = 0
    low, high = map(float, torch.aminmax(flat))
    if not np.isfinite([low, high]).all():
        finite = flat[flat.isfinite()]
        others = flat.numel() - finite.numel()
        if not finite.numel():
            return None
        flat = finite
        low, high = map(float, torch.aminmax(flat))
    if low == high:
        counts = np.zeros(BINS, np.int64)
        counts[0] = flat.numel()
    else:
        with _any_algorithm():
            parts = [torch.histc(part, BINS, low, high) for part in flat.split(EXACT)]
        counts = torch.stack([part.long() for part in parts]).sum(0).cpu().numpy()
    return Counts(low, high, others, counts)


@contextmanager
def _any_algorithm() -> Iterator[None]:
    """In this context torch is not in deterministic mode, in which it refuses torch.histc on CUDA:
    that adds in any order, but whole numbers up to EXACT have the same sum in each."""
    is_on = torch.are_deterministic_algorithms_enabled()
    warns_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(False)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(is_on, warn_only=warns_only)
