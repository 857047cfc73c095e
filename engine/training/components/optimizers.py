"""The optimizer of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import nn

from ...errors import LabError
from ...project import catalogue
from ...project.document import ParamValue
from .arguments import checked


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
