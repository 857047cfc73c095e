"""Checks, memory and the loss landscape beside a run that is paused: it goes on bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from engine.project.document import TrainingSetup, replace
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    CheckSnapshot,
    CheckTrainingCommand,
    Command,
    ContinueTrainingCommand,
    ErrorSnapshot,
    LandscapeCommand,
    LandscapeSnapshot,
    LoopSnapshot,
    MeasureStepCommand,
    MemoryCurveSnapshot,
    RunCellCommand,
    StepMemorySnapshot,
    StepTrainingCommand,
    TraceMemoryCommand,
    TrainCommand,
    WatchCommand,
)
from engine.training.run import TrainingRun
from tests.engine.handlers.test_training_handlers import MLP, Client, assert_equal

SETUP = TrainingSetup(epochs=2, batch_size=256, seed=3, accumulate=2)
CELL = """\
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 2))
x = torch.randn(64, 4)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long()), 8, shuffle=True,
    generator=torch.Generator().manual_seed(7),
)
"""
OWN = TrainCommand(
    id=2,
    model=MLP,
    training=replace(SETUP, optimizer="optim.AdamW"),
    subject=ConsoleSubject("net"),
    objective=Objective("loader"),
)
CANVAS = TrainCommand(id=2, model=MLP, training=SETUP)
SUMMED = replace(SETUP, order=("forward", "loss", "backward", "step"))
"""Without zero_grad: each step uses the gradients of the steps before it."""
ASKED = (CheckTrainingCommand, TraceMemoryCommand, MeasureStepCommand, LandscapeCommand)


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.session.close()


def questions(of: TrainCommand) -> list[Command]:
    common = {name: getattr(of, name) for name in ("model", "training", "subject", "objective")}
    return [kind(id=10 + place, **common) for place, kind in enumerate(ASKED)]


def trained(command: TrainCommand, between: Callable[[Client], None]) -> tuple[dict, dict, list]:
    """Weights, optimizer state and figures of a run that is paused after two steps and after three
    for `between`."""
    client = Client()
    client.send(RunCellCommand(id=1, source=CELL))
    if isinstance(command.subject, ConsoleSubject):
        client.send(WatchCommand(subject=command.subject, paths=("0",)))
    client.send(replace(command, paused=True))
    for number, steps in ((3, 2), (4, 1)):
        for _ in range(steps):
            client.send(StepTrainingCommand(id=number))
        between(client)
    client.send(ContinueTrainingCommand(id=20))
    client.run_to_end()
    assert not [s.error for s in client.said if isinstance(s, ErrorSnapshot)]
    run = client.session.lab.run
    assert isinstance(run, TrainingRun) and client.last.state == "finished"
    states = run.loop.optimizer.state_dict()["state"]
    flat = {f"{i}.{k}": torch.as_tensor(v) for i, s in states.items() for k, v in s.items()}
    rows = [(*row[:5], dict(row.figures)) for row in run.loop.metrics.history]
    weights = {n: t.clone() for n, t in run.loop.model.state_dict().items()}
    client.session.close()
    return weights, flat, rows


@pytest.mark.parametrize(
    "command", [CANVAS, replace(CANVAS, training=SUMMED), OWN], ids=["canvas", "summed", "own"]
)
def test_a_paused_run_goes_on_bit_for_bit(command: TrainCommand) -> None:
    answers: list[type] = []

    def ask(client: Client) -> None:
        client.said.clear()
        for question in questions(command):
            client.send(question)
        answers.extend(type(answer) for answer in client.said)

    weights, states, rows = trained(command, ask)
    expected = trained(command, lambda client: None)
    assert {
        CheckSnapshot, MemoryCurveSnapshot, StepMemorySnapshot, LandscapeSnapshot
    } <= set(answers)  # fmt: skip
    assert_equal(weights, expected[0])
    assert_equal(states, expected[1])
    assert repr(rows) == repr(expected[2]) and len(rows) > 3


def test_not_while_the_run_goes_on_nor_in_the_middle_of_a_step(client: Client) -> None:
    client.send(CANVAS)
    client.session.advance()
    for question in questions(CANVAS):
        client.said.clear()
        client.send(question)
        assert client.error.error.message == "A run is going on: its weights move."
    client.send(StepTrainingCommand(id=20, by="phase"))
    for question in questions(CANVAS):
        client.said.clear()
        client.send(question)
        assert client.error.error.message == "The run is in the middle of step 2."
        assert client.error.error.hint == "Step finishes it, Back goes to its start."
        assert "Step finishes it" in (client.error.error.hint or "")


def test_a_stop_of_the_slice_leaves_the_run_paused(client: Client) -> None:
    client.send(replace(CANVAS, paused=True))
    weights = client.weights()
    emit, control = client.session._emit, client.session.lab.control

    def stop_at_once(snapshot) -> None:
        emit(snapshot)
        control.stopped.add(3)

    client.session._emit = stop_at_once
    client.send(LandscapeCommand(id=3, model=MLP, training=SETUP, is_plane=True, points=31))
    client.session._emit = emit
    points = [s for s in client.said if isinstance(s, LandscapeSnapshot)]
    assert 0 < sum(len(part.losses) for part in points) < 31 * 31
    assert_equal(client.weights(), weights)
    assert client.session.lab.is_training
    client.send(ContinueTrainingCommand(id=4))
    client.run_to_end()
    assert client.last.state == "finished"


@pytest.mark.parametrize("line", ["lab.log(cost=float(i))", "optimizer.step()"])
def test_a_loop_of_a_cell_is_shown_unless_train_shows_one(client: Client, line: str) -> None:
    source = f"""\
weight = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([weight], 0.1)
for i in range(3):
    weight.sum().backward()
    {line}
"""
    client.send(RunCellCommand(id=1, source=source))
    assert [s.step for s in client.said if isinstance(s, LoopSnapshot)][-1] == 3
    client.send(replace(CANVAS, paused=True))
    client.said.clear()
    client.send(RunCellCommand(id=3, source=source))
    assert not [s for s in client.said if isinstance(s, LoopSnapshot)]
