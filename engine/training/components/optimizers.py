"""The optimizer of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import nn

from ...errors import LabError
from ...project import catalogue
from ...project.document import ParamValue
from .arguments import checked


def make_optimizer(
    kind: str, params: Mapping[str, ParamValue], parameters: Iterable[nn.Parameter]
) -> torch.optim.Optimizer:
    """Return the optimizer of catalogue kind `kind` (`"optim.Adam"`) over `parameters`.

    Arguments that `params` leaves out keep torch's defaults. Raises LabError for an unknown
    optimizer, a bad parameter, or a model with nothing to learn.
    """
    kinds = catalogue.optimizers()
    if kind not in kinds:
        raise LabError(
            f"There is no optimizer {kind!r}.", hint=f"Choose one of {', '.join(kinds)}."
        )
    learnable = [parameter for parameter in parameters if parameter.requires_grad]
    if not learnable:
        raise LabError(
            "The model has no parameters to learn.",
            hint="Add a block that has some, for example Linear.",
        )
    arguments = checked(kind, kinds[kind], params)
    try:
        return getattr(torch.optim, kind.removeprefix("optim."))(learnable, **arguments)
    except ValueError as error:  # torch itself checks combinations of values
        raise LabError(f"{kind}: {error}", hint="Change the optimizer's parameters.") from error
