"""Findings about a run of Train on code, and none about eight models that are right."""

from __future__ import annotations

import pytest
import torch

from engine.handlers.training import train as training_handlers
from engine.lab import Lab
from engine.project.cells import source_title
from engine.project.document import Model, TrainingSetup, replace
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    Finding,
    FindingSnapshot,
    RunFileCommand,
    Snapshot,
    TrainCommand,
    TrainingSnapshot,
)
from engine.server.session import handler_of
from tests.engine.advice.desk import Desk
from tests.engine.subjects.eight import CASES, SETUP, Case

BEGIN = """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
data = torch.utils.data.TensorDataset(torch.randn(64, 3), torch.randn(64))
"""
STRETCHED = """
def step(batch):
    x, y = batch
    return F.mse_loss(model(x), y)
"""


def trained(lab: Lab, subject, objective: Objective, setup: TrainingSetup) -> list[Finding]:
    """The findings about a run, which ends well."""
    command = TrainCommand(
        id=2, model=Model(), training=setup, subject=subject, objective=objective
    )
    said: list[Snapshot] = []
    lab.emit = said.append
    said += [s for s in training_handlers.train(lab, command) if s is not None]
    end = said[-1]
    assert isinstance(end, TrainingSnapshot)
    assert end.state == "finished", end.error
    found = [s for s in said if isinstance(s, FindingSnapshot)]
    assert all(s.run == end.run for s in found)
    return [s.finding for s in found]


@pytest.mark.filterwarnings("ignore:Using a target size")  # torch's own word on it
def test_a_step_that_broadcasts(desk: Desk) -> None:
    desk.run(BEGIN)
    lab, subject = desk.session.lab, ConsoleSubject("net")
    (found,) = trained(lab, subject, Objective(data="data", step=STRETCHED), SETUP)
    assert (found.kind, source_title(found.file), found.line) == ("broadcast", "step", 4)
    assert found.evidence[:2] == ("prediction (8, 1)", "target (8,)")
    assert found.fix == "return F.mse_loss(model(x), y.unsqueeze(-1))"
    right = STRETCHED.replace("y)", "y.unsqueeze(-1))")
    assert trained(lab, subject, Objective(data="data", step=right), SETUP) == []


def test_modules_in_a_plain_list(desk: Desk) -> None:
    desk.run(
        BEGIN
        + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(3, 3)]
        self.head = nn.Linear(3, 1)
    def forward(self, x):
        return self.head(self.layers[0](x))
lost = Net()
"""
    )
    step = STRETCHED.replace("y)", "y.unsqueeze(-1))")
    found = trained(
        desk.session.lab, ConsoleSubject("lost"), Objective(data="data", step=step), SETUP
    )
    assert [each.kind for each in found] == ["not_trained"]
    assert found[0].text.startswith("`model.layers` is a plain list")


def test_units_that_are_dead(desk: Desk) -> None:
    desk.run(
        BEGIN.replace("nn.Tanh()", "nn.ReLU()")
        + "with torch.no_grad():\n    net[0].bias.fill_(-50)\n"
    )
    step, setup = (
        STRETCHED.replace("y)", "y.unsqueeze(-1))"),
        replace(SETUP, batch_size=16, epochs=20),
    )
    objective = Objective(data="data", step=step)
    found = trained(desk.session.lab, ConsoleSubject("net"), objective, setup)
    assert [each.kind for each in found] == ["dead_units"]


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_units_that_are_dead_are_told_for_small_batches(desk: Desk, batch: int) -> None:
    dead = "with torch.no_grad():\n    net[0].bias.fill_(-50)\n"
    begin = BEGIN.replace("nn.Tanh()", "nn.ReLU()")
    step = STRETCHED.replace("y)", "y.unsqueeze(-1))")
    setup = replace(SETUP, batch_size=batch, epochs=-(-200 * batch // 64))
    objective = Objective(data="data", step=step)
    for more, kinds in ((dead, ["dead_units"]), ("", [])):
        desk.run(begin + more)
        found = trained(desk.session.lab, ConsoleSubject("net"), objective, setup)
        assert [each.kind for each in found] == kinds


def test_looking_over_changes_no_bit(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    step = STRETCHED.replace("y)", "y.unsqueeze(-1))")
    weights = []
    for steps in (65, 0):
        monkeypatch.setattr("engine.advice.first_steps.STEPS", steps)
        desk.run(BEGIN)
        trained(desk.session.lab, ConsoleSubject("net"), Objective(data="data", step=step), SETUP)
        weights.append([p.detach().clone() for p in desk.variables["net"].parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_model_that_is_right(case: Case) -> None:
    lab = Lab(emit=lambda snapshot: None)
    run = RunFileCommand(id=1, path=str(case.path))
    list(handler_of(RunFileCommand)(lab, run))
    assert trained(lab, case.subject, case.objective, SETUP) == []
