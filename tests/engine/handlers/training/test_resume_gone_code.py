"""Resume of a run whose Python file is gone: the engine tells which copy has to run first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.errors import LabError
from engine.lab import Lab
from engine.project.document import Model, TrainingSetup, replace
from engine.project.subject import FileSubject, Objective
from engine.protocol import CheckpointSnapshot, FindCheckpointCommand, RunFileCommand, TrainCommand
from engine.session import handler_of

NET = """
import torch
from torch import nn

data = torch.ones(12, 3), torch.arange(12) % 2
Net = lambda: nn.Linear(3, 2)
"""
SETUP = TrainingSetup(batch_size=4, epochs=1, seed=3)


def ask(lab: Lab, command: Any) -> Any:
    *_, last = handler_of(type(command))(lab, command)
    return last


def new_lab() -> Lab:
    return Lab(emit=lambda snapshot: None)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path / "none"))
    path = tmp_path / "net.py"
    path.write_text(NET)
    return path


def test_a_copy_runs_before_the_checkpoint_is_found(path: Path, tmp_path: Path) -> None:
    subject, runs = FileSubject(str(path), "Net()"), str(tmp_path / "runs")
    train = TrainCommand(
        model=Model(), training=SETUP, subject=subject, objective=Objective("data"), runs=runs
    )
    ask(first := new_lab(), RunFileCommand(path=str(path)))
    assert ask(first, train).state == "finished"
    weight = first.run.loop.model.weight.detach().clone()
    find = FindCheckpointCommand(model=Model(), training=SETUP, subject=subject, runs=runs)

    lab = new_lab()
    with pytest.raises(LabError, match="has not run"):  # the file is there: nothing is to be copied
        ask(lab, find)
    path.unlink()
    (copy,) = ask(lab, find).copies
    assert copy.path == str(path) and Path(copy.copy).read_text() == NET
    ask(lab, RunFileCommand(path=copy.path, copy=copy.copy, digest=copy.digest))
    found = ask(lab, find)
    assert isinstance(found, CheckpointSnapshot) and found.copies == () and found.path
    again = replace(train, training=replace(SETUP, epochs=2), checkpoint=found.path)
    assert ask(lab, again).state == "finished" and lab.run.loop.step == 6
    assert not torch.equal(lab.run.loop.model.weight, weight)


def test_a_damaged_copy_is_not_offered(path: Path, tmp_path: Path) -> None:
    subject, runs = FileSubject(str(path), "Net()"), tmp_path / "runs"
    ask(first := new_lab(), RunFileCommand(path=str(path)))
    train = TrainCommand(
        model=Model(), training=SETUP, subject=subject, objective=Objective("data"), runs=str(runs)
    )
    ask(first, train)
    path.unlink()
    (copy,) = runs.glob("*/code/net.py")
    copy.write_text(NET + "# another\n")
    find = FindCheckpointCommand(model=Model(), training=SETUP, subject=subject, runs=str(runs))
    with pytest.raises(LabError, match="has not run"):
        ask(new_lab(), find)
