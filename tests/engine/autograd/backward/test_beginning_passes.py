"""How a backward pass begins: what it ends, its options, the batch of a step, its numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from app.templates import load_template
from engine.autograd.backward.backward_pass import BackwardPass
from engine.lab import Lab
from engine.project.document import Loading, TrainingSetup, replace
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    BackwardSnapshot,
    Command,
    ForwardSnapshot,
    GraphNumbersCommand,
    GraphSnapshot,
    InspectCommand,
    MoveBackwardCommand,
    ReadForwardGraphCommand,
    RunCellCommand,
    RunExampleCommand,
    StartBackwardCommand,
    StartForwardCommand,
    ValueSnapshot,
)
from engine.server.session import handler_of

MLP = load_template("mlp")
OF_MLP: dict[str, Any] = {"model": MLP.model, "training": MLP.training}
CELL = """\
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = (x * x).sum()
net = nn.Linear(2, 1)
pairs = torch.arange(12.0).view(6, 2), torch.zeros(6, 1)
"""
STEP: dict[str, Any] = {
    "training": TrainingSetup(batch_size=2, data=replace(MLP.training.data, loading=Loading(
        shuffle=False))),
    "subject": ConsoleSubject("net"),
    "objective": Objective("pairs"),
}  # fmt: skip


@pytest.fixture
def lab() -> Lab:
    lab = Lab(emit=lambda snapshot: None)
    ask(lab, RunCellCommand(source=CELL))
    return lab


def ask(lab: Lab, command: Command) -> list[Any]:
    return [s for s in handler_of(type(command))(lab, command) if s is not None]


def variable(lab: Lab, name: str) -> Any:
    return lab.console.namespace.variables[name]


STARTS: dict[str, Callable[[Lab], StartBackwardCommand]] = {
    "a root": lambda lab: StartBackwardCommand(root="y"),
    "a gradient": lambda lab: StartBackwardCommand(of="x"),
    "a step of code": lambda lab: StartBackwardCommand(**STEP),
    "the model": lambda lab: StartBackwardCommand(),
}


@pytest.mark.parametrize("kind", STARTS)
def test_a_pass_that_begins_closes_the_one_before(
    lab: Lab, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(lab, StartForwardCommand(**OF_MLP))
    ask(lab, StartBackwardCommand(root="y"))
    if kind == "a gradient":
        ask(lab, MoveBackwardCommand(move="end"))
        variable(lab, "x").grad = None
        ask(lab, StartBackwardCommand(root="y", create_graph=True))
        ask(lab, MoveBackwardCommand(move="end"))
    before, closed = lab.backward.under_way, []
    close = BackwardPass.close

    def noted(one: BackwardPass) -> None:
        closed.append(one)
        close(one)

    monkeypatch.setattr(BackwardPass, "close", noted)
    answers = ask(lab, STARTS[kind](lab))
    assert closed == [before] and lab.backward.under_way is not before
    assert isinstance(answers[-1], BackwardSnapshot) and isinstance(answers[-2], GraphSnapshot)
    assert isinstance(answers[0], ForwardSnapshot) is (kind == "the model")
    assert lab.backward.namespace is lab.console.namespace


def test_an_example_has_its_own_names_and_the_next_pass_the_consoles(lab: Lab) -> None:
    source = "x = torch.ones(3, requires_grad=True)\ny = x.sum()"
    ask(lab, RunExampleCommand(source=source, tab="derivatives"))
    ask(lab, StartBackwardCommand(root="y", example="derivatives"))
    assert lab.backward.namespace is lab.console.of("derivatives")
    assert lab.backward.namespace is not lab.console.namespace
    for start in ("a root", "a step of code"):
        ask(lab, STARTS[start](lab))
        assert lab.backward.namespace is lab.console.namespace
    ask(lab, StartBackwardCommand(root="y", example="derivatives"))
    ask(lab, StartForwardCommand(**OF_MLP))
    ask(lab, STARTS["the model"](lab))
    assert lab.backward.namespace is lab.console.namespace


def test_options_of_a_pass_are_those_of_the_command(lab: Lab) -> None:
    for options in ({"real_engine": True}, {"create_graph": True}, {"inputs": ("x",)}, {}):
        fields: dict[str, Any] = options
        command = StartBackwardCommand(root="y", **fields)
        told = ask(lab, command)[-1]
        for name in ("real_engine", "create_graph", "inputs"):
            assert getattr(told, name) == getattr(command, name), name
        ask(lab, MoveBackwardCommand(move="end"))
        ask(lab, RunCellCommand(source="x.grad = None; y = (x * x).sum()"))


def test_the_batch_of_a_step_is_the_one_that_is_asked_for(lab: Lab) -> None:
    net, (x, _) = variable(lab, "net"), variable(lab, "pairs")
    for batch in (0, 2):
        ask(lab, StartBackwardCommand(**STEP, batch=batch))
        ask(lab, MoveBackwardCommand(move="end"))
        gradient: Any = lab.backward.require().gradient_of("weight")
        rows = x[2 * batch : 2 * batch + 2]
        (expected,) = torch.autograd.grad(net(rows).square().mean(), net.weight)
        assert torch.equal(gradient, expected)
        assert net.training and net.weight.grad is not None
        net.zero_grad()


def test_looking_at_the_graph_of_a_step_changes_nothing(lab: Lab) -> None:
    ask(lab, RunCellCommand(source="net = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(), net)"))
    net, state = variable(lab, "net"), torch.get_rng_state()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    for command in (ReadForwardGraphCommand(**STEP), StartBackwardCommand(**STEP)):
        assert ask(lab, command)
        assert torch.equal(torch.get_rng_state(), state) and net.training
        for name, tensor in net.state_dict().items():
            assert torch.equal(tensor, before[name])


def test_the_update_is_told_where_an_optimizer_and_a_gradient_are(lab: Lab) -> None:
    ask(lab, StartBackwardCommand(root="y"))
    ask(lab, MoveBackwardCommand(move="end"))
    sgd: dict[str, Any] = {"optimizer": "optim.SGD", "optimizer_params": {"lr": 0.5}}
    fields: dict[str, Any]
    for fields, has_update in (
        ({"of": "gradient", "key": "x", **sgd}, True),
        ({"of": "gradient", "key": "x"}, False),
        ({"of": "parameter", "key": "x", **sgd}, False),
        ({"of": "gradient", "key": "0", **sgd}, False),
    ):
        (told,) = ask(lab, InspectCommand(**fields))
        assert isinstance(told, ValueSnapshot) and (told.of, told.key) == (
            fields["of"], fields["key"],
        )  # fmt: skip
        assert (told.update is not None) is has_update, fields


def test_numbers_of_nodes_come_with_the_position(lab: Lab) -> None:
    ask(lab, StartBackwardCommand(root="y"))
    ask(lab, MoveBackwardCommand(move="step"))
    ask(lab, MoveBackwardCommand(move="step"))
    (told,) = ask(lab, GraphNumbersCommand(nodes=(0, 1)))
    assert told.position == 2 and len(told.numbers) == 2
