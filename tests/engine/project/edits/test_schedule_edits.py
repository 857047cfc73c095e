"""Edits of a schedule that runs others: each part has the step at which it begins."""

from __future__ import annotations

import pytest

from engine.project import catalogue
from engine.project.document import ALONE, CHAINED, SEQUENTIAL, Schedule, SchedulePart
from engine.project.edits.schedule import (
    new_part,
    new_schedule,
    part_kinds,
    with_changed_part,
    with_part,
    without_part,
)

LINEAR, FALLS = "lr_scheduler.LinearLR", "lr_scheduler.ExponentialLR"
STEPS = "lr_scheduler.StepLR"


def parts(*kinds: str) -> tuple[SchedulePart, ...]:
    return tuple(map(new_part, kinds))


def test_a_new_schedule_has_what_it_requires_and_nothing_else() -> None:
    for kind, params in catalogue.schedulers().items():
        made = new_schedule(kind)
        required = {param.name: param.initial for param in params if param.required}
        assert (made.kind, made.params, made.warmup) == (kind, required, 0)
        is_by_steps = kind in ("lr_scheduler.OneCycleLR", "lr_scheduler.CyclicLR")
        assert made.each == ("step" if is_by_steps else "epoch")
        is_composed = kind in (SEQUENTIAL, CHAINED)
        assert made.parts == (parts(LINEAR, FALLS) if is_composed else ())
        if kind == SEQUENTIAL:
            assert made.milestones and made.problem == ""
    assert new_schedule(STEPS).params and new_schedule(FALLS).params
    assert new_schedule("") == Schedule()
    assert new_part(STEPS) == SchedulePart(STEPS, new_schedule(STEPS).params)


def test_all_but_those_that_run_alone_can_be_parts() -> None:
    known = catalogue.schedulers()
    assert part_kinds() == {kind: known[kind] for kind in known if kind not in ALONE}
    assert STEPS in part_kinds() and "lr_scheduler.OneCycleLR" not in part_kinds()


def test_a_part_comes_at_the_end_five_steps_after_the_one_before() -> None:
    schedule = Schedule(SEQUENTIAL, {"milestones": (3, 8), "more": 1}, "step", parts=parts(
        LINEAR, FALLS, LINEAR))  # fmt: skip
    more = with_part(schedule, STEPS)
    assert more.params == {"milestones": (3, 8, 13), "more": 1} and more.each == "step"
    assert more.parts == (*schedule.parts, new_part(STEPS)) and more.problem == ""
    alone = with_part(Schedule(SEQUENTIAL, {}, parts=parts(LINEAR)), FALLS)
    assert (alone.milestones, alone.problem) == ((5,), "")
    chained = with_part(Schedule(CHAINED, {}, parts=parts(LINEAR, FALLS)), STEPS)
    assert chained.params == {} and len(chained.parts) == 3


@pytest.mark.parametrize(
    ("index", "kinds", "begins"),
    [
        (0, (FALLS, STEPS, LINEAR), (7, 9)), (1, (LINEAR, STEPS, LINEAR), (7, 9)),
        (2, (LINEAR, FALLS, LINEAR), (4, 9)), (3, (LINEAR, FALLS, STEPS), (4, 7)),
    ],
)  # fmt: skip
def test_a_part_goes_with_the_step_at_which_it_begins(
    index: int, kinds: tuple[str, ...], begins: tuple[int, ...]
) -> None:
    schedule = Schedule(
        SEQUENTIAL, {"milestones": (4, 7, 9)}, parts=parts(LINEAR, FALLS, STEPS, LINEAR)
    )
    less = without_part(schedule, index)
    assert (less.parts, less.milestones, less.problem) == (parts(*kinds), begins, "")
    chained = Schedule(CHAINED, {}, parts=schedule.parts)
    assert without_part(chained, index) == Schedule(CHAINED, {}, parts=parts(*kinds))


def test_a_changed_part_stays_in_its_place() -> None:
    schedule = Schedule(SEQUENTIAL, {"milestones": 4}, parts=parts(LINEAR, FALLS))
    slow = SchedulePart(FALLS, {"gamma": 0.99})
    assert with_changed_part(schedule, 1, slow).parts == (new_part(LINEAR), slow)
    first = with_changed_part(schedule, 0, slow)
    assert first.parts == (slow, new_part(FALLS)) and first.milestones == (4,)
