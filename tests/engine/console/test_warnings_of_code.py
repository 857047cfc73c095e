"""Warnings and prints of a step of the user's code: each room that runs it tells their lines."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

from engine.lab import Lab
from engine.project.document import Model, TrainingSetup
from engine.project.subject import FileSubject, Objective
from engine.protocol import (
    CheckTrainingCommand,
    Command,
    CompareSubjectsCommand,
    ExportCommand,
    FlowCommand,
    LandscapeCommand,
    MeasureStepCommand,
    OutputSnapshot,
    ReadForwardGraphCommand,
    ReadStructureCommand,
    RunFileCommand,
    Snapshot,
    StartBackwardCommand,
    TraceMemoryCommand,
    TrainCommand,
)
from engine.server.session import handler_of

FILE = """\
import warnings
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 1)
    def forward(self, x):
        warnings.warn("mind")
        return self.head(x)

def step(model, batch):
    x, y = batch
    print("a step")
    return F.mse_loss(model(x), y)

data = torch.randn(16, 4), torch.randn(16)
"""
MIND, STRETCHED = 11, 17


COMMANDS = (
    TrainCommand,
    CheckTrainingCommand,
    TraceMemoryCommand,
    MeasureStepCommand,
    LandscapeCommand,
    StartBackwardCommand,
    ReadForwardGraphCommand,
    FlowCommand,
    ReadStructureCommand,
    CompareSubjectsCommand,
    ExportCommand,
)


@pytest.mark.parametrize("kind", COMMANDS, ids=lambda kind: kind.__name__)
def test_the_lines_are_the_users(
    kind: type[Command], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr("sys.path", list(sys.path))
    path = tmp_path / "net.py"
    path.write_text(FILE)
    said: list[Snapshot] = []
    lab = Lab(emit=said.append)
    list(handler_of(RunFileCommand)(lab, RunFileCommand(id=1, path=str(path))))
    given = {
        "model": Model(),
        "training": TrainingSetup(batch_size=8, epochs=1),
        "subject": FileSubject(str(path), "Net"),
        "objective": Objective(data="data"),
        "points": 3,
        "other": FileSubject(str(path), "Net"),
        "format": "pt2",
        "path": str(path.with_suffix(".pt2")),
        "verify": False,
    }
    command = kind(id=2, **{k: v for k, v in given.items() if k in kind.__struct_fields__})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        list(handler_of(kind)(lab, command))
    lines = {(each.filename, each.lineno) for each in told}
    assert lines == {(str(path), MIND), (str(path), STRETCHED)}
    printed = "".join(each.text for each in said if isinstance(each, OutputSnapshot))
    assert "a step\n" in printed
    del sys.modules["net"]
