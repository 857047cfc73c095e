"""The best epoch of a run, its weights, and when the run stops early."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan

import pytest
import torch
from torch import nn

from engine.project.document import DataSetup, Stopping, TrainingSetup, replace
from engine.protocol import EpochRow
from engine.system.errors import LabError
from engine.training.checkpoints import checkpoint_files
from engine.training.checkpoints.best_epoch import BestEpoch, is_over, with_epoch
from engine.training.loop import TrainingLoop
from engine.training.run import TrainingRun

SETUP = TrainingSetup(
    data=DataSetup("moons", {"samples": 100}),
    optimizer="optim.SGD",
    optimizer_params={"lr": 4.0},  # it jumps about
    batch_size=32,
    epochs=30,
    seed=7,
)
STOPPING = Stopping(patience=3)


def mlp() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))


def plain_stop(values: list[float], patience: int, delta: float, sign: float = 1.0) -> int:
    """After how many epochs torch users' usual loop stops."""
    best, waited = inf, 0
    for epoch, value in enumerate(values, 1):
        if sign * value < best - delta:
            best, waited = sign * value, 0
        else:
            waited += 1
        if waited >= patience:
            return epoch
    return len(values)


def finish(loop: TrainingLoop, states: dict[int, dict] | None = None) -> TrainingLoop:
    for _ in loop.steps():
        if states is not None and not loop.batch and loop.epoch not in states:
            states[loop.epoch] = {n: t.clone() for n, t in loop.model.state_dict().items()}
    if states is not None:
        states[loop.epoch] = {n: t.clone() for n, t in loop.model.state_dict().items()}
    loop.close()
    return loop


@pytest.mark.parametrize("figure", ["validation loss", "validation accuracy", "train loss"])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_it_stops_where_the_plain_loop_stops_with_the_weights_of_the_best(figure, delta) -> None:
    attribute, sign = figure.replace(" ", "_"), 1.0 if "loss" in figure else -1.0
    states: dict[int, dict] = {}
    whole = finish(TrainingLoop(mlp(), SETUP), states)
    values = [getattr(row, attribute) for row in whole.metrics.epochs]
    stopping = Stopping(figure, 3, delta)
    loop = finish(TrainingLoop(mlp(), replace(SETUP, stopping=stopping)))
    expected = plain_stop(values, 3, delta, sign)
    assert expected < 30  # else nothing is tried
    assert (loop.epoch, loop.stopped_early) == (expected, True)
    assert [getattr(row, attribute) for row in loop.metrics.epochs] == values[:expected]
    best = min(range(expected), key=lambda epoch: sign * values[epoch])
    assert loop.best is not None
    assert (loop.best.epoch, loop.best.value) == (best + 1, values[best])
    for name, tensor in states[best + 1].items():
        assert torch.equal(loop.best.weights[name], tensor)


def test_without_patience_it_does_not_stop_and_the_best_epoch_is_kept() -> None:
    loop = finish(TrainingLoop(mlp(), SETUP))
    assert (loop.epoch, loop.stopped_early) == (30, False)
    losses = [row.validation_loss for row in loop.metrics.epochs]
    assert loop.best is not None and loop.best.value == min(losses)


def rows(*losses: float) -> Iterator[EpochRow]:
    for epoch, loss in enumerate(losses, 1):
        yield EpochRow(epoch, epoch, loss, nan, nan, nan)


def after(*losses: float, stopping: Stopping = STOPPING) -> BestEpoch | None:
    best = None
    for row in rows(*losses):
        best = with_epoch(best, row, stopping, nn.Linear(1, 1))
    return best


def test_without_validation_data_the_loss_of_training_decides() -> None:
    best = after(3.0, 2.0, 2.5)
    assert best is not None
    assert (best.figure, best.epoch, best.value, best.waited) == ("train loss", 2, 2.0, 1)


def test_nan_is_never_the_best() -> None:
    assert after(nan) is None
    best = after(nan, 2.0, nan, nan, nan)
    assert best is not None and (best.epoch, best.waited) == (2, 3)
    assert is_over(best, STOPPING)


