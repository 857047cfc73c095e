"""The ranks of a run held and stepped together: what each is told, without processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.presenters.attaching.ranks import SETTLE_MS
from engine.protocol import ContinueTrainingCommand, PauseSignal, StepTrainingCommand
from tests.app.presenters.attaching.rank_desk import AFTER_STEP, IN_STEP, ON, Desk, at, desks


@pytest.fixture
def now_s() -> list[float]:
    return [100.0]


@pytest.fixture
def desk(bench, link, monkeypatch, now_s: list[float]) -> Iterator[Desk]:
    yield from desks(bench, link, monkeypatch, now_s)


@pytest.fixture
def both(desk: Desk) -> Desk:
    """Rank 1 has been called, too."""
    desk.attach()
    desk.add(1)
    return desk


def test_a_pause_is_told_to_all_and_those_behind_go_on_to_the_foremost(both: Desk) -> None:
    both.say(0, at(5))
    both.say(1, at(7))
    both.link.steered.emit(PauseSignal())
    assert both.told() == {0: [], 1: [PauseSignal()]} and both.timer(SETTLE_MS).isActive()
    both.say(1, AFTER_STEP)
    assert both.told() == {0: [], 1: []}  # the other runs
    both.say(0, AFTER_STEP)
    assert both.told() == {0: [(7, True)], 1: []}
    assert not both.timer(SETTLE_MS).isActive()


def test_ranks_that_nobody_wants_to_hold_are_left_alone(both: Desk) -> None:
    both.say(0, at(5), AFTER_STEP)
    both.say(1, at(7), AFTER_STEP)
    both.timer(SETTLE_MS).timeout.emit()
    assert both.told() == {0: [], 1: []}


def test_ranks_that_are_held_go_on_together(both: Desk) -> None:
    for number in (0, 1):
        both.say(number, at(5), AFTER_STEP)
    both.link.steered.emit(StepTrainingCommand())
    assert both.told() == {0: [], 1: [StepTrainingCommand()]}
    assert not both.timer(SETTLE_MS).isActive()  # all take one step
    for number in (0, 1):
        both.say(number, at(6), AFTER_STEP)
    both.link.steered.emit(ContinueTrainingCommand())
    assert both.told() == {0: [], 1: [ContinueTrainingCommand()]}
    both.link.steered.emit(ContinueTrainingCommand())
    assert both.told() == {0: [], 1: []}  # it goes on
    both.say(1, at(7), AFTER_STEP)
    both.say(0, at(8), AFTER_STEP)
    assert both.told() == {0: [], 1: []}  # by themselves


def test_a_step_of_ranks_that_are_not_even_settles_them(both: Desk) -> None:
    both.say(0, at(5), AFTER_STEP)
    both.say(1, at(6), AFTER_STEP)
    both.link.steered.emit(StepTrainingCommand())
    assert both.timer(SETTLE_MS).isActive()


def test_ranks_that_missed_the_step_are_held_after_a_later_one(both: Desk) -> None:
    both.link.steered.emit(PauseSignal())
    both.say(0, at(5), AFTER_STEP)
    both.say(1, at(5))
    both.told()
    settle = both.timer(SETTLE_MS)
    settle.stop()
    settle.timeout.emit()
    assert both.told() == {0: [(9, True)], 1: [(9, False)]} and settle.isActive()
    assert settle.isSingleShot()
    both.say(0, at(9), AFTER_STEP)
    settle.timeout.emit()
    assert both.told() == {0: [(17, True)], 1: [(17, False)]}  # twice as far ahead
    both.say(0, ON, at(17), AFTER_STEP)
    both.say(1, at(17), AFTER_STEP)
    settle.stop()
    settle.timeout.emit()
    assert both.told() == {0: [], 1: []} and not settle.isActive()


def test_while_no_rank_is_held_after_a_step_all_are_waited_for(both: Desk) -> None:
    both.add(2, of=3)
    both.link.steered.emit(PauseSignal())
    both.say(0, at(5), IN_STEP)
    both.told()
    settle = both.timer(SETTLE_MS)
    settle.stop()
    settle.timeout.emit()
    assert both.told() == {0: [], 1: [], 2: []} and settle.isActive()
    both.say(1, at(5), AFTER_STEP)
    settle.timeout.emit()  # a line that is held stays held
    assert both.told() == {0: [], 1: [(9, True)], 2: [(9, False)]}


def test_a_pause_is_after_a_step_that_no_rank_has_reached(both: Desk, now_s) -> None:
    assert both.link.pause_at() == 2
    both.say(0, at(10))
    both.say(1, at(14))
    now_s[0] += 2
    both.say(0, at(50))  # 20 steps a second: 10 ahead
    assert both.link.pause_at() == 50 + 10
    now_s[0] += 0.25
    assert both.link.pause_at() == 50 + 5 + 10
    now_s[0] += 60
    assert both.link.pause_at() == 50 + 10 + 10  # it may be held
    both.say(0, at(51))  # too late to tell its rate
    assert both.link.pause_at() == 51 + 10
    both.say(1, at(70))
    assert both.link.pause_at() == 70 + 10


def test_a_rank_alone_is_held_after_its_next_step(desk: Desk) -> None:
    desk.attach()
    desk.say(0, at(10))
    assert desk.link.pause_at() == 0


@pytest.mark.parametrize(("passed_s", "ahead"), [(0.0, 2), (0.5, 100), (9.5, 6), (10.0, 2)])
def test_the_rate_of_a_rank_is_that_of_steps_not_long_apart(
    both: Desk, now_s, passed_s: float, ahead: int
) -> None:
    both.say(0, at(10))
    now_s[0] += passed_s
    both.say(0, at(110))
    assert both.link.pause_at() == 110 + ahead


def test_a_step_that_is_told_again_changes_no_rate(both: Desk, now_s) -> None:
    both.say(0, at(10))
    now_s[0] += 1
    both.say(0, at(10))
    assert both.link.pause_at() == 12
