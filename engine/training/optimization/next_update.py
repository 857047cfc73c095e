"""What the optimizer of a run would do next to a parameter, and to one element of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from copy import copy, deepcopy
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ...project.catalogue import optimizers
from ...project.updates import update_rule
from ...protocol import Element
from ...system.errors import LabError
from .first_update import largest

STAYS = "The update of a step with this gradient."


class NextUpdate(NamedTuple):
    """`whole` has the parameter and all that has its shape, by name."""

    element: Element
    whole: list[tuple[str, Tensor]]


def next_update(
    parameter: nn.Parameter,
    optimizer: Optimizer | None,
    index: tuple[int, ...] | None = None,
    scale: float = 1.0,
) -> NextUpdate:
    """Read an element of a parameter, and let a copy of its optimizer step once with copies of the
    parameter, its gradient and its state.

    `index` None: the largest gradient, or the first element. `scale` is that of a GradScaler by
    which the gradient is too large. Raises LabError for a parameter without elements or of complex
    numbers, and for an index that it does not have.
    """
    shape = tuple(parameter.shape)
    if not parameter.numel() or parameter.is_complex():
        kind = "complex numbers" if parameter.is_complex() else "no elements"
        raise LabError(f"The parameter has {kind}.", hint="Choose one of real numbers.")
    with torch.no_grad():
        gradient = None if parameter.grad is None else parameter.grad.detach() / scale
        dense = gradient.to_dense() if gradient is not None else None
        if index is None:
            index = (0,) * len(shape) if dense is None else largest(dense)
        index = _checked(index, shape)
        known: dict[str, Any] = {"index": index, "value": float(parameter[index])}
        whole = [("parameter", parameter.detach())]
        if dense is not None:
            known["gradient"] = float(dense[index])
            whole.append(("gradient", dense))
        if optimizer is None:
            note = "No optimizer has this parameter yet: train, or take one step."
            return NextUpdate(Element(**known, note=note), whole)
        group = next(g for g in optimizer.param_groups if any(p is parameter for p in g["params"]))
        known |= _rule(optimizer, group)
        whole += _states(optimizer, parameter)
        if note := _unknown(parameter, optimizer):
            element = Element(**known, state=_state(optimizer, parameter, index), note=note)
            return NextUpdate(element, whole)
        assert gradient is not None
        stepped = _stepped(parameter, gradient, optimizer, group)
        whole.append(("next update", stepped - parameter.detach()))
        after = float(stepped[index])
        element = Element(
            **known,
            state=_state(optimizer, parameter, index),
            update=after - known["value"],
            after=after,
            note=STAYS,
        )
        return NextUpdate(element, whole)


def _checked(index: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(index) != len(shape):
        raise LabError(
            f"The index has {len(index)} numbers; the shape {shape} needs {len(shape)}.",
            hint="Leave it empty for the largest gradient.",
        )
    for dim, (place, size) in enumerate(zip(index, shape, strict=True)):
        if not -size <= place < size:
            raise LabError(
                f"Index {place} is out of range: dim {dim} has {size:,} elements.",
                hint=f"Use {-size} to {size - 1}.",
            )
    return tuple(place % size for place, size in zip(index, shape, strict=True))


def _unknown(parameter: nn.Parameter, optimizer: Optimizer) -> str:
    """Why the next update is not known; empty if it is."""
    kind = type(optimizer).__name__
    if isinstance(optimizer, torch.optim.LBFGS):
        return "LBFGS runs the model several times in a step: its update is not known before."
    if not _is_torchs(optimizer):
        return f"{kind} is not of torch.optim: its step is not tried on copies."
    if not parameter.requires_grad:
        return "It is frozen: no step changes it."
    if parameter.grad is None:
        return "It has no gradient now: backward gives it one."
    return ""


def _rule(optimizer: Optimizer, group: Mapping[str, Any]) -> dict[str, Any]:
    """The optimizer's rule with the options of a group, as fields of an Element."""
    kind = type(optimizer).__name__
    if not _is_torchs(optimizer) or f"optim.{kind}" not in optimizers():
        return {"optimizer": kind}
    rule = update_rule(f"optim.{kind}", group)
    named = set(re.findall(r"\w+", f"{rule.step} {rule.words}"))
    options = {
        name: float(value)
        for name, value in group.items()
        if name in named and isinstance(value, int | float) and not isinstance(value, bool)
    }
    return {"optimizer": kind, "rule": rule.step, "words": rule.words, "options": options}


def _state(optimizer: Optimizer, parameter: Tensor, index: tuple[int, ...]) -> dict[str, float]:
    """What the optimizer keeps of an element. A number for a whole row, column or tensor counts;
    what LBFGS keeps of all parameters together does not."""
    found: dict[str, float] = {}
    if isinstance(optimizer, torch.optim.LBFGS):
        return found
    for name, value in optimizer.state.get(parameter, {}).items():
        if isinstance(value, int | float):
            found[name] = float(value)
        elif isinstance(value, Tensor) and not value.is_complex():
            try:
                found[name] = float(value.expand(parameter.shape)[index])
            except RuntimeError:  # not of the elements
                continue
    return found


def _states(optimizer: Optimizer, parameter: Tensor) -> list[tuple[str, Tensor]]:
    """What the optimizer keeps of each element."""
    if isinstance(optimizer, torch.optim.LBFGS):
        return []
    return [
        (name, value)
        for name, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor) and value.shape == parameter.shape and value.ndim
    ]


def _stepped(
    parameter: Tensor, gradient: Tensor, optimizer: Optimizer, group: Mapping[str, Any]
) -> Tensor:
    """The parameter after a step of a copy of the optimizer, which no hook sees."""
    twin = nn.Parameter(parameter.detach().clone())
    twin.grad = gradient
    state = {
        name: value.to(parameter.device) if _is_away(value) else value
        for name, value in deepcopy(optimizer.state.get(parameter, {})).items()
    }
    tried = copy(optimizer)
    tried.param_groups = [{**group, "params": [twin]}]
    tried.state = defaultdict(dict, {twin: state})
    step = type(tried).step
    if getattr(step, "hooked", False):  # torch's wrapper, which calls the hooks of all optimizers
        step = step.__wrapped__  # pyright: ignore[reportFunctionMemberAccess]
    step(tried)
    return twin.detach()


def _is_away(value: Any) -> bool:
    """Whether it stayed on a device from which the model has come home."""
    return isinstance(value, Tensor) and value.device.type != "cpu"


def _is_torchs(optimizer: Optimizer) -> bool:
    return getattr(torch.optim, type(optimizer).__name__, None) is type(optimizer)
