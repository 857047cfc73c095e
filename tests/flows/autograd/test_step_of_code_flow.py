"""A step of a module of the console is stepped backward in Step through."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtWidgets import QLabel
from torch import nn

from engine.project import edits
from engine.project.subject import CanvasSubject, ConsoleSubject, Objective
from engine.protocol import (
    BackwardSnapshot,
    ComparisonSnapshot,
    ForwardSnapshot,
    GraphNumbersCommand,
    GraphNumbersSnapshot,
    GraphSnapshot,
    SetBreakpointsCommand,
    Snapshot,
)

pytestmark = pytest.mark.one_program

CODE = """
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
data = (torch.linspace(-1, 1, 40).reshape(10, 4), torch.ones(10, 1))
"""


@pytest.fixture
def code(program):
    """The program with a subject of its console, and Step through in front."""
    program.workspaces.run_python(CODE)
    program.bench.link.drain()
    program.subject.choose(ConsoleSubject("model"))
    objective = Objective(data="data")
    program.bench.edit("Set the data", lambda p: edits.set_objective(p, objective))
    program.workspaces.at_passes()
    return program


def test_the_bar_steps_the_loss_of_one_step_backward_to_torchs_gradients(code):
    bench, bar = code.bench, code.workspaces.autograd.page.steps.bar
    bar.step_requested.emit()
    bench.link.drain()
    graph = bench.newest(GraphSnapshot)
    assert graph is not None and bench.newest(ForwardSnapshot) is None
    assert {node.name for node in graph.nodes} >= {"MseLossBackward0", "TanhBackward0"}
    bar.step_requested.emit()
    bench.link.drain()
    assert bench.newest(BackwardSnapshot).position == 1
    bar.run_requested.emit()
    bench.link.drain()
    bar.compare_requested.emit()
    bench.link.drain()
    compared = bench.newest(ComparisonSnapshot)
    assert compared is not None and compared.max_difference == 0.0

    torch.manual_seed(3)
    plain = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    x = torch.linspace(-1, 1, 40).reshape(10, 4)
    torch.manual_seed(bench.project.training.seed)
    (batch,) = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, torch.ones(10, 1)), 64, shuffle=True
    )
    nn.functional.mse_loss(plain(batch[0]), batch[1]).backward()
    model = bench.link._session.lab.console.namespace.variables["model"]
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        assert theirs.grad is not None and torch.equal(ours.grad, theirs.grad)


def test_a_finished_pass_keeps_its_gradients_when_train_has_stepped(code):
    bench, steps = code.bench, code.workspaces.autograd.page.steps
    steps.bar.run_requested.emit()
    bench.link.drain()
    done = bench.newest(BackwardSnapshot)
    assert done.next is None and done.step.grad_after is not None
    model = bench.link._session.lab.console.namespace.variables["model"]
    gradients = [p.grad.clone() for p in model.parameters()]
    graph = bench.newest(GraphSnapshot)
    leaves = tuple(node.id for node in graph.nodes if node.kind == "leaf")

    def numbers() -> list:
        told: list[Snapshot] = []
        bench.link.snapshot.connect(told.append)
        asked = bench.link.send(GraphNumbersCommand(nodes=leaves))
        bench.link.drain()
        bench.link.snapshot.disconnect(told.append)
        (found,) = [each for each in told if each.reply_to == asked]
        assert isinstance(found, GraphNumbersSnapshot)
        return [(each.grad, each.values) for each in found.numbers]

    before = numbers()
    code.workspaces.at_train().step()
    bench.link.drain()
    code.workspaces.at_train().step()
    bench.link.drain()
    assert not any(
        torch.equal(p.grad, g) for p, g in zip(model.parameters(), gradients, strict=True)
    )
    code.workspaces.at_passes()
    bench.send(SetBreakpointsCommand(breakpoints=()))
    bench.link.drain()
    told = bench.newest(BackwardSnapshot)
    assert told.step == done.step and told.gradients == done.gradients
    assert numbers() == [(grad, (None,)) for grad, _ in before]  # the weights of then are gone


def test_a_forward_step_says_where_to_go_and_another_subject_ends_the_pass(code):
    code.workspaces.at_passes().step_forward()
    assert "runs in one piece" in code.window.statusBar().currentMessage()
    revision = code.bench.store.revision
    code.subject.choose(CanvasSubject())
    assert code.bench.store.revision == revision + 1


def test_a_step_that_fails_is_told_in_place(code):
    wrong = Objective(data="data", step="def step(batch):\n    return model(batch[1]).mean()")
    code.bench.edit("Edit the step", lambda p: edits.set_objective(p, wrong))
    steps = code.workspaces.autograd.page.steps
    steps.bar.start_requested.emit()
    code.bench.link.drain()
    assert code.bench.newest(GraphSnapshot) is None
    assert any("mat1 and mat2 shapes cannot be multiplied" in text for text in texts(steps))


def texts(widget) -> list[str]:
    return [label.text() for label in widget.findChildren(QLabel) if label.isVisible()]
