"""Averaged weights, those of the best epoch, and the figures of epochs after a run has gone back:
bit for bit as in a run that never did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
import torch
from torch import Tensor

from engine.project.document import (
    Averaging,
    DataSetup,
    Schedule,
    Stopping,
    TrainingSetup,
    replace,
)
from engine.protocol import (
    ChooseWeightsCommand,
    ContinueTrainingCommand,
    EpochRow,
    TrainCommand,
    WhichWeights,
)
from engine.training import run

from ..test_training_handlers import MLP, Client, assert_equal

SETUP = TrainingSetup(
    epochs=4,
    batch_size=512,
    seed=3,
    optimizer="optim.SGD",
    optimizer_params={"lr": 1.0, "momentum": 0.9},
    stopping=Stopping("validation loss"),
)
EARLY = {"lr": 2.0, "momentum": 0.9}
"""So fast that the first epoch is the best."""


@pytest.fixture(autouse=True)
def _every_third_state(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = run.TrainingRun._keep

    def by_steps(self: run.TrainingRun) -> None:
        if self.step % 3 == 0 or not self._keep_due_s:
            keep(self)
        self._keep_due_s = 1.0

    monkeypatch.setattr(run.TrainingRun, "_keep", by_steps)


def epochs(client: Client) -> list[EpochRow]:
    assert isinstance(client.session.lab.run, run.TrainingRun)
    return list(client.session.lab.run.loop.metrics.epochs)


def chosen(client: Client, names: Sequence[WhichWeights]) -> Iterator[dict[str, Tensor]]:
    for which in names:
        client.send(ChooseWeightsCommand(id=9, which=which))
        yield client.weights()


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"averaging": Averaging("EMA", 0.8, 1)}, ("averaged", "best", "last")),
        ({"averaging": Averaging("SWA", start=1)}, ("averaged", "best", "last")),
        (
            {"averaging": Averaging("SWA", start=1, swa_lr=0.05, anneal_epochs=2)},
            ("averaged", "best", "last"),
        ),
        ({"optimizer_params": EARLY}, ("best", "last")),
    ],
)
def test_averaged_best_and_last_weights_are_those_of_a_straight_run(
    changes: dict, names: tuple[WhichWeights, ...]
) -> None:
    setup = replace(SETUP, **changes)
    straight, back = Client(), Client()
    for client in (straight, back):
        client.send(TrainCommand(id=1, model=MLP, training=setup, fresh=True))
        client.run_to_end()
        assert client.last.state == "finished"
    for step in (11, 8):  # from states in the midst of averaging
        back.send(TrainCommand(id=2, model=MLP, training=setup, to_step=step))
        back.run_to_end()
        assert (back.last.state, back.last.step) == ("paused", step), back.last.error
    back.send(ContinueTrainingCommand(id=3))
    back.run_to_end()
    assert back.last.state == "finished" and back.last.best == straight.last.best
    found = list(zip(chosen(back, names), chosen(straight, names), strict=True))
    for own, other in found:
        assert_equal(own, other)
    first, last = found[0][0], found[-1][0]
    assert any(not torch.equal(first[name], last[name]) for name in last)
    straight.session.close()
    back.session.close()


@pytest.mark.parametrize("kind", ["", "lr_scheduler.ReduceLROnPlateau"])
def test_an_epoch_that_is_done_again_from_its_middle_has_the_same_figures(kind: str) -> None:
    """What its figures decide too: the rate of ReduceLROnPlateau, and where the run stops."""
    schedule = Schedule(kind, {"patience": 0, "threshold": 0.12}) if kind else Schedule()
    setup = replace(
        SETUP,
        epochs=8,
        batch_size=300,
        data=DataSetup(validation_fraction=0.0),
        optimizer_params={"lr": 0.1},
        schedule=schedule,
        stopping=Stopping("train loss", patience=2, min_delta=0.1),
    )
    client = Client()
    client.send(TrainCommand(id=1, model=MLP, training=setup, fresh=True))
    client.run_to_end()
    end, weights = client.last, client.weights()
    assert end.state == "finished" and end.step < 48  # it has stopped early
    rows = epochs(client)
    for step in (16, 10, 4):
        client.send(TrainCommand(id=2, model=MLP, training=setup, to_step=step))
        client.run_to_end()
        client.send(ContinueTrainingCommand(id=3))
        client.run_to_end()
        assert (client.last.state, client.last.step) == ("finished", end.step)
        assert repr(epochs(client)) == repr(rows)  # NaN equals itself there
        assert_equal(client.weights(), weights)
    client.session.close()
