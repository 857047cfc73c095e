"""Makes the loss, the optimizer, the scheduler and the device of a run from their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import lr_scheduler
from torch.optim.lr_scheduler import LRScheduler

from ..errors import LabError
from ..project import catalogue
from ..project.document import ParamValue, TrainingSetup


class OneHotMSELoss(nn.MSELoss):
    """Mean squared error between a prediction and numbers of its shape, or class labels (B, ...),
    int64, for a prediction (B, C, ...).

    Labels become one-hot along dimension 1 in the prediction's dtype: 1 for the class, else 0.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        if not target.is_floating_point():
            target = F.one_hot(target, input.shape[1]).movedim(-1, 1).to(input.dtype)
        if input.shape != target.shape:  # torch would broadcast
            raise LabError(
                f"The prediction has shape {tuple(input.shape)}, the target {tuple(target.shape)}:"
                " mean squared error needs the same."
            )
        return super().forward(input, target)


def make_loss(kind: str, params: Mapping[str, ParamValue]) -> nn.Module:
    """Return the loss of catalogue kind `kind` as `loss(prediction, target) -> scalar`.

    Raises LabError for an unknown loss or a bad parameter.
    """
    makers = {"nn.CrossEntropyLoss": nn.CrossEntropyLoss, "nn.MSELoss": OneHotMSELoss}
    if kind not in makers:
        raise LabError(f"There is no loss {kind!r}.", hint=f"Choose one of {', '.join(makers)}.")
    arguments = _checked(kind, catalogue.kind(kind).params, params)
    return makers[kind](**arguments)


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
    arguments = _checked(kind, kinds[kind], params)
    try:
        return getattr(torch.optim, kind.removeprefix("optim."))(learnable, **arguments)
    except ValueError as error:  # torch itself checks combinations of values
        raise LabError(f"{kind}: {error}", hint="Change the optimizer's parameters.") from error


def make_scheduler(
    setup: TrainingSetup, optimizer: torch.optim.Optimizer, steps: int | None
) -> LRScheduler | None:
    """Return the scheduler of a set-up; None if it names none. `steps` counts the optimizer steps
    of the run; None if the data does not say.

    Raises LabError for an unknown scheduler, or bad parameters.
    """
    kind = setup.schedule.kind
    if not kind:
        return None
    arguments = scheduler_arguments(setup, steps)
    try:
        made = getattr(lr_scheduler, kind.removeprefix("lr_scheduler."))(optimizer, **arguments)
    except (TypeError, ValueError) as error:  # torch itself checks combinations of values
        raise LabError(f"{kind}: {error}", hint="Change the scheduler's parameters.") from error
    check_length(made, setup, steps)
    return made


def scheduler_arguments(setup: TrainingSetup, steps: int | None) -> dict[str, Any]:
    """The arguments of the scheduler's class, besides the optimizer. Raises as `make_scheduler`."""
    schedule = setup.schedule
    kind, kinds = schedule.kind, catalogue.schedulers()
    if kind not in kinds:
        raise LabError(
            f"There is no scheduler {kind!r}.", hint=f"Choose one of {', '.join(kinds)}."
        )
    arguments = _checked(kind, kinds[kind], schedule.params)
    if kind == "lr_scheduler.ReduceLROnPlateau" and schedule.each == "step":
        raise LabError(
            "ReduceLROnPlateau looks at the loss of an epoch: it cannot step after each step.",
            hint="Let it step after each epoch.",
        )
    if kind == "lr_scheduler.OneCycleLR" and arguments.get("total_steps") is None:
        if (times := _times(setup, steps)) is None:
            raise LabError(
                "OneCycleLR needs the number of its steps, and the data does not say how many"
                " batches it has.",
                hint="Set total_steps.",
            )
        arguments["total_steps"] = times
    if isinstance(milestones := arguments.get("milestones"), int):
        arguments["milestones"] = (milestones,)
    return arguments


def check_length(scheduler: LRScheduler, setup: TrainingSetup, steps: int | None) -> None:
    """Raise LabError if the scheduler ends before a run of so many optimizer steps."""
    ends, times = getattr(scheduler, "total_steps", None), _times(setup, steps)
    if ends is not None and times is not None and times > ends:
        raise LabError(
            f"{type(scheduler).__name__} ends after {ends:,} steps, and the run takes {times:,}.",
            hint="Set its total_steps to at least that, or leave it empty.",
        )


def _times(setup: TrainingSetup, steps: int | None) -> int | None:
    """How often the scheduler steps in a run of so many optimizer steps."""
    return setup.epochs if setup.schedule.each == "epoch" else steps


def find_device(name: str) -> torch.device:
    """Return the device `name` (`"cpu"`, `"cuda:0"`, `"mps"`).

    Raises LabError if this machine has no such device.
    """
    hint = "Choose the CPU, or a device that this machine has."
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise LabError(f"{name!r} is not a name of a device.", hint=hint) from error
    if device.type == "cpu":
        return torch.device("cpu")
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        device = torch.device("cuda", device.index or 0)
        available = device.index < count
    else:
        available = device.type == "mps" and torch.backends.mps.is_available()
    if not available:
        raise LabError(f"This machine has no device {name!r} that torch can use.", hint=hint)
    return device


def _checked(
    kind: str, schema: Iterable[catalogue.Param], params: Mapping[str, ParamValue]
) -> dict[str, ParamValue]:
    """Return `params`, each parsed by its schema. Raises LabError that names the bad parameter."""
    known = {param.name: param for param in schema}
    arguments: dict[str, ParamValue] = {}
    for name, value in params.items():
        if name not in known:
            raise LabError(f"{kind} has no parameter {name!r}.", hint=f"It has {', '.join(known)}.")
        try:
            arguments[name] = catalogue.parse_value(known[name], value)
        except ValueError as error:
            raise LabError(f"{kind}, {name}: {error}") from error
    return arguments
