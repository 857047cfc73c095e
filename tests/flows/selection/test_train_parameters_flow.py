"""The table of parameters beside Train's plots: torch's numbers, and a way to all other views."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtCore import Qt
from torch import nn

from app.selection.references import Parameter
from engine.project import edits
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import ReadParametersCommand, TrainingSnapshot
from tests.flows.selection.lit import WAIT_MS, drained
from tests.flows.selection.test_show_in_flow import menu_of
from tests.labels import said
from widgets import theme
from widgets.structure import weights_model as columns
from widgets.text import format_number

pytestmark = pytest.mark.one_program

CELL = """\
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
net.spare = nn.Parameter(torch.ones(2))
net[0].bias.requires_grad_(False)
data = (torch.linspace(-1, 1, 48).reshape(16, 3), torch.ones(16, 1))
"""


@pytest.fixture
def net(program):
    """The program with a module of its console as the subject, and Train in front."""
    program.workspaces.run_python(CELL)
    program.bench.link.drain()
    program.subject.choose(ConsoleSubject("net"))
    objective = Objective(data="data")
    program.bench.edit("Set the data", lambda p: edits.set_objective(p, objective))
    program.workspaces.at_train()
    program.bench.link.drain()
    return program


def cells(program, column: int) -> dict[str, str]:
    model = program.workspaces.train.view.parameters.table.filter
    return {
        model.index(row, columns.NAME).data(): model.index(row, column).data()
        for row in range(model.rowCount())
    }


def plain(steps: int) -> nn.Module:
    return plain_run(steps)[0]


def plain_run(steps: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    """The module after so many steps of Adam on its one batch, and Adam."""
    names: dict = {"nn": nn, "torch": torch}
    exec(CELL, names)
    module, (x, y) = names["net"], names["data"]
    optimizer = torch.optim.Adam([p for p in module.parameters() if p.requires_grad])
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(module(x), y).backward()
        optimizer.step()
    return module, optimizer


def train(program, steps: int) -> None:
    view = program.workspaces.train.view
    for _ in range(steps):
        view.bar.step_requested.emit()
        program.bench.link.drain()
    assert program.bench.newest(TrainingSnapshot).step == steps


def test_its_rows_are_torchs_and_lead_to_the_other_views(net, qtbot):
    view = net.workspaces.train.view
    view.bar.parameters.click()
    net.bench.link.drain()
    module = plain(steps=2)
    assert list(cells(net, columns.NAME)) == [name for name, _ in module.named_parameters()]
    train(net, 2)
    qtbot.waitUntil(
        lambda: drained(net) and cells(net, columns.UPDATE)["0.weight"] != "–", timeout=WAIT_MS
    )
    train_gradients = cells(net, columns.GRADIENT)
    for name, p in module.named_parameters():
        told = train_gradients[name]
        if p.grad is None:
            assert told == ("none" if p.requires_grad else "")
        else:
            assert told == format_number(float(p.grad.norm()), 3)
    assert cells(net, columns.OPTIMIZER) == {
        name: "Adam" if p.requires_grad else "none" for name, p in module.named_parameters()
    }
    model, colors = view.parameters.table.model, theme.current()
    red = [
        row.name
        for place, row in enumerate(model.rows)
        if model.data(model.index(place, columns.GRADIENT), Qt.ItemDataRole.ForegroundRole)
        == colors.color("error")
    ]
    assert red == ["spare"]

    view.parameters.table.choose("2.weight")
    assert net.bench.selection.current == Parameter("2.weight")
    new_pass = "Autograd graph of a new pass"
    assert list(menu_of(net, "parameters")) == ["Model", new_pass, "Values", "Storage"]
    net.bench.selection.choose(Parameter("spare"), "structure")
    assert [row.name for row in view.parameters.table.chosen] == ["spare"]
    net.workspaces.at_tensors()
    menu_of(net, "structure")["Train"]()
    assert net.window.workspace == "train" and view.parameters.isVisible()


def test_the_element_of_a_chosen_row_is_torchs(net, qtbot):
    view = net.workspaces.train.view
    view.bar.parameters.click()
    net.bench.link.drain()
    train(net, 2)
    qtbot.waitUntil(lambda: drained(net) and "2.weight" in cells(net, columns.NAME))
    view.parameters.table.choose("2.weight")
    net.bench.link.drain()
    numbers = dict(view.parameters.element._numbers.rows())
    module, optimizer = plain_run(steps=2)
    weight = module.get_parameter("2.weight")
    place = int(weight.grad.abs().argmax())
    told = said(view.parameters.element, "element_title")
    assert told == f"2.weight[0, {place}] · Adam"
    assert float(numbers["gradient"]) == pytest.approx(weight.grad[0, place].item(), rel=1e-6)
    assert float(numbers["value"]) == pytest.approx(weight[0, place].item(), rel=1e-6)
    assert numbers["step"] == "2" and float(numbers["lr"]) == 0.001
    optimizer.step()
    assert float(numbers["= value after"]) == pytest.approx(weight[0, place].item(), rel=1e-6)


def test_it_asks_nothing_while_it_is_hidden(net, qtbot, monkeypatch):
    asked: list[str] = []
    send = net.bench.link.send

    def noted(command):
        asked.append(type(command).__name__)
        return send(command)

    monkeypatch.setattr(net.bench.link, "send", noted)
    train(net, 2)
    assert ReadParametersCommand.__name__ not in asked
    view = net.workspaces.train.view
    view.bar.parameters.click()
    assert asked.count(ReadParametersCommand.__name__) == 1
    net.bench.link.drain()
    view.bar.parameters.click()
    asked.clear()
    train_more = view.bar.step_requested
    train_more.emit()
    net.bench.link.drain()
    assert "StepTrainingCommand" in asked and ReadParametersCommand.__name__ not in asked


def test_the_choice_to_show_it_is_remembered(net):
    net.workspaces.train.view.bar.parameters.click()
    assert net.bench.settings.train_parameters


def test_what_cannot_be_read_is_told(net):
    view = net.workspaces.train.view
    view.bar.parameters.click()
    net.subject.choose(ConsoleSubject("nothing"))
    net.bench.link.drain()
    assert "nothing" in view.parameters.trouble.text()
