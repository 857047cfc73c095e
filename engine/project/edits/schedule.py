"""Edits of the schedule of the learning rate."""

from __future__ import annotations

from .. import catalogue
from ..document import ALONE, COMPOSED, SEQUENTIAL, ParamValue, Schedule, SchedulePart, replace

_FIRST = ("lr_scheduler.LinearLR", "lr_scheduler.ExponentialLR")
_BY_STEPS = ("lr_scheduler.OneCycleLR", "lr_scheduler.CyclicLR")
"""Schedulers that are made for a step after each batch."""
_APART = 5


def part_kinds() -> dict[str, tuple[catalogue.Param, ...]]:
    """The schedulers that another one can run, with their parameters, by key."""
    return {kind: params for kind, params in catalogue.schedulers().items() if kind not in ALONE}


def new_schedule(kind: str) -> Schedule:
    """The schedule of a kind with values for what it requires; a constant rate if empty."""
    each = "step" if kind in _BY_STEPS else "epoch"
    parts = tuple(map(new_part, _FIRST)) if kind in COMPOSED else ()
    return Schedule(kind, _required(kind), each, parts=parts)


def new_part(kind: str) -> SchedulePart:
    return SchedulePart(kind, _required(kind))


def _required(kind: str) -> dict[str, ParamValue]:
    params = catalogue.schedulers().get(kind, ())
    return {param.name: param.initial for param in params if param.required}


def with_part(schedule: Schedule, kind: str) -> Schedule:
    """With one more part at the end, which begins some steps after the one before."""
    begins = schedule.milestones
    begins = (*begins, (begins[-1] if begins else 0) + _APART)
    return _with_parts(schedule, (*schedule.parts, new_part(kind)), begins)


def without_part(schedule: Schedule, index: int) -> Schedule:
    """Without a part and the step at which it begins; of the first one, that of the next."""
    begins, gone = schedule.milestones, max(0, index - 1)
    parts = schedule.parts[:index] + schedule.parts[index + 1 :]
    return _with_parts(schedule, parts, begins[:gone] + begins[gone + 1 :])


def with_changed_part(schedule: Schedule, index: int, part: SchedulePart) -> Schedule:
    parts = (*schedule.parts[:index], part, *schedule.parts[index + 1 :])
    return replace(schedule, parts=parts)


def _with_parts(
    schedule: Schedule, parts: tuple[SchedulePart, ...], begins: tuple[int, ...]
) -> Schedule:
    params = schedule.params
    if schedule.kind == SEQUENTIAL:
        params = {**params, "milestones": begins}
    return replace(schedule, params=params, parts=parts)
