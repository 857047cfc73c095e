"""Averaged weights against torch.optim.swa_utils in loops of plain torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn

from engine.datasets.load import load_dataset
from engine.project.document import Averaging, DataSetup, Schedule, TrainingSetup, replace
from engine.system.errors import LabError
from engine.training.checkpoints import checkpoint_files
from engine.training.components.schedulers import make_scheduler
from engine.training.loop import TrainingLoop
from engine.training.optimization.preview import rates_of
from engine.training.run import TrainingRun

SETUP = TrainingSetup(
    data=DataSetup("moons", {"samples": 100}),
    optimizer="optim.SGD",
    optimizer_params={"lr": 0.5, "momentum": 0.9},
    batch_size=32,
    epochs=4,
    seed=7,
)
EMA = replace(SETUP, averaging=Averaging("EMA", 0.8, 1))
SWA = replace(SETUP, averaging=Averaging("SWA", start=1))
ANNEALED = replace(
    SETUP,
    epochs=6,
    averaging=Averaging("SWA", start=2, swa_lr=0.05, anneal_epochs=3, anneal_strategy="linear"),
)


def mlp() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(2, 16), nn.Dropout(0.3), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2)
    )


def plain(setup: TrainingSetup) -> tuple[nn.Module, Any, list[float]]:
    """The model, its average, and the validation losses, by hand."""
    model = mlp()
    is_ema, start = setup.averaging.kind == "EMA", setup.averaging.start
    average = get_ema_multi_avg_fn(setup.averaging.decay) if is_ema else None
    averaged = AveragedModel(model, multi_avg_fn=average)
    dataset = load_dataset(setup.data)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    torch.manual_seed(setup.seed)
    losses = []
    for epoch in range(setup.epochs):
        model.train()
        batches = [dataset.train_batch(i, 32, setup.seed, epoch) for i in range(3)]
        for x, y in batches:
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()
            if is_ema and epoch >= start:
                averaged.update_parameters(model)
        if not is_ema and epoch >= start:
            averaged.update_parameters(model)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(setup.seed)
                update_bn(batches, averaged)
        judged = (averaged if epoch >= start else model).eval()
        with torch.no_grad():
            losses.append(cross_entropy(judged(dataset.x_val), dataset.y_val).item())
    return model, averaged.module, losses


def finish(loop: TrainingLoop) -> TrainingLoop:
    for _ in loop.steps():
        pass
    loop.close()
    return loop


def check_same(found: dict, expected: dict) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name


@pytest.mark.parametrize("setup", [EMA, SWA])
def test_the_average_is_torchs_and_it_is_validated(setup: TrainingSetup) -> None:
    model, averaged, losses = plain(setup)
    loop = finish(TrainingLoop(mlp(), setup))
    check_same(loop.model.state_dict(), model.state_dict())
    assert loop.averaged is not None
    check_same(loop.averaged.weights, averaged.state_dict())
    found = [row.validation_loss for row in loop.metrics.epochs]
    assert found == pytest.approx(losses, rel=1e-6)
    if loop.best is not None and loop.best.epoch == 4:
        check_same(loop.best.weights, averaged.state_dict())
    check_same(finish(TrainingLoop(mlp(), SETUP)).model.state_dict(), model.state_dict())


@pytest.mark.parametrize("setup", [EMA, SWA])
@pytest.mark.parametrize("pieces", [2, 7, 8, 9, 10, 11, 12, 13])
def test_a_resumed_run_has_the_same_average(setup: TrainingSetup, pieces: int) -> None:
    straight = finish(TrainingLoop(mlp(), setup))
    killed = TrainingLoop(mlp(), setup)
    steps = killed.steps()
    for _ in range(pieces):
        next(steps)
    path = checkpoint_files.save(killed.checkpoint("run"))
    steps.close()
    resumed = TrainingLoop(mlp(), setup)
    resumed.restore(checkpoint_files.load(path))
    finish(resumed)
    assert resumed.averaged is not None and straight.averaged is not None
    check_same(resumed.model.state_dict(), straight.model.state_dict())
    check_same(resumed.averaged.weights, straight.averaged.weights)


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(),
        Schedule("lr_scheduler.StepLR", {"step_size": 1, "gamma": 0.5}),
        Schedule("lr_scheduler.ExponentialLR", {"gamma": 0.9}, "step", warmup=2),
        Schedule("lr_scheduler.ReduceLROnPlateau", {"patience": 0}),
    ],
)
def test_swalr_takes_the_place_of_the_schedule_as_in_torchs_recipe(schedule: Schedule) -> None:
    setup = replace(ANNEALED, schedule=schedule)
    loop = finish(TrainingLoop(mlp(), setup))
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.5)
    scheduler = make_scheduler(setup, optimizer, 3 * 6)
    swalr = SWALR(optimizer, 0.05, 3, "linear")
    optimizer.step()
    expected = []
    for epoch in range(6):
        for _ in range(3):
            expected.append(optimizer.param_groups[0]["lr"])
            if scheduler is not None and schedule.each == "step" and epoch < 2:
                scheduler.step()
        if epoch >= 2:
            swalr.step()
        elif isinstance(scheduler, ReduceLROnPlateau):
            scheduler.step(loop.metrics.epochs[epoch].validation_loss)
        elif scheduler is not None and schedule.each == "epoch":
            scheduler.step()
    assert [row.learning_rate for row in loop.metrics.history] == expected
    assert expected[-1] == pytest.approx(0.05)
    if schedule.kind != "lr_scheduler.ReduceLROnPlateau":
        assert [rate for _, rate in rates_of(setup, 3)] == expected


@pytest.mark.parametrize("step", [5, 6, 9, 10, 14])
@pytest.mark.parametrize(
    "schedule", [Schedule(), Schedule("lr_scheduler.StepLR", {"step_size": 1})]
)
def test_an_annealed_run_goes_on_bit_for_bit(step: int, schedule: Schedule) -> None:
    setup = replace(ANNEALED, schedule=schedule)
    straight = finish(TrainingLoop(mlp(), setup))
    killed = TrainingLoop(mlp(), setup)
    steps = killed.steps()
    while killed.step < step:
        next(steps)
    path = checkpoint_files.save(killed.checkpoint("run"))
    steps.close()
    resumed = TrainingLoop(mlp(), setup)
    resumed.restore(checkpoint_files.load(path))
    finish(resumed)
    check_same(resumed.model.state_dict(), straight.model.state_dict())
    rates = [[row.learning_rate for row in loop.metrics.history] for loop in (resumed, straight)]
    assert rates[0] == rates[1]


def test_another_schedule_leaves_the_annealing_where_it_is() -> None:
    loop = TrainingLoop(mlp(), ANNEALED)
    steps = loop.steps()
    while loop.epoch < 5:  # SWALR has stepped three times: it is at its end
        next(steps)
    other = replace(loop.setup, schedule=Schedule("lr_scheduler.StepLR", {"step_size": 100}))
    loop.become(other, loop.objective)
    assert loop.learning_rate == pytest.approx(0.05)
    for _ in steps:
        assert loop.learning_rate == pytest.approx(0.05)
    loop.close()
    assert loop.learning_rate == pytest.approx(0.05)


def test_the_averaged_weights_are_loaded_after_the_run() -> None:
    run = TrainingRun(TrainingLoop(mlp(), EMA))
    with pytest.raises(LabError, match="averaged no weights"):
        run.weights.choose("averaged")
    for _ in run.steps():
        pass
    run.close()
    assert run.snapshot("finished").averaged
    last = {name: tensor.clone() for name, tensor in run.loop.model.state_dict().items()}
    assert "EMA" in run.weights.choose("averaged")
    check_same(run.loop.model.state_dict(), plain(EMA)[1].state_dict())
    run.weights.choose("last")
    check_same(run.loop.model.state_dict(), last)


def test_a_model_that_cannot_be_copied_is_told() -> None:
    model: Any = mlp()
    model.lock = (step for step in range(3))  # a generator cannot be copied
    with pytest.raises(LabError, match="cannot be copied to average"):
        TrainingLoop(model, EMA)
    finish(TrainingLoop(model, SETUP))


def test_averaging_does_not_change_on_the_way() -> None:
    saved = TrainingLoop(mlp(), SETUP).checkpoint("run")
    with pytest.raises(LabError, match="another averaging of weights"):
        TrainingLoop(mlp(), EMA).restore(saved)
