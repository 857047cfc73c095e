"""Gradient flow of a module of code: a copy is trained, against plain torch."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from engine.project.document import Model, TrainingSetup
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import FlowCommand, FlowSnapshot, RunCellCommand

CODE = """
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
x = torch.randn(40, 4)
data = (x, x.sum(1))
"""


def flow(ask, step: str = "") -> list[FlowSnapshot]:
    command = FlowCommand(
        model=Model(),
        training=TrainingSetup(batch_size=16, seed=5),
        subject=ConsoleSubject("model"),
        objective=Objective(data="data", step=step),
        steps=4,
        initialisations=("default", "zeros"),
    )
    return ask(command)


def test_norms_and_losses_are_those_of_plain_torch(lab, ask):
    ask(RunCellCommand(source=CODE))
    model = lab.console.namespace.variables["model"]
    before = {key: value.clone() for key, value in model.state_dict().items()}
    answers = flow(ask)
    assert all(torch.equal(model.state_dict()[key], value) for key, value in before.items())
    assert all(parameter.grad is None for parameter in model.parameters())
    default, zeros = (
        [a for a in answers if a.initialisation == name][-1] for name in ("default", "zeros")
    )
    assert default.layers == ("0", "2") and default.steps == 4 and default.activations == ("1",)

    x, y = lab.console.namespace.variables["data"]
    plain = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    plain.load_state_dict(before)
    torch.manual_seed(5)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 16, shuffle=True)
    optimizer = torch.optim.Adam(plain.parameters())
    losses, batches = [], [*loader, *loader][:4]
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(plain(x)[:, 0], y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert default.losses == pytest.approx(losses)
    norms = [torch.cat([p.grad.flatten() for p in plain[i].parameters()]).norm() for i in (0, 2)]
    assert default.norms == pytest.approx([float(norm) for norm in norms], rel=1e-5)
    assert zeros.norms[0] == 0.0  # no gradient passes a layer of zeros


def test_a_step_may_run_its_own_module(lab, ask):
    ask(RunCellCommand(source=CODE + "def step(batch):\n    return model(batch[0]).sum()\n"))
    model = lab.console.namespace.variables["model"]
    before = {key: value.clone() for key, value in model.state_dict().items()}
    assert len(set(flow(ask)[-1].losses)) > 1
    assert all(torch.equal(model.state_dict()[key], value) for key, value in before.items())
    ask(RunCellCommand(source="def step(model, batch):\n    return model(batch[0]).sum()\n"))
    assert flow(ask)[-1].losses
    ask(RunCellCommand(source="def step(batch):\n    return model(batch[0]).sum()\n"))
    assert flow(ask, "def step(batch):\n    return model(batch[0]).mean()")[-1].losses


def test_a_module_with_a_tensor_that_deepcopy_refuses_is_trained_too(lab, ask):
    ask(RunCellCommand(source=CODE + "model.kept = kept = model[0].weight * 2"))
    assert flow(ask)[-1].steps == 4
    variables = lab.console.namespace.variables
    assert variables["model"].kept is variables["kept"]
