"""A model of blocks on samples that stay in their file: the run is the one on the same samples in
memory, bit for bit, also when it goes back and when it is resumed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from engine.datasets import load, source
from engine.project.document import Block, DataSetup, Loading, TrainingSetup, Transform, replace
from engine.protocol import ContinueTrainingCommand, StepTrainingCommand, TrainCommand
from engine.training.run import TrainingRun

from ..test_training_handlers import Client, assert_equal, chain

MODEL = chain(
    Block("b1", "Input", "x", {"shape": (1, 4, 4)}),
    Block("b2", "nn.Flatten", "flatten1"),
    Block("b3", "nn.Linear", "linear1", {"in_features": 16, "out_features": 3}),
    Block("b4", "Output", "output"),
)


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.session.close()


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[TrainingSetup]:
    pixels = np.random.default_rng(0).integers(0, 256, (50, 4, 4), np.uint8)
    np.savez(tmp_path / "a.npz", x=pixels, y=np.arange(50) % 3)
    data = DataSetup("numpy", path=str(tmp_path / "a.npz"))
    yield TrainingSetup(data=data, epochs=2, batch_size=8, seed=3)
    load._read.cache_clear()


def leave_in_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_BYTES", 500)
    load._read.cache_clear()
    load._prepared.cache_clear()


def trained(client: Client, setup: TrainingSetup, **options) -> dict[str, torch.Tensor]:
    client.send(TrainCommand(id=1, model=MODEL, training=setup, **options))
    client.run_to_end()
    assert (client.last.state, client.last.step) == ("finished", 10)
    return client.weights()


@pytest.mark.parametrize("workers", [None, 0, 2])
@pytest.mark.parametrize("transforms", [(), (Transform("RandomCrop"),)], ids=["plain", "drawn"])
def test_the_run_is_that_of_the_same_samples_in_memory(
    client: Client, setup: TrainingSetup, monkeypatch, workers: int | None, transforms: tuple
) -> None:
    loading = Loading(workers=workers, start_method="fork" if workers else "default")
    setup = replace(setup, data=replace(setup.data, loading=loading, transforms=transforms))
    expected = trained(client, setup, fresh=True)
    losses = client.last.epoch_rows[-1]
    leave_in_file(monkeypatch)
    assert_equal(trained(client, setup, fresh=True), expected)
    assert client.last.epoch_rows[-1] == losses
    run = client.session.lab.run
    assert isinstance(run, TrainingRun)
    assert "too large to be beside a script" in run.files.writer.record.no_script


def test_back_and_on_and_resumed_bit_for_bit(
    client: Client, setup: TrainingSetup, monkeypatch
) -> None:
    leave_in_file(monkeypatch)
    expected = trained(client, setup, fresh=True)
    client.send(TrainCommand(id=2, model=MODEL, training=setup, to_step=3))
    client.run_to_end()
    client.send(ContinueTrainingCommand(id=3))
    client.run_to_end()
    assert_equal(client.weights(), expected)
    client.send(TrainCommand(id=4, model=MODEL, training=setup, fresh=True, paused=True))
    for _ in range(7):
        client.send(StepTrainingCommand(id=5))
    run = client.session.lab.run
    assert isinstance(run, TrainingRun)
    run.save()
    later = Client()
    path = run.files.checkpoint_path
    assert_equal(trained(later, setup, checkpoint=path), expected)
    later.session.close()


def test_validation_and_predictions_are_those_of_torch(
    client: Client, setup: TrainingSetup, monkeypatch
) -> None:
    data = load.load_dataset(setup.data)
    leave_in_file(monkeypatch)
    weights = trained(client, setup, fresh=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    model[1].load_state_dict({name.partition(".")[2]: w for name, w in weights.items()})
    total = 0.0
    with torch.no_grad():
        for x, y in DataLoader(TensorDataset(data.x_val, data.y_val), 8):
            total += nn.functional.cross_entropy(model(x), y).item() * len(y)
    (row,) = [row for row in client.last.epoch_rows if row.epoch == 2]
    assert row.validation_loss == pytest.approx(total / len(data.y_val), rel=1e-6)
