"""A DataLoader of the user's own whose workers give batches in any order: what needs the same
batches again is refused, or told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from engine.handlers.training.as_rank import begin_as_rank
from engine.project.document import Model, TrainingSetup, replace
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    ContinueTrainingCommand,
    RunCellCommand,
    StepTrainingCommand,
    TrainCommand,
    TrainingSnapshot,
)
from engine.system.errors import LabError
from engine.training.distributed.ranks import Ranks
from engine.training.objectives.code_objective import CodeObjective
from engine.training.run import TrainingRun

from ..test_training_handlers import Client

CELL = """\
torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), 8, num_workers=2, in_order=False,
    multiprocessing_context="fork",
)
ordered = torch.utils.data.DataLoader(loader.dataset, 8)
"""
TRAIN = TrainCommand(
    id=2,
    model=Model(),
    training=TrainingSetup(epochs=1, optimizer="optim.SGD", optimizer_params={"lr": 0.01}),
    subject=ConsoleSubject("net"),
    objective=Objective("loader"),
)
HOT = replace(TRAIN, training=replace(TRAIN.training, epochs=20, optimizer_params={"lr": 1e20}))


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    client.send(RunCellCommand(id=1, source=CELL))
    yield client
    client.session.close()


def run_of(client: Client) -> TrainingRun:
    run = client.session.lab.run
    assert isinstance(run, TrainingRun)
    return run


@pytest.mark.parametrize("objective", [Objective("loader"), Objective("ordered", "loader")])
def test_such_a_run_does_not_go_to_a_step_and_has_no_script(
    client: Client, objective: Objective
) -> None:
    """Also if only validation has no order: its loss is rounded in another way each time."""
    command = replace(TRAIN, objective=objective)
    client.send(command)
    client.run_to_end()
    assert (client.last.state, client.last.step) == ("finished", 4)
    assert "in_order off, no script" in run_of(client).files.writer.record.no_script
    client.send(replace(command, id=3, to_step=1))
    assert "it cannot go to a step" in client.error.error.message


def test_with_one_worker_or_in_order_it_repeats() -> None:
    dataset = TensorDataset(torch.zeros(4, 1))

    def repeats(**arguments: object) -> bool:
        loader = DataLoader(dataset, **arguments)  # pyright: ignore[reportArgumentType]
        return CodeObjective(lambda batch: batch, loader).repeats

    assert repeats() and repeats(in_order=False) and repeats(num_workers=2)
    assert repeats(num_workers=1, in_order=False)
    assert not repeats(num_workers=2, in_order=False)


@pytest.mark.parametrize("data", ["loader", "ordered"])
def test_where_it_diverged_is_not_looked_for(client: Client, data: str) -> None:
    is_ordered = data == "ordered"
    client.send(replace(HOT, objective=Objective(data)))
    client.run_to_end()
    assert client.last.state == "failed"
    assert client.last.can_find_divergence is is_ordered
    if not is_ordered:
        client.send(replace(HOT, id=3, find_divergence=True))
        assert "no run has the same batches again" in client.error.error.message


@pytest.mark.parametrize("data", ["loader", "ordered"])
@pytest.mark.parametrize("steps", [2, 4])
def test_going_on_in_the_middle_of_an_epoch_is_told(client: Client, data: str, steps: int) -> None:
    command = replace(TRAIN, objective=Objective(data), training=replace(TRAIN.training, epochs=2))
    client.send(replace(command, paused=True))
    for _ in range(steps):
        client.send(StepTrainingCommand(id=3))
    run = run_of(client)
    run.save()
    path = run.files.checkpoint_path
    client.send(ContinueTrainingCommand(id=4))
    client.run_to_end()
    client.said.clear()
    client.send(replace(command, id=5, checkpoint=path))
    client.run_to_end()
    assert (client.last.state, client.last.step) == ("finished", 8)
    told = [s.error.message for s in client.said if isinstance(s, TrainingSnapshot) and s.error]
    is_told = data == "loader" and steps == 2
    assert told == (
        ["With in_order off, the batches that are left of this epoch are not the same."]
        if is_told
        else []
    )


def test_several_processes_refuse_it_before_they_begin() -> None:
    dataset = TensorDataset(torch.zeros(4, 1))
    loader = DataLoader(dataset, 2, num_workers=2, in_order=False)
    objective = CodeObjective(lambda batch: batch, loader)
    ranks = Ranks(0, 2, torch.device("cpu"))
    with pytest.raises(LabError, match="they must come in order"):
        begin_as_rank(ranks, nn.Linear(1, 1), objective, TRAIN)
