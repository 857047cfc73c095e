"""The optimizer's first step on one element of a parameter."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ...project.catalogue import optimizers
from ...project.document import ParamValue
from ...project.updates import options_of, update_rule
from ...protocol import ParameterUpdate
from ..components.optimizers import make_optimizer


def first_update(
    parameter: Tensor, gradient: Tensor, optimizer: str, params: Mapping[str, ParamValue]
) -> ParameterUpdate | None:
    """Let torch's own optimizer step once, on a copy of the element with the largest gradient.

    None for a parameter without elements, or of complex numbers, and for an optimizer that does
    not go element by element. Raises LabError for an unknown optimizer or bad options.
    """
    if gradient.is_sparse:
        gradient = gradient.to_dense()
    if not parameter.numel() or parameter.is_complex():
        return None
    if optimizer in optimizers() and not (rule := update_rule(optimizer, params).first):
        return None
    with torch.no_grad():
        index = largest(gradient)
        old, grad = parameter[index].detach().clone(), gradient[index].detach().clone()
    element = nn.Parameter(old.clone())
    element.grad = grad
    make_optimizer(optimizer, params, [element]).step()
    numbers = {
        name: float(value)
        for name, value in options_of(optimizer, params).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return ParameterUpdate(
        optimizer=optimizer.removeprefix("optim."),
        index=index,
        rule=rule,
        numbers={**numbers, "old": float(old), "grad": float(grad)},
        new=float(element.detach()),
    )


def largest(values: Tensor) -> tuple[int, ...]:
    """The index of the element that is farthest from 0. There must be one; NaN is none."""
    place = int(values.abs().nan_to_num(nan=-1.0).argmax())
    return tuple(int(i) for i in torch.unravel_index(torch.tensor(place), values.shape))
