"""A model of blocks on sequences of different lengths: each batch is padded to its own longest, as
a plain loop with pad_sequence does it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

from engine.datasets.dataset import epoch_order
from engine.project.document import Block, DataSetup, Loading, TrainingSetup, replace
from engine.protocol import (
    ContinueTrainingCommand,
    PredictionsSnapshot,
    ReadPredictionsCommand,
    RunCellCommand,
    StartForwardCommand,
    TrainCommand,
)
from engine.training.run import TrainingRun

from ..test_training_handlers import Client, assert_equal, chain

CELL = """\
from torch.utils.data import Dataset

class Sequences(Dataset):
    def __init__(self):
        drawn = torch.Generator().manual_seed(0)
        self.rows = [torch.randn(1 + 7 * n % 11, 3, generator=drawn) for n in range(40)]

    def __len__(self):
        return 40

    def __getitem__(self, row):
        return self.rows[row], row % 2

data = Sequences()

def nothing(worker):
    pass

def padded(samples):
    x, y = zip(*samples)
    return nn.utils.rnn.pad_sequence(x, True, 9.0), torch.tensor(y)
"""
MODEL = chain(
    Block("b1", "Input", "x", {"shape": (11, 3)}),
    Block("b2", "nn.Linear", "linear1", {"in_features": 3, "out_features": 4}),
    Block("b3", "torch.mean", "mean1", {"dim": (1,)}),
    Block("b4", "nn.Linear", "linear2", {"in_features": 4, "out_features": 2}),
    Block("b5", "Output", "output"),
)
SETUP = TrainingSetup(
    data=DataSetup(
        "console",
        {"padding": "right", "padding_value": 2.0, "padded_to": "batch"},
        validation_fraction=0.25,
        path="data",
        stratified=False,
    ),
    batch_size=8,
    epochs=2,
    seed=3,
    optimizer="optim.SGD",
    optimizer_params={"lr": 0.5},
)


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.linear1(x).mean(1))


class Rows:
    """The rows of each batch of an epoch, in the order of the run."""

    def __init__(self, training: list[int]) -> None:
        self.training, self.epoch = training, 0

    def __iter__(self) -> Iterator[list[int]]:
        order = epoch_order(len(self.training), SETUP.seed, self.epoch)
        self.epoch += 1
        return iter([[self.training[i] for i in rows] for rows in order.split(8)])


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    client.send(RunCellCommand(id=1, source=CELL))
    client.send(StartForwardCommand(id=2, model=MODEL, training=SETUP))
    yield client
    client.session.close()


def with_params(**params: Any) -> TrainingSetup:
    data = replace(SETUP.data, params={**SETUP.data.params, **params})
    return replace(SETUP, data=data)


def with_loading(loading: Loading) -> TrainingSetup:
    return replace(SETUP, data=replace(SETUP.data, loading=loading))


def parts() -> tuple[list[int], list[int]]:
    training, validation = train_test_split(list(range(40)), test_size=0.25, random_state=0)
    return list(training), list(validation)


def plain_loop(client: Client, side: str, value: float, shuffled: bool = False) -> Plain:
    """Trains on the data of the console by torch alone, from the weights of now."""
    data = client.session.lab.console.namespace.variables["data"]

    def pad(samples: list[tuple[Tensor, int]]) -> tuple[Tensor, Tensor]:
        x, y = zip(*samples, strict=True)
        return pad_sequence(list(x), True, value, side), torch.tensor(y)

    model, (training, _) = Plain(), parts()
    model.load_state_dict(client.weights())
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    torch.manual_seed(SETUP.seed)
    if shuffled:
        own = [data[row] for row in training]
        loader = DataLoader(own, 8, shuffle=True, collate_fn=pad)  # pyright: ignore[reportArgumentType]
    else:
        loader = DataLoader(data, batch_sampler=Rows(training), collate_fn=pad)  # pyright: ignore[reportArgumentType]
    lengths = set()
    for _ in range(SETUP.epochs):
        for x, y in loader:
            lengths.add(x.shape[1])
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    assert len(lengths) > 1  # else nothing is shown
    return model


def run_to_end(client: Client, setup: TrainingSetup) -> dict[str, Tensor]:
    client.send(TrainCommand(id=3, model=MODEL, training=setup))
    client.run_to_end()
    assert (client.last.state, client.last.step) == ("finished", 8)
    return client.weights()


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("workers", [None, 0])
def test_the_weights_and_the_validation_are_those_of_a_plain_loop(
    client: Client, side: str, workers: int | None
) -> None:
    model = plain_loop(client, side, 2.0)
    setup = with_params(padding=side)
    setup = replace(setup, data=replace(setup.data, loading=Loading(workers=workers)))
    assert_equal(run_to_end(client, setup), dict(model.state_dict()))
    data, (_, validation) = client.session.lab.console.namespace.variables["data"], parts()
    total = 0.0
    for rows in (validation[:8], validation[8:]):
        x, y = zip(*(data[row] for row in rows), strict=True)
        with torch.no_grad():
            prediction = model(pad_sequence(list(x), True, 2.0, side))
        total += nn.functional.cross_entropy(prediction, torch.tensor(y)).item() * len(rows)
    found = client.last.epoch_rows[-1].validation_loss
    assert found == pytest.approx(total / len(validation), rel=1e-6)


def test_padded_to_the_longest_of_all_is_another_run(client: Client) -> None:
    model = plain_loop(client, "right", 2.0)
    found = run_to_end(client, with_params(padded_to="all"))
    assert not torch.equal(found["linear1.weight"], model.linear1.weight)


def test_a_loader_with_objects_of_the_users_pads_each_batch_too(client: Client) -> None:
    model = plain_loop(client, "right", 2.0, shuffled=True)
    found = run_to_end(client, with_loading(Loading(worker_init_fn="nothing")))
    assert_equal(found, dict(model.state_dict()))
    run = client.session.lab.run
    assert isinstance(run, TrainingRun)
    assert "Set padded_to to all" in run.files.writer.record.no_script


def test_a_collate_fn_of_the_users_gets_the_samples_as_they_are(client: Client) -> None:
    model = plain_loop(client, "right", 9.0, shuffled=True)
    found = run_to_end(client, with_loading(Loading(collate_fn="padded")))
    assert_equal(found, dict(model.state_dict()))


def test_it_goes_back_and_on_bit_for_bit(client: Client) -> None:
    expected = run_to_end(client, SETUP)
    client.send(TrainCommand(id=4, model=MODEL, training=SETUP, to_step=5))
    client.run_to_end()
    client.send(ContinueTrainingCommand(id=5))
    client.run_to_end()
    assert client.last.step == 8
    assert_equal(client.weights(), expected)


@pytest.mark.parametrize("side", ["right", "left"])
def test_the_script_of_the_run_gives_the_same_weights(client: Client, side: str) -> None:
    expected = run_to_end(client, with_params(padding=side))
    run = client.session.lab.run
    assert isinstance(run, TrainingRun)
    folder = run.files.writer.folder
    out = folder / "again.pt"
    subprocess.run([sys.executable, folder / "train.py", "--out", out], check=True)
    assert_equal(torch.load(out), expected)


def test_predictions_are_of_the_same_batches_as_validation(client: Client) -> None:
    run_to_end(client, SETUP)
    client.send(ReadPredictionsCommand(id=6, model=MODEL, training=SETUP, part="validation"))
    (found,) = [each for each in client.said if isinstance(each, PredictionsSnapshot)]
    row = client.last.epoch_rows[-1]
    assert (found.samples, found.total) == (10, 10)
    assert found.loss == pytest.approx(row.validation_loss, rel=1e-6)
    assert found.accuracy == pytest.approx(row.validation_accuracy)
    client.said.clear()
    client.send(ReadPredictionsCommand(id=7, model=MODEL, training=SETUP, part="training"))
    (found,) = [each for each in client.said if isinstance(each, PredictionsSnapshot)]
    assert found.samples == 30
