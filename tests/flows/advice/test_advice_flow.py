"""A cell with a mistake that torch does not tell: its note, dismissed, muted and shown again."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QToolButton

from engine.project import edits
from engine.project.subject import FileSubject, Objective

pytestmark = pytest.mark.one_program

BEGIN = """
torch.manual_seed(0)
net, x, y = nn.Linear(3, 1), torch.randn(8, 3), torch.randn(8)
"""
MODEL = """
import torch
from torch import nn
net = nn.Linear(3, 1)
data = torch.utils.data.TensorDataset(torch.randn(64, 3), torch.randn(64))
"""
STEP = "def step(batch):\n    x, y = batch\n    return F.mse_loss(model(x), y)\n"
STRETCHED = "loss = ((net(x) - y) ** 2).mean()\nloss.backward()"
SOFTMAX = "F.cross_entropy(nn.Linear(3, 2)(x).softmax(1), y.long().clamp(0, 1)).backward()"


def kinds(program) -> list[str]:
    notes = program.workspaces.tensors.page.console.output.notes()
    return [note.finding.kind for note in notes]


def run(program, source: str) -> list[str]:
    program.workspaces.run_python(source)
    program.bench.link.drain()
    return kinds(program)


def test_a_note_is_shown_muted_and_shown_again(program) -> None:
    program.workspaces.at_tensors()
    assert run(program, BEGIN) == []
    assert run(program, STRETCHED) == ["broadcast"]
    assert run(program, SOFTMAX) == ["broadcast", "softmax"]
    note = program.workspaces.tensors.page.console.output.notes()[0]
    assert note.finding.fix == "loss = ((net(x) - y.unsqueeze(-1)) ** 2).mean()"
    action = program.bench.actions["tensors.show_muted_advice"]
    assert not action.isEnabled()
    note.findChild(QToolButton, "finding_mute").click()
    assert kinds(program) == ["softmax"]
    assert program.bench.settings.muted_advice == ("broadcast",)
    assert run(program, STRETCHED) == ["softmax"]
    assert action.isEnabled()
    action.trigger()
    assert run(program, STRETCHED) == ["softmax", "broadcast"]
    assert not action.isEnabled()


def test_a_file_that_runs_gets_its_notes_in_the_console(program, tmp_path) -> None:
    file = tmp_path / "fit.py"
    file.write_text(f"import torch\nfrom torch import nn\n{BEGIN}{STRETCHED}\n", encoding="utf-8")
    program.python_files.run(str(file))
    program.bench.link.drain()
    assert kinds(program) == ["broadcast"]
    (note,) = program.workspaces.tensors.page.console.output.notes()
    assert (note.finding.file, note.finding.line) == (str(file), 6)


@pytest.mark.filterwarnings("ignore:Using a target size")  # torch's own word on it
def test_a_run_of_code_has_its_notes_beside_it(program, tmp_path) -> None:
    file = tmp_path / "model.py"
    file.write_text(MODEL, encoding="utf-8")
    program.python_files.run(str(file))
    program.bench.link.drain()
    store = program.bench.store
    project = edits.set_subject(store.project, FileSubject(str(file), "net"))
    objective = Objective(data="data", step=STEP)
    store.set_project(edits.set_objective(project, objective))
    train = program.workspaces.at_train()
    train.train()
    program.bench.link.drain()
    (note,) = train.view.findings.notes()
    assert (note.finding.kind, note.finding.line) == ("broadcast", 3)
    assert kinds(program) == []
    note.findChild(QToolButton, "finding_mute").click()
    assert train.view.findings.notes() == [] and train.view.findings.isHidden()
