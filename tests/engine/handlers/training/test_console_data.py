"""A model of blocks on data of the console: checked, described, trained, and read again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.project.document import Block, DataSetup, TrainingSetup, replace
from engine.protocol import (
    CheckModelCommand,
    DataSnapshot,
    DescribeDataCommand,
    ErrorSnapshot,
    ModelSnapshot,
    RunCellCommand,
    TrainCommand,
)

from ..test_training_handlers import Client, assert_equal, chain

SETUP = TrainingSetup(
    data=DataSetup("console", validation_fraction=0.25, path="(x, y)", stratified=False),
    batch_size=16,
    epochs=2,
    seed=3,
)
MODEL = chain(
    Block("b1", "Input", "x", {"shape": (4,)}),
    Block("b2", "nn.Linear", "linear1", {"in_features": 4, "out_features": 2}),
    Block("b3", "Output", "output"),
)
CELL = """\
x = torch.linspace(-1, 1, 160).view(40, 4)
y = (x.sum(1) > 0).long()
"""


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.session.close()


def newest(client: Client, kind: type):
    return [each for each in client.said if isinstance(each, kind)][-1]


def test_it_is_checked_described_and_trained_like_any_other_data(client: Client) -> None:
    client.send(CheckModelCommand(id=1, model=MODEL, training=SETUP))
    assert any("`x`" in p.message for p in newest(client, ModelSnapshot).problems)
    client.send(RunCellCommand(id=2, source=CELL))
    client.send(CheckModelCommand(id=3, model=MODEL, training=SETUP))
    assert newest(client, ModelSnapshot).runnable
    client.send(DescribeDataCommand(id=4, data=SETUP.data))
    told = newest(client, DataSnapshot)
    assert (told.training, told.validation, told.class_count) == (30, 10, 2)
    client.send(TrainCommand(id=5, model=MODEL, training=SETUP, fresh=True))
    client.run_to_end()
    assert client.last.state == "finished"
    found = client.weights()

    variables = client.session.lab.console.namespace.variables
    other = Client()
    x, y = variables["x"], variables["y"]
    other.session.lab.console.namespace.variables.update(x=x.clone(), y=y.clone())
    other.send(TrainCommand(id=5, model=MODEL, training=SETUP, fresh=True))
    other.run_to_end()
    assert_equal(other.weights(), found)
    other.session.close()


def test_another_cell_gives_other_data_and_its_errors_are_told(client: Client) -> None:
    client.send(RunCellCommand(id=1, source=CELL))
    client.send(DescribeDataCommand(id=2, data=SETUP.data))
    client.send(RunCellCommand(id=3, source="x, y = x[::2], y[::2]"))
    client.send(DescribeDataCommand(id=4, data=SETUP.data))
    assert newest(client, DataSnapshot).training == 15
    client.send(DescribeDataCommand(id=5, data=replace(SETUP.data, path="missing")))
    assert "missing" in newest(client, ErrorSnapshot).error.message
