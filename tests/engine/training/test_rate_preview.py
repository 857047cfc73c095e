"""The learning rates told before a run are those of the run."""

from __future__ import annotations

import pytest

from engine.datasets.load import load_dataset
from engine.project import catalogue
from engine.project.document import Schedule, TrainingSetup, replace
from engine.system.errors import LabError
from engine.training.loop import TrainingLoop
from engine.training.optimization import preview
from engine.training.optimization.preview import rates_of

from .test_step_settings import SCHEDULES, SGD, finish, mlp


def check_as_in_the_run(setup: TrainingSetup) -> None:
    batches = load_dataset(setup.data).batches(setup.batch_size)
    loop = finish(TrainingLoop(mlp(), setup))
    expected = [(row.step, row.learning_rate) for row in loop.metrics.history]
    assert rates_of(setup, batches) == expected


@pytest.mark.parametrize("each", ["epoch", "step"])
@pytest.mark.parametrize("kind", sorted(SCHEDULES.keys() - {"ReduceLROnPlateau"}))
def test_each_schedule(kind: str, each) -> None:
    check_as_in_the_run(
        replace(SGD, schedule=Schedule(f"lr_scheduler.{kind}", SCHEDULES[kind], each))
    )


def test_a_warm_up_and_accumulated_batches() -> None:
    schedule = Schedule("lr_scheduler.CosineAnnealingLR", {}, "step", 3, 0.1)
    check_as_in_the_run(replace(SGD, schedule=schedule))
    check_as_in_the_run(replace(SGD, schedule=schedule, accumulate=2, epochs=4))


@pytest.mark.parametrize("optimizer", list(catalogue.optimizers()))
def test_each_optimizer_has_a_rate(optimizer: str) -> None:
    setup = replace(SGD, optimizer=optimizer, optimizer_params={"lr": 0.5})
    assert {rate for _, rate in rates_of(setup, 3)} == {0.5}


def test_a_long_run_is_cut_and_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview, "MAX_STEPS", 1700)
    schedule = Schedule("lr_scheduler.ExponentialLR", {"gamma": 0.999}, "step")
    rates = rates_of(replace(SGD, epochs=100, schedule=schedule), 50)
    assert (rates[0], rates[-1][0], len(rates)) == ((1, 0.1), 1700, 426)
    assert [step for step, _ in rates[:3]] == [1, 5, 9]
    for step, rate in rates:
        assert rate == pytest.approx(0.1 * 0.999 ** (step - 1))


def test_rates_that_depend_on_the_loss_are_not_told() -> None:
    plateau = replace(SGD, schedule=Schedule("lr_scheduler.ReduceLROnPlateau", {}))
    with pytest.raises(LabError, match="follows the loss"):
        rates_of(plateau, 3)
