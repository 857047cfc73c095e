"""The weights of a run's best epoch, and those that it ended with, in the live model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.project.document import Stopping, TrainingSetup
from engine.protocol import (
    ChooseWeightsCommand,
    ErrorSnapshot,
    TrainCommand,
    WeightsSnapshot,
)

from .test_training_handlers import MLP, Client, assert_equal

SETUP = TrainingSetup(
    epochs=12,
    batch_size=512,
    seed=3,
    optimizer="optim.SGD",
    optimizer_params={"lr": 3.0},
    stopping=Stopping(patience=2),
)


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.session.close()


def choose(client: Client, which) -> object:
    client.send(ChooseWeightsCommand(id=9, which=which))
    return client.said[-1]


def test_before_a_run_and_while_it_goes_on_there_are_none(client: Client) -> None:
    assert isinstance(choose(client, "best"), ErrorSnapshot)
    client.send(TrainCommand(id=1, model=MLP, training=SETUP, fresh=True, paused=True))
    answer = choose(client, "best")
    assert isinstance(answer, ErrorSnapshot) and "No run has ended" in answer.error.message


def test_best_and_last_weights(client: Client) -> None:
    client.send(TrainCommand(id=1, model=MLP, training=SETUP, fresh=True))
    client.run_to_end()
    run = client.last
    assert run.stopped_early and run.best is not None
    last, rows = client.weights(), [row for said in client.said for row in said.epoch_rows]
    assert len(rows) < 12
    assert run.best.value == min(row.validation_loss for row in rows)
    answer = choose(client, "best")
    assert isinstance(answer, WeightsSnapshot) and answer.learnt
    assert f"epoch {run.best.epoch}" in answer.origin
    best = client.weights()
    assert answer.parameters == sum(tensor.numel() for tensor in best.values())
    assert any((best[name] != last[name]).any() for name in best)
    choose(client, "last")
    assert_equal(client.weights(), last)
