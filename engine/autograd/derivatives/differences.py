"""Derivatives by central differences, and how far they and autograd's are from the exact ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .functions import FunctionAtPoint, Kind, Mode, derivative, shortened, units, vjp_of


def step_of(dtype: torch.dtype) -> float:
    """The step h of a central difference that balances rounding and truncation: the cube root of
    the dtype's epsilon (Press et al., Numerical Recipes, section 5.7)."""
    return torch.finfo(dtype).eps ** (1 / 3)


def numerical(
    at: FunctionAtPoint, kind: Kind, vector: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """The derivative by central differences, (f(x + h) - f(x - h)) / 2h, in the inputs' dtype.

    A Hessian and an HVP are differences of autograd's gradient. The shapes are those of
    `derivative`. `eps` is h; the default is `step_of(dtype)`.
    """
    h = step_of(at.x.dtype) if eps is None else eps
    f = _gradient_of(at) if kind in ("hessian", "hvp") else at.of
    if kind in ("jvp", "hvp"):
        assert vector is not None
        return central_difference(f, at.x, vector.to(at.x.dtype), h)
    columns = [central_difference(f, at.x, unit, h).reshape(-1) for unit in units(at.x)]
    matrix = torch.stack(columns, dim=1) if columns else at.x.new_zeros(0, 0)
    if kind == "vjp":
        assert vector is not None
        return (vector.to(matrix.dtype).reshape(-1) @ matrix).reshape(at.x.shape)
    return matrix


def numerical_entry(
    at: FunctionAtPoint, kind: Kind, row: int, column: int, eps: float | None = None
) -> float:
    """One entry of the matrix of `numerical`, from two calls of the function."""
    h = step_of(at.x.dtype) if eps is None else eps
    unit = torch.zeros(at.x.numel(), dtype=at.x.dtype, device=at.x.device)
    unit[column] = 1
    f = _gradient_of(at) if kind == "hessian" else at.of
    return float(central_difference(f, at.x, unit.reshape(at.x.shape), h).reshape(-1)[row])


def _gradient_of(at: FunctionAtPoint) -> Callable[[Tensor], Tensor]:
    def gradient(x: Tensor) -> Tensor:
        with at.context, torch.enable_grad():
            x = x.detach().requires_grad_()
            return vjp_of(at.of(x).sum(), x, None)

    return gradient


@torch.no_grad()
def central_difference(f: Callable[[Tensor], Tensor], x: Tensor, along: Tensor, h: float) -> Tensor:
    """(f(x + h·along) - f(x - h·along)) / 2h"""
    return (f(x + h * along) - f(x - h * along)) / (2 * h)


@dataclass(frozen=True)
class Comparison:
    """How far a derivative, computed in one `way`, is from the analytic one in float64: the largest
    absolute difference, and this relative to the largest entry. Both are NaN after an error, which
    `note` gives."""

    way: str
    max_difference: float
    relative: float
    note: str = ""


def compare(
    at: FunctionAtPoint, kind: Kind, vector: Tensor | None, mode: Mode
) -> Iterator[Comparison | None]:
    """Compare three ways with the analytic derivative in float64, which comes first, as None."""
    doubles = at.to(torch.float64)
    try:
        truth = derivative(doubles, kind, vector, mode).values
    except Exception as error:  # the user's function may not work in this precision
        yield Comparison("analytic, float64", math.nan, math.nan, shortened(str(error)))
        return
    yield None
    singles = at.to(torch.float32)
    ways: tuple[tuple[str, Callable[[], Tensor]], ...] = (
        ("analytic, float32", lambda: derivative(singles, kind, vector, mode).values),
        ("numeric, float64", lambda: numerical(doubles, kind, vector)),
        ("numeric, float32", lambda: numerical(singles, kind, vector)),
    )
    for way, compute in ways:
        try:
            yield _against(way, compute(), truth)
        except Exception as error:
            yield Comparison(way, math.nan, math.nan, shortened(str(error)))


def _against(way: str, values: Tensor, truth: Tensor) -> Comparison:
    if truth.numel() == 0:
        return Comparison(way, 0.0, 0.0)
    difference = float((values.double() - truth).abs().max())
    scale = float(truth.abs().max())
    return Comparison(way, difference, difference / scale if scale else difference)
