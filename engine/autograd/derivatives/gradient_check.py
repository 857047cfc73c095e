"""gradcheck and gradgradcheck: torch's verdict, and the entries that differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError

from ...system.errors import LabError
from .differences import central_difference
from .functions import MAX_ENTRIES, units, vjp_of


@dataclass(frozen=True)
class GradcheckResult:
    """torch's verdict with its whole message, and the two Jacobians for each pair of an output and
    an input."""

    ok: bool
    message: str
    pairs: tuple[Pair, ...] = ()


@dataclass(frozen=True)
class Pair:
    """The Jacobian of output number `output` by input number `input`, analytic and numeric: rows
    are the output's elements, columns the input's. `worst` is the (row, column) that exceeds the
    tolerance most, None if none does."""

    input: int
    output: int
    output_shape: tuple[int, ...]
    analytic: Tensor
    numeric: Tensor
    worst: tuple[int, int] | None


def gradcheck(
    function: Callable[..., Any],
    inputs: tuple[Tensor, ...],
    second: bool = False,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
) -> GradcheckResult:
    """torch.autograd.gradcheck, or gradgradcheck if `second`, and the Jacobians that it compares.

    The verdict and the message are torch's. The matrices are computed here in the same way, for
    all outputs and all inputs that require grad. If `second`, they are those of the gradient of
    the sum of the outputs.
    """
    _check_outputs(function(*_fresh(inputs)), second)
    check = torch.autograd.gradgradcheck if second else torch.autograd.gradcheck
    try:
        check(function, inputs, eps=eps, atol=atol, rtol=rtol)
        ok, message = True, ""
    except GradcheckError as error:
        ok, message = False, str(error)
    except RuntimeError as error:  # a missing derivative, or a backward that raises
        return GradcheckResult(False, str(error))
    checked = _first_gradient(function, inputs) if second else function
    return GradcheckResult(ok, message, tuple(_pairs(checked, inputs, eps, atol, rtol)))


def _first_gradient(
    function: Callable[..., Any], inputs: tuple[Tensor, ...]
) -> Callable[..., tuple[Tensor, ...]]:
    def gradient(*args: Tensor) -> tuple[Tensor, ...]:
        given = [a for a, own in zip(args, inputs, strict=True) if _differentiable(own)]
        outs = [o for o in _outputs(function(*args)) if o.requires_grad]
        grads = torch.autograd.grad(
            outs, given, [torch.ones_like(o) for o in outs], create_graph=True, allow_unused=True
        )
        return tuple(
            torch.zeros_like(a) if g is None else g for a, g in zip(given, grads, strict=True)
        )

    return gradient


def _pairs(
    function: Callable[..., Any], inputs: tuple[Tensor, ...], eps: float, atol: float, rtol: float
) -> Iterator[Pair]:
    given = _fresh(inputs)
    outs = _outputs(function(*given))
    for output, out in enumerate(outs):
        for argument, x in enumerate(given):
            if not _differentiable(x) or out.numel() * x.numel() > MAX_ENTRIES:
                continue
            analytic = torch.stack([vjp_of(out, x, unit) for unit in units(out)])
            analytic = analytic.reshape(out.numel(), x.numel()).detach()

            def of(value: Tensor, output: int = output, argument: int = argument) -> Tensor:
                with torch.enable_grad():  # a second check differentiates in here
                    args = [g.detach().requires_grad_(g.requires_grad) for g in given]
                    args[argument] = value.detach().requires_grad_()
                    return _outputs(function(*args))[output].detach()

            columns = [
                central_difference(of, x.detach(), unit, eps).reshape(-1) for unit in units(x)
            ]
            numeric = torch.stack(columns, dim=1)
            excess = (analytic - numeric).abs() - (atol + rtol * numeric.abs())
            place = int(excess.nan_to_num(nan=math.inf).argmax())
            exceeds = not bool(excess.reshape(-1)[place] <= 0)
            worst = divmod(place, x.numel()) if exceeds else None
            yield Pair(argument, output, tuple(out.shape), analytic, numeric, worst)


def _fresh(inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(t.detach().clone().requires_grad_(t.requires_grad) for t in inputs)


def _check_outputs(result: object, second: bool) -> None:
    """Raises LabError for results that torch's checks do not take."""
    outs = result if isinstance(result, tuple | list) else (result,)
    other = next((type(out).__name__ for out in outs if not isinstance(out, Tensor)), None)
    if other is not None:
        what = f"{other} among its results" if outs is result else other
        raise LabError(
            f"The function returns {what}; a check takes one tensor or several.",
            hint="Return only those to check: lambda x: f(x)[0].",
        )
    if second and not any(isinstance(out, Tensor) and out.requires_grad for out in outs):
        raise LabError(
            "No graph leads from the result back to the inputs, so there is no backward to check.",
            hint="Look for detach(), item() or numpy() in the function.",
        )


def _differentiable(t: object) -> bool:
    return isinstance(t, Tensor) and t.requires_grad and t.is_floating_point()


def _outputs(result: object) -> tuple[Tensor, ...]:
    found = result if isinstance(result, tuple | list) else (result,)
    return tuple(t for t in found if isinstance(t, Tensor) and t.is_floating_point())
