"""The optimizer of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import nn

from ...project import catalogue
from ...project.document import ParamValue
from ...system.errors import LabError
from ...system.private_torch import (
    global_optimizer_post_hooks,
    global_optimizer_pre_hooks,
    is_profiler_enabled,
)
from .arguments import checked

_SAME_BITS = (torch.optim.Adam, torch.optim.AdamW)
_SMALL_BYTES = 1 << 20
"""About what a processor's cache holds. With more bytes, one operation on all tensors after the
other takes longer than all operations on one tensor after the other."""


class Group(NamedTuple):
    """Parameters, and the options of the optimizer that are their own."""

    options: Mapping[str, ParamValue]
    parameters: list[nn.Parameter]


def make_optimizer(
    kind: str, params: Mapping[str, ParamValue], parameters: Iterable[nn.Parameter]
) -> torch.optim.Optimizer:
    """Return the optimizer of catalogue kind `kind` (`"optim.Adam"`) over the `parameters` that
    learn. Raises LabError as `make_grouped`."""
    learnable = [parameter for parameter in parameters if parameter.requires_grad]
    return make_grouped(kind, params, [Group({}, learnable)])


def make_grouped(
    kind: str, params: Mapping[str, ParamValue], groups: Sequence[Group]
) -> torch.optim.Optimizer:
    """Return the optimizer of catalogue kind `kind` over groups of parameters.

    Arguments that neither a group nor `params` has keep torch's defaults. Raises LabError for an
    unknown optimizer, a bad parameter, or a model with nothing to learn.
    """
    kinds = catalogue.optimizers()
    if kind not in kinds:
        raise LabError(
            f"There is no optimizer {kind!r}.", hint=f"Choose one of {', '.join(kinds)}."
        )
    if not any(group.parameters for group in groups):
        raise LabError(
            "The model has no parameters to learn.",
            hint="Add a block that has some, for example Linear.",
        )
    arguments = checked(kind, kinds[kind], params)
    each: list = [
        {"params": group.parameters, **checked(kind, kinds[kind], group.options)}
        for group in groups
    ]
    if len(groups) == 1 and not groups[0].options:
        each = groups[0].parameters
    try:
        return getattr(torch.optim, kind.removeprefix("optim."))(each, **arguments)
    except ValueError as error:  # torch itself checks combinations of values
        raise LabError(f"{kind}: {error}", hint="Change the optimizer's parameters.") from error


def update_together(optimizer: torch.optim.Optimizer) -> None:
    """Let an optimizer of few and small parameters on the CPU take them together, operation by
    operation (`foreach`). The bits are the same, and there are fewer calls from Python."""
    groups = optimizer.param_groups
    parameters = [parameter for group in groups for parameter in group["params"]]
    is_small = sum(parameter.nbytes for parameter in parameters) <= _SMALL_BYTES
    usual = all(p.dtype == torch.float32 and p.device.type == "cpu" for p in parameters)
    if type(optimizer) in _SAME_BITS and is_small and usual:
        for group in groups:
            group["foreach"] = True


def step(optimizer: torch.optim.Optimizer) -> None:
    """`optimizer.step()`. Where neither hooks nor torch's profiler nor a scheduler want to know of
    it, they are not told: that takes a fifth of a small model's step."""
    hooks = (
        global_optimizer_pre_hooks,
        global_optimizer_post_hooks,
        optimizer._optimizer_step_pre_hooks,
        optimizer._optimizer_step_post_hooks,
    )
    plain = getattr(type(optimizer).step, "__wrapped__", None)
    if plain is None or any(hooks) or "step" in vars(optimizer) or is_profiler_enabled():
        optimizer.step()
    else:
        plain(optimizer)