def test_small_gains_are_kept_as_best_but_do_not_save_the_run() -> None:
    best = after(1.0, 0.95, 0.9, 0.85, stopping=Stopping(patience=3, min_delta=0.5))
    assert best is not None
    assert (best.epoch, best.value, best.reference, best.waited) == (4, 0.85, 1.0, 3)


def test_another_figure_starts_again() -> None:
    best = after(1.0, 2.0, 3.0)
    row = EpochRow(4, 4, 5.0, 0.5, 6.0, 0.25)
    best = with_epoch(best, row, Stopping("validation accuracy", 3), nn.Linear(1, 1))
    assert best is not None and (best.epoch, best.value, best.waited) == (4, 0.25, 0)


@pytest.mark.parametrize("pieces", [4, 5, 17, 33])
def test_a_resumed_run_stops_there_too_with_the_same_best_weights(pieces: int) -> None:
    setup = replace(SETUP, stopping=STOPPING)
    straight = finish(TrainingLoop(mlp(), setup))
    killed = TrainingLoop(mlp(), setup)
    steps = killed.steps()
    for _ in range(pieces):
        next(steps)
    steps.close()
    path = checkpoint_files.save(killed.checkpoint("run"))
    resumed = TrainingLoop(mlp(), setup)
    resumed.restore(checkpoint_files.load(path))
    finish(resumed)
    assert (resumed.step, resumed.epoch) == (straight.step, straight.epoch)
    assert resumed.best is not None and straight.best is not None
    assert (resumed.best.epoch, resumed.best.waited) == (straight.best.epoch, straight.best.waited)
    for name, tensor in straight.best.weights.items():
        assert torch.equal(resumed.best.weights[name], tensor)


def test_a_run_that_stopped_goes_on_with_more_patience() -> None:
    setup = replace(SETUP, stopping=STOPPING)
    stopped = finish(TrainingLoop(mlp(), setup))
    later = TrainingLoop(mlp(), replace(setup, stopping=Stopping()))
    later.restore(stopped.checkpoint("run"))
    finish(later)
    whole = finish(TrainingLoop(mlp(), SETUP))
    assert (later.epoch, later.stopped_early) == (30, False)
    for found, wanted in zip(later.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(found, wanted)


def test_the_weights_of_the_best_epoch_and_of_the_last_are_loaded() -> None:
    run = TrainingRun(TrainingLoop(mlp(), replace(SETUP, stopping=STOPPING)))
    with pytest.raises(LabError, match="no best epoch"):
        run.weights.choose("best")
    for _ in run.steps():
        pass
    run.close()
    snapshot = run.snapshot("finished")
    best = run.loop.best
    assert best is not None and snapshot.best is not None
    assert (snapshot.best.epoch, snapshot.best.value) == (best.epoch, best.value)
    assert snapshot.stopped_early
    last = {name: tensor.clone() for name, tensor in run.loop.model.state_dict().items()}
    assert f"epoch {best.epoch}, the best by validation loss" in run.weights.choose("best")
    for name, tensor in run.loop.model.state_dict().items():
        assert torch.equal(tensor, best.weights[name])
    assert run.weights.choose("last").endswith(f"ended, at step {run.step:,}.")
    for name, tensor in run.loop.model.state_dict().items():
        assert torch.equal(tensor, last[name])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"best": 3}, "best: an epoch with its weights is expected"),
        ({"figure": "speed"}, "best.figure: it is 'speed'"),
        ({"value": 1}, "best.value: a float is expected"),
        ({"epoch": -1}, "best.epoch: a whole number"),
        ({"weights": {"a": 1}}, "best.weights.a"),
    ],
)
def test_a_damaged_best_epoch_is_named(change: dict, words: str) -> None:
    loop = TrainingLoop(mlp(), replace(SETUP, epochs=1))
    finish(loop)
    path = checkpoint_files.save(loop.checkpoint("run"))
    fields = torch.load(path, weights_only=True)
    fields["best"] = change["best"] if "best" in change else {**fields["best"], **change}
    torch.save(fields, path)
    with pytest.raises(LabError, match=words):
        checkpoint_files.load(path)
    fields.pop("best")
    torch.save(fields, path)
    assert checkpoint_files.load(path).best is None  # a file from before
