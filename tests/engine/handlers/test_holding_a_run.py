"""A run of Train that is held by a watchpoint, and one that is held where it diverges."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from engine.project.document import HoldWhen, TrainingSetup, replace
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    AdjustTrainingCommand,
    ContinueTrainingCommand,
    RunCellCommand,
    StepTrainingCommand,
    TrainCommand,
)

from .test_training_handlers import MLP, Client, assert_equal

SETUP = TrainingSetup(epochs=4, batch_size=256, seed=3, optimizer_params={"lr": 0.01})
HOT = replace(SETUP, optimizer="optim.SGD", optimizer_params={"lr": 1e15})
CELL = """\
class Root(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.last((self.first(x) * 0).sqrt())

torch.manual_seed(0)
root = Root()
data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randint(2, (64,)))
"""
"""The gradient of the square root is infinite at 0, and times 0 it is NaN: the loss is finite in
the first step, and NaN in the second."""


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.session.close()


def begin(client: Client, setup: TrainingSetup, **options) -> None:
    client.send(TrainCommand(id=1, model=MLP, training=setup, fresh=True, **options))


def all_finite(weights: dict[str, torch.Tensor]) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in weights.values())


def test_a_gradient_that_is_not_finite_is_held_before_it_reaches_a_weight(client: Client) -> None:
    client.send(RunCellCommand(id=1, source=CELL))
    root = client.session.lab.console.namespace.variables["root"]
    before = {name: tensor.clone() for name, tensor in root.state_dict().items()}
    setup = replace(SETUP, hold=HoldWhen(not_finite=True))
    subject, objective = ConsoleSubject("root"), Objective(data="data")
    client.send(TrainCommand(id=2, model=MLP, training=setup, subject=subject, objective=objective))
    client.run_to_end()
    last = client.last
    assert (last.state, last.step, last.is_in_step) == ("paused", 0, True)
    hold = last.hold
    assert hold is not None and hold.kind == "not_finite"
    assert (hold.step, hold.parameter) == (1, "first.weight")
    assert "The gradient of `first.weight` is not finite" in hold.text
    assert "SqrtBackward0 of `Tensor.sqrt` in the model" in hold.text
    assert (hold.line, CELL.splitlines()[hold.line - 1].count("sqrt")) == (7, 1)
    assert_equal(root.state_dict(), before)
    assert last.step_numbers is not None and last.step_numbers.done[-1] == "backward"
    client.send(StepTrainingCommand(id=3))
    assert client.last.state == "failed"
    assert client.last.error is not None and client.last.error.type == "Diverged"
    assert "first.weight" in client.last.error.message
    assert_equal(root.state_dict(), before)


def test_a_loss_that_is_not_finite_is_held_with_finite_weights(client: Client) -> None:
    begin(client, replace(HOT, hold=HoldWhen(not_finite=True)))
    client.run_to_end()
    last = client.last
    assert last.state == "paused" and last.hold is not None, last.error
    assert all_finite(client.weights())
    assert "loss is" in last.hold.text or "gradient of" in last.hold.text
    at = last.hold.step
    assert last.step == at - 1
    client.send(ContinueTrainingCommand(id=3))
    client.run_to_end()
    assert client.last.state == "failed"
    assert client.last.error is not None and client.last.error.type == "Diverged"
    assert not client.last.can_find_divergence
    assert all_finite(client.weights())


def test_a_run_that_has_failed_is_repeated_up_to_there(client: Client) -> None:
    begin(client, HOT)
    client.run_to_end()
    assert client.last.state == "failed" and client.last.can_find_divergence
    failed = client.last.run
    client.send(TrainCommand(id=5, model=MLP, training=HOT, find_divergence=True))
    client.run_to_end()
    last = client.last
    assert last.state == "paused" and last.hold is not None
    assert last.run != failed
    assert all_finite(client.weights())
    client.send(TrainCommand(id=6, model=MLP, training=SETUP_COOL, to_step=0))
    client.run_to_end()
    client.send(ContinueTrainingCommand(id=7))
    client.run_to_end()
    assert client.last.state == "finished"


SETUP_COOL = replace(HOT, optimizer_params={"lr": 1e-12})


def test_stepping_into_the_divergence_stops_there(client: Client) -> None:
    begin(client, replace(HOT, hold=HoldWhen(not_finite=True)), paused=True)
    done = 0
    while client.last.hold is None:
        assert client.last.step == done
        client.send(StepTrainingCommand(id=2))
        done += 1
    assert client.last.state == "paused" and client.last.hold is not None
    assert client.last.step == client.last.hold.step - 1


def test_a_run_that_did_not_diverge_cannot_be_repeated(client: Client) -> None:
    begin(client, replace(SETUP, epochs=1))
    client.run_to_end()
    client.send(TrainCommand(id=5, model=MLP, training=SETUP, find_divergence=True))
    assert "up to where its numbers went wrong" in client.error.error.message


def test_a_limit_holds_the_run_and_continue_lets_it_go_on_to_the_same_end(client: Client) -> None:
    held = replace(SETUP, hold=HoldWhen(gradient_norm=1e-3))
    begin(client, held)
    client.run_to_end()
    last = client.last
    assert (last.state, last.step, last.is_in_step) == ("paused", 0, True)
    assert last.hold is not None and last.hold.kind == "gradient_norm"
    client.send(ContinueTrainingCommand(id=2))
    client.run_to_end()
    assert client.last.state == "finished" and client.last.hold is None
    ended = client.weights()
    other = Client()
    begin(other, SETUP)
    other.run_to_end()
    assert_equal(ended, other.weights())
    other.session.close()


def test_limits_of_a_run_under_way_are_taken_and_those_on_a_way_do_not_hold(client: Client) -> None:
    begin(client, SETUP, paused=True)
    client.send(StepTrainingCommand(id=2))
    limit = replace(SETUP, hold=HoldWhen(gradient_norm=1e-3))
    client.send(AdjustTrainingCommand(id=3, training=limit))
    client.send(StepTrainingCommand(id=4))
    assert client.last.is_in_step and client.last.hold is not None and client.last.hold.step == 2
    client.send(StepTrainingCommand(id=5))
    assert (client.last.step, client.last.hold) == (2, None)
    here = client.weights()
    client.send(TrainCommand(id=6, model=MLP, training=limit, to_step=0))
    client.run_to_end()
    client.send(TrainCommand(id=7, model=MLP, training=limit, to_step=2))
    client.run_to_end()
    assert (client.last.state, client.last.step, client.last.hold) == ("paused", 2, None)
    assert_equal(client.weights(), here)


def test_a_limit_at_the_end_of_a_step_holds_behind_the_update(client: Client) -> None:
    begin(client, replace(SETUP, hold=HoldWhen(ratio_above=1e-6)))
    client.run_to_end()
    last = client.last
    assert (last.state, last.step, last.is_in_step) == ("paused", 1, False)
    assert last.hold is not None and last.hold.kind == "ratio_above"
