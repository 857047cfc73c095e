"""Which steps get a row of figures, and the steps in a second, on a clock that the test moves."""

from __future__ import annotations

import pytest
import torch

from engine.training.figures import pace
from engine.training.figures.pace import Budget, Speed, now_on


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(pace, "perf_counter", clock)
    return clock


def test_the_first_steps_get_a_row_each_and_later_ones_at_intervals(clock: Clock) -> None:
    budget = Budget(free_steps=3, interval_s=2.0)
    assert [budget.takes(step) for step in range(5)] == [True, True, True, False, False]
    clock.now_s += 1.5
    assert not budget.takes(5)
    clock.now_s += 0.5
    assert budget.takes(6) and not budget.takes(7)
    clock.now_s += 1.75
    assert not budget.takes(8)


def test_measuring_takes_a_share_of_the_time(clock: Clock) -> None:
    budget = Budget(free_steps=0)
    assert budget.takes(0) and budget.takes(1)
    budget.spend(0.00006)
    budget.spend(0.00004)  # 0.1 ms together: a share of 0.002 of 50 ms
    assert budget.next_s == pytest.approx(100.05)
    clock.now_s = 100.04
    assert not budget.takes(2)
    clock.now_s = 100.06
    assert budget.takes(3) and budget.next_s == 100.06
    budget.spend(0.00004)  # what was spent before is paid for
    assert budget.next_s == pytest.approx(100.08)
    budget.spend(60.0)
    assert budget.next_s == pytest.approx(100.26)  # a fifth of a second at the most


def test_spending_never_shortens_the_interval(clock: Clock) -> None:
    budget = Budget(free_steps=0, interval_s=5.0)
    assert budget.takes(0)
    budget.spend(0.00003)
    assert budget.next_s == 105.0


def test_a_run_and_a_loop_have_budgets_of_their_own(clock: Clock) -> None:
    budgets = Budget.of_run(), Budget()
    for budget, free_steps, interval_s in zip(budgets, (1000, 50), (8e-3, 0.0), strict=True):
        assert budget.takes(0) and budget.next_s == 100.0 + interval_s
        budget.next_s = 200.0
        assert not budget.takes(free_steps) and budget.takes(free_steps - 1)


def test_the_speed_is_that_of_the_last_seconds(clock: Clock) -> None:
    speed = Speed()
    assert speed.per_second(10, running=True) == 0.0  # nothing to compare with
    clock.now_s += 2.0
    assert speed.per_second(14, running=True) == 2.0
    clock.now_s += 1.0
    assert speed.per_second(17, running=True) == 7 / 3
    clock.now_s += 1.0
    assert speed.per_second(23, running=True) == 9 / 2  # the first is four seconds old: left out
    clock.now_s += 8.0
    assert speed.per_second(31, running=True) == 8 / 8  # two are always compared
    clock.now_s += 0.0
    assert Speed().per_second(31, running=True) == 0.0


def test_after_a_pause_the_speed_is_measured_from_the_start(clock: Clock) -> None:
    speed = Speed()
    speed.per_second(0, running=True)
    clock.now_s += 1.0
    assert speed.per_second(5, running=False) == 5.0
    clock.now_s += 1.0
    assert speed.per_second(5, running=True) == 0.0
    clock.now_s += 1.0
    assert speed.per_second(8, running=True) == 3.0


def test_a_point_in_time_on_the_cpu_is_that_of_the_clock(clock: Clock) -> None:
    assert now_on(torch.device("cpu")) == 100.0
