"""How much two tensors differ."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Whether shape, dtype and every bit are equal. NaNs are equal when their bits are."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    raw = [t.detach().cpu().contiguous().reshape(-1).view(torch.uint8) for t in (a, b)]
    return torch.equal(raw[0], raw[1])


def max_difference(a: Tensor, b: Tensor) -> float:
    """The largest absolute difference of two tensors of one shape. Equal infinities and two NaNs
    differ by 0.0, and so do empty tensors; NaN or infinity differs infinitely from any other."""
    wide = torch.complex128 if a.is_complex() or b.is_complex() else torch.float64
    x, y = (t.detach().to_dense().cpu().to(wide).reshape(-1) for t in (a, b))
    if x.numel() == 0:
        return 0.0
    difference = (x - y).abs()
    difference[(x == y) | (x.isnan() & y.isnan())] = 0.0
    return float(difference.nan_to_num(nan=math.inf, posinf=math.inf).max())
