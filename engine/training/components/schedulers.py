"""The scheduler of a run."""

from __future__ import annotations

from typing import Any

import torch
from torch.optim import lr_scheduler
from torch.optim.lr_scheduler import LRScheduler

from ...errors import LabError
from ...project import catalogue
from ...project.document import Schedule, TrainingSetup
from .arguments import checked
from .expressions import function_of_step


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
        made = _made(kind, optimizer, arguments, setup.schedule)
    except (TypeError, ValueError) as error:  # torch itself checks combinations of values
        raise LabError(f"{kind}: {error}", hint="Change the scheduler's parameters.") from error
    check_length(made, setup, steps)
    return made


def _made(
    kind: str, optimizer: torch.optim.Optimizer, arguments: dict[str, Any], schedule: Schedule
) -> LRScheduler:
    if expression := arguments.get("lr_lambda"):
        arguments = {**arguments, "lr_lambda": function_of_step(expression)}
    cls, warmup = getattr(lr_scheduler, kind.removeprefix("lr_scheduler.")), schedule.warmup
    if not warmup:
        return cls(optimizer, **arguments)
    if kind in _WITHOUT_WARMUP:
        raise LabError(
            f"{kind.partition('.')[2]} cannot have a warm-up before it.",
            hint="Set warmup to 0, or choose another schedule.",
        )
    rise = lr_scheduler.LinearLR(optimizer, schedule.warmup_from, total_iters=warmup)
    return lr_scheduler.SequentialLR(optimizer, [rise, cls(optimizer, **arguments)], [warmup])


_WITHOUT_WARMUP = (
    "lr_scheduler.OneCycleLR",
    "lr_scheduler.CyclicLR",
    "lr_scheduler.ReduceLROnPlateau",
)
"""The schedulers that cannot follow a warm-up: the first two have a rise of their own; the third
needs a loss, which SequentialLR does not pass on."""


def scheduler_arguments(setup: TrainingSetup, steps: int | None) -> dict[str, Any]:
    """The arguments of the scheduler's class, besides the optimizer. Raises as `make_scheduler`."""
    schedule = setup.schedule
    kind, kinds = schedule.kind, catalogue.schedulers()
    if kind not in kinds:
        raise LabError(
            f"There is no scheduler {kind!r}.", hint=f"Choose one of {', '.join(kinds)}."
        )
    arguments = checked(kind, kinds[kind], schedule.params)
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
    if kind == "lr_scheduler.CosineAnnealingLR" and arguments.get("T_max") is None:
        if (times := _times(setup, steps)) is None:
            raise LabError(
                "CosineAnnealingLR needs the number of its steps, and the data does not say how"
                " many batches it has.",
                hint="Set T_max.",
            )
        arguments["T_max"] = max(1, times - schedule.warmup)
    if isinstance(milestones := arguments.get("milestones"), int):
        arguments["milestones"] = (milestones,)
    return arguments


def check_length(scheduler: LRScheduler, setup: TrainingSetup, steps: int | None) -> None:
    """Raise LabError if the scheduler ends before a run of this many optimizer steps."""
    ends, times = getattr(scheduler, "total_steps", None), _times(setup, steps)
    if ends is not None and times is not None and times > ends:
        raise LabError(
            f"{type(scheduler).__name__} ends after {ends:,} steps, and the run takes {times:,}.",
            hint="Set its total_steps to at least that, or leave it empty.",
        )


def _times(setup: TrainingSetup, steps: int | None) -> int | None:
    """How often the scheduler steps in a run of this many optimizer steps."""
    return setup.epochs if setup.schedule.each == "epoch" else steps
