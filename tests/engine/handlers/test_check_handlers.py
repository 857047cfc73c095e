"""Checks before training as commands: of blocks and of code; what a run does is not changed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from engine.project.document import TrainingSetup
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    CheckSnapshot,
    CheckTrainingCommand,
    RunCellCommand,
    TrainCommand,
)

from .test_training_handlers import MLP, Client, assert_equal

SETUP = TrainingSetup(epochs=1, batch_size=512, seed=3, optimizer_params={"lr": 0.01})
CELL = """\
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 2))
x = torch.randn(64, 4)
data = torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long())
"""


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.session.close()


def checks(client: Client) -> list[CheckSnapshot]:
    return [each for each in client.said if isinstance(each, CheckSnapshot)]


def trained(*before: CheckTrainingCommand) -> dict[str, torch.Tensor]:
    client = Client()
    for command in before:
        client.send(command)
        assert len(checks(client)) == 8
    client.send(TrainCommand(id=9, model=MLP, training=SETUP))
    client.run_to_end()
    weights = client.weights()
    client.session.close()
    return weights


def test_all_checks_of_blocks_and_a_run_behind_them_is_the_same() -> None:
    assert_equal(trained(CheckTrainingCommand(id=1, model=MLP, training=SETUP)), trained())


def test_all_checks_of_a_module_of_the_console(client: Client) -> None:
    client.send(RunCellCommand(id=1, source=CELL))
    net = client.session.lab.console.namespace.variables["net"]
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    torch.manual_seed(5)
    client.send(
        CheckTrainingCommand(
            id=2,
            model=MLP,
            training=SETUP,
            subject=ConsoleSubject("net"),
            objective=Objective(data="data"),
        )
    )
    drawn = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(3))
    found = checks(client)
    assert [each.done for each in found] == list(range(1, 9))
    assert {each.total for each in found} == {8}
    by_kind = {each.check.kind: each.check for each in found}
    assert "Dropout(p=0.5)" in by_kind["modes"].text
    assert by_kind["leaks"].verdict == "note"
    assert found[-1].curve.rates and not found[0].curve.rates
    assert_equal(net.state_dict(), before)


def test_a_stop_ends_the_checks_and_leaves_the_model(client: Client) -> None:
    client.send(CheckTrainingCommand(id=1, model=MLP, training=SETUP))
    weights = client.weights()
    client.said.clear()
    control = client.session.lab.control
    emit = client.session._emit

    def stop_after_two(snapshot) -> None:
        emit(snapshot)
        if len(checks(client)) == 2:
            control.mark = 2
            control.stop.set()

    client.session._emit = stop_after_two
    client.send(CheckTrainingCommand(id=2, model=MLP, training=SETUP))
    assert len(checks(client)) == 2
    assert_equal(client.weights(), weights)
