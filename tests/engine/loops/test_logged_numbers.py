"""The numbers that a loop logs, each at its step, until they are told."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from engine.loops import logged_numbers
from engine.loops.logged_numbers import LoggedNumbers


def told(numbers: LoggedNumbers, but: str = "") -> dict[str, tuple]:
    return {name: (points.steps, points.values) for name, points in numbers.read(but).items()}


def test_each_step_has_the_newest_number_of_a_name_and_is_told_once() -> None:
    numbers = LoggedNumbers()
    numbers.add(1, {"a": 1.0, "b": torch.tensor(5, dtype=torch.int64)})
    numbers.add(2, {"a": torch.tensor(2.0)})
    numbers.add(2, {"a": torch.tensor(2.5, dtype=torch.float64)})
    assert told(numbers) == {"a": ((1, 2), (1.0, 2.5)), "b": ((1,), (5.0,))}
    assert told(numbers) == {}
    numbers.add(4, {"a": 4.0})
    assert told(numbers) == {"a": ((4,), (4.0,))}
    numbers.add(5, {"a": 4.0})
    numbers.forget()
    assert told(numbers) == {}


def test_one_name_may_wait_and_its_newest_number_be_taken() -> None:
    numbers = LoggedNumbers()
    for step in (1, 2):
        numbers.add(step, {"accuracy": step / 4, "other": 1.0})
    assert list(told(numbers, but="accuracy")) == ["other"]
    assert told(numbers, but="gone") == {"accuracy": ((1, 2), (0.25, 0.5))}
    numbers.add(3, {"accuracy": 0.75})
    assert numbers.take("accuracy") == 0.75
    assert numbers.take("accuracy") is None and told(numbers) == {}


def test_of_many_numbers_some_stay_with_the_first_and_the_last(monkeypatch) -> None:
    monkeypatch.setattr(logged_numbers, "MAX_POINTS", 4)
    numbers = LoggedNumbers()
    for step in range(1, 9):
        numbers.add(step, {"a": float(step)})
    assert len(numbers._waiting["a"]) == 8  # thinned only when they are many more
    numbers.add(9, {"a": 9.0})
    assert len(numbers._waiting["a"]) == 4
    numbers.add(10, {"a": 10.0})
    steps, values = told(numbers)["a"]
    assert len(steps) == 4 and (steps[0], steps[-1]) == (1, 10)
    assert values == tuple(map(float, steps))
    assert max(later - step for step, later in pairwise(steps)) <= 4


def test_at_most_200_of_a_name_are_told() -> None:
    numbers = LoggedNumbers()
    for step in range(1, 301):
        numbers.add(step, {"many": float(step), **({"few": 0.0} if step <= 200 else {})})
    found = told(numbers)
    assert len(found["many"][0]) == 200 and found["few"][0] == tuple(range(1, 201))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_are_told_as_they_are(value: float) -> None:
    numbers = LoggedNumbers()
    numbers.add(1, {"a": torch.tensor(value)})
    (found,) = told(numbers)["a"][1]
    assert repr(found) == repr(value)
