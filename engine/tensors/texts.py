"""Elements as text: for each dtype the shortest text that is read back as the same element."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

_BY_NUMPY = (torch.float64, torch.float32, torch.float16)


def texts(t: Tensor) -> list[str]:
    """The elements of a plain CPU tensor (as `readable` gives it), in order."""
    t = t.detach().reshape(-1)
    if t.is_complex():
        parts = torch.view_as_real(t.resolve_conj())
        real, imaginary = (texts(part) for part in parts.unbind(-1))
        return [
            f"{a}{b if b[0] == '-' else '+' + b}j" for a, b in zip(real, imaginary, strict=True)
        ]
    if not t.is_floating_point():
        return [str(value) for value in t.tolist()]
    if t.dtype in _BY_NUMPY:
        return [_tidy(str(value)) for value in t.numpy()]
    return _shortest(t)


def cell_text(value: object) -> str:
    """A number with four significant digits (integers with all), to fit in a cell."""
    if isinstance(value, complex):
        return f"{value.real:.3g}{value.imag:+.3g}j"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _shortest(t: Tensor) -> list[str]:
    """The texts for dtypes that numpy does not have: digits are added until each text is read back
    right."""
    numbers = t.double().tolist()
    found: list[str] = []
    for digits in range(1, 18):
        tried = [f"{number:.{digits}g}" for number in numbers]
        back = torch.tensor([float(text) for text in tried], dtype=torch.float64).to(t.dtype)
        same = (back.double() == t.double()).tolist()
        if not found:
            found = [""] * len(tried)
        for at, (text, right) in enumerate(zip(tried, same, strict=True)):
            if not found[at] and (right or math.isnan(numbers[at])):
                found[at] = _tidy(str(float(text)))
        if all(found):
            break
    return found


def _tidy(text: str) -> str:
    return text.removesuffix(".0")


def exact(number: float) -> str:
    """A finite binary fraction in decimal with all its digits; `nan` and `inf` as words."""
    if not math.isfinite(number):
        return str(number)
    return np.format_float_positional(number, unique=False, trim="-", precision=1100)
