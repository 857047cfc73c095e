"""The scheduler of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch.optim import lr_scheduler
from torch.optim.lr_scheduler import LRScheduler

from ...project import catalogue
from ...project.document import COMPOSED, ParamValue, TrainingSetup
from ...system.errors import LabError
from .arguments import checked
from .expressions import VARIABLES, function_of

_WITHOUT_WARMUP = (
    "lr_scheduler.OneCycleLR",
    "lr_scheduler.CyclicLR",
    "lr_scheduler.ReduceLROnPlateau",
)
"""The schedulers that cannot follow a warm-up: the first two have a rise of their own; the third
needs a loss, which SequentialLR does not pass on."""
_WHOLE_RUN = {"lr_scheduler.OneCycleLR": "total_steps", "lr_scheduler.CosineAnnealingLR": "T_max"}
"""Arguments that are the number of the scheduler's steps, unless they are given."""


class SchedulerCall(NamedTuple):
    """A class of torch.optim.lr_scheduler by its name, with its arguments besides the optimizer,
    and the schedulers that it runs."""

    name: str
    arguments: dict[str, Any]
    parts: tuple[SchedulerCall, ...] = ()


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
    call = scheduler_call(setup, steps)
    try:
        made = _made(call, optimizer)
    except (TypeError, ValueError) as error:  # torch itself checks combinations of values
        raise LabError(f"{kind}: {error}", hint="Change the scheduler's parameters.") from error
    check_length(made, setup, steps)
    return made


def _made(call: SchedulerCall, optimizer: torch.optim.Optimizer) -> LRScheduler:
    cls, arguments = getattr(lr_scheduler, call.name), call.arguments
    if call.parts:
        parts = [_made(part, optimizer) for part in call.parts]
        return cls(schedulers=parts, optimizer=optimizer, **arguments)
    functions = {k: function_of(k, v) for k, v in arguments.items() if k in VARIABLES and v}
    return cls(optimizer, **{**arguments, **functions})


def scheduler_call(setup: TrainingSetup, steps: int | None) -> SchedulerCall:
    """The set-up's scheduler, of a run of this many optimizer steps. Raises as `make_scheduler`."""
    schedule, kinds = setup.schedule, catalogue.schedulers()
    if schedule.kind not in kinds:
        raise LabError(
            f"There is no scheduler {schedule.kind!r}.", hint=f"Choose one of {', '.join(kinds)}."
        )
    if problem := schedule.problem:
        raise LabError(problem, hint="Change it under Schedule in Train.")
    times = _times(setup, steps)
    if schedule.kind in COMPOSED:
        begins = schedule.milestones
        ends = (*begins, *(times for _ in schedule.parts))[: len(schedule.parts)]
        starts = (0, *begins) if begins else (0,) * len(schedule.parts)
        parts = tuple(
            _call(part.kind, part.params, None if end is None else max(1, end - start))
            for part, start, end in zip(schedule.parts, starts, ends, strict=True)
        )
        arguments = {"milestones": list(begins)} if begins else {}
        return SchedulerCall(schedule.kind.partition(".")[2], arguments, parts)
    if schedule.kind == "lr_scheduler.ReduceLROnPlateau" and schedule.each == "step":
        raise LabError(
            "ReduceLROnPlateau looks at the loss of an epoch: it cannot step after each step.",
            hint="Let it step after each epoch.",
        )
    warmup = schedule.warmup
    left = None if times is None else max(1, times - warmup)
    call = _call(schedule.kind, schedule.params, left)
    if not warmup:
        return call
    if schedule.kind in _WITHOUT_WARMUP:
        raise LabError(
            f"{call.name} cannot have a warm-up before it.",
            hint="Set warmup to 0, or choose another schedule.",
        )
    start = {"start_factor": schedule.warmup_from, "total_iters": warmup}
    rise = SchedulerCall("LinearLR", start)
    return SchedulerCall("SequentialLR", {"milestones": [warmup]}, (rise, call))


def _call(kind: str, params: Mapping[str, ParamValue], times: int | None) -> SchedulerCall:
    """A scheduler that steps this many times."""
    name = kind.partition(".")[2]
    arguments: dict[str, Any] = checked(kind, catalogue.schedulers()[kind], params)
    if (counted := _WHOLE_RUN.get(kind)) and arguments.get(counted) is None:
        if times is None:
            raise LabError(
                f"{name} needs the number of its steps, and the data does not say how many batches"
                " it has.",
                hint=f"Set {counted}.",
            )
        arguments[counted] = times
    if isinstance(milestones := arguments.get("milestones"), int):
        arguments["milestones"] = (milestones,)
    return SchedulerCall(name, arguments)


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
