"""One rank of a run: where it is, in words, and the curves that it has told."""

from __future__ import annotations

import math

import pytest

from app.presenters.attaching.member import MOST_POINTS, Member
from engine.connecting.greeting import About
from engine.protocol import HeldSnapshot, LoopSnapshot, StepColumns


@pytest.fixture
def member() -> Member:
    return Member(About(name="r", pid=7, rank=3, world_size=4))


def told(step: int, columns: StepColumns) -> LoopSnapshot:
    return LoopSnapshot(
        run="r", title="r", state="running", step=step, steps_per_second=1.0, steps=columns,
        device="cpu",
    )  # fmt: skip


def steps(first: int, count: int) -> StepColumns:
    numbers = tuple(range(first, first + count))
    some = tuple(float(number) for number in numbers)
    return StepColumns(
        step=numbers, loss=some, accuracy=some, gradient_norm=some, figures={"lr": some}
    )


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("", "rank 3: step 1,200"),
        ("step", "rank 3: held after step 1,200"),
        ("line", "rank 3: held in step 1,201"),
    ],
)
def test_a_rank_says_where_it_is(member: Member, at: str, words: str) -> None:
    member.take(told(1200, StepColumns()))
    member.take(HeldSnapshot(at=at))  # pyright: ignore[reportArgumentType]
    assert member.words == words
    assert (member.is_held, member.is_after_step) == (at != "", at == "step")
    member.goes_on()
    assert member.words == "rank 3: step 1,200"


def test_its_curves_have_all_columns_and_what_was_logged(member: Member) -> None:
    assert member.curves() == StepColumns()
    member.take(told(2, StepColumns(
        step=(1, 2), loss=(0.5, 0.25), accuracy=(0.1, 0.2), gradient_norm=(3.0, 4.0),
        figures={"lr": (0.1, 0.2), "seen": (5.0, 6.0)},
    )))  # fmt: skip
    member.take(told(3, StepColumns(
        step=(3,), loss=(0.125,), accuracy=(0.3,), gradient_norm=(5.0,), figures={"lr": (0.3,)}
    )))  # fmt: skip
    curves = member.curves()
    assert (curves.step, curves.loss) == ((1, 2, 3), (0.5, 0.25, 0.125))
    assert (curves.accuracy, curves.gradient_norm) == ((0.1, 0.2, 0.3), (3.0, 4.0, 5.0))
    assert curves.figures["lr"] == (0.1, 0.2, 0.3) and curves.figures["seen"][:2] == (5.0, 6.0)
    assert math.isnan(curves.figures["seen"][2])


def test_of_very_many_points_every_second_stays_with_the_first_and_the_last(member) -> None:
    member.take(told(MOST_POINTS, steps(1, MOST_POINTS)))
    assert member.curves().step == tuple(range(1, MOST_POINTS + 1))
    member.take(told(MOST_POINTS + 1, steps(MOST_POINTS + 1, 1)))
    assert member.curves().step == tuple(range(1, MOST_POINTS + 2, 2))
    assert member.curves().figures["lr"][1] == 3.0
