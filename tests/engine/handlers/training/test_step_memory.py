"""The memory of a step as a command, of blocks and of code; the model stays as it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.project.document import TrainingSetup, replace
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import MeasureStepCommand, RunCellCommand, StepMemorySnapshot, TrainCommand

from ..test_training_handlers import MLP, Client, assert_equal

SETUP = TrainingSetup(epochs=1, batch_size=512, seed=3)
CELL = """\
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 64), nn.Sequential(nn.Linear(64, 64), nn.GELU()), nn.Linear(64, 2))
x = torch.randn(256, 4)
data = torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long())
"""


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.session.close()


def test_of_blocks_and_a_run_behind_it_is_the_same(client: Client) -> None:
    client.send(MeasureStepCommand(id=1, model=MLP, training=SETUP))
    found = client.said[-1]
    assert isinstance(found, StepMemorySnapshot)
    assert (found.samples, found.without) == (512, found.predicted)
    assert found.measured == found.without and found.without.peak > found.without.kept > 0
    client.send(TrainCommand(id=2, model=MLP, training=SETUP))
    client.run_to_end()
    weights = client.weights()
    other = Client()
    other.send(TrainCommand(id=2, model=MLP, training=SETUP))
    other.run_to_end()
    assert_equal(weights, other.weights())
    other.session.close()


def test_of_code_with_a_module_that_is_computed_again(client: Client) -> None:
    client.send(RunCellCommand(id=1, source=CELL))
    net = client.session.lab.console.namespace.variables["net"]
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    command = MeasureStepCommand(
        id=2,
        model=MLP,
        training=replace(SETUP, batch_size=128, recomputed=("1",)),
        subject=ConsoleSubject("net"),
        objective=Objective("data"),
    )
    client.send(command)
    found = client.said[-1]
    assert isinstance(found, StepMemorySnapshot) and found.samples == 128
    # GELU keeps its input, which the Linear before it has made.
    assert found.without.kept - found.measured.kept == 128 * 64 * 4
    assert found.predicted.kept == found.measured.kept
    assert_equal(before, net.state_dict())
    assert all(parameter.grad is None for parameter in net.parameters())
    client.send(replace(command, id=3, training=replace(SETUP, recomputed=("7",))))
    assert "no module “7”" in client.error.error.message


def test_in_a_lower_precision_less_is_kept(client: Client) -> None:
    kept = []
    for precision in ("float32", "bfloat16"):
        setup = replace(SETUP, precision=precision)
        client.send(MeasureStepCommand(id=1, model=MLP, training=setup))
        found = client.said[-1]
        assert isinstance(found, StepMemorySnapshot)
        assert found.without == found.measured
        kept.append(found.without.kept)
    assert kept[1] != kept[0]
