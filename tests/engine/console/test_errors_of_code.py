"""Errors of a subject of code: each room that runs it tells the user's line, and shows no frame of
this program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.project.document import Model, TrainingSetup
from engine.project.subject import ConsoleSubject, FileSubject, Objective, Subject
from engine.protocol import (
    CheckSnapshot,
    CheckTrainingCommand,
    Command,
    CompareSubjectsCommand,
    ErrorReport,
    ExportCommand,
    FlowCommand,
    KeepBeforeCommand,
    LandscapeCommand,
    MeasureStepCommand,
    ReadForwardGraphCommand,
    ReadPredictionsCommand,
    ReadStructureCommand,
    RunCellCommand,
    RunFileCommand,
    Snapshot,
    StartBackwardCommand,
    StartTraceCommand,
    TraceMemoryCommand,
    TrainCommand,
)
from engine.server.session import Session

MODULE = str(Path("torch") / "nn" / "modules" / "module.py")
OURS = str(Path(__file__).parents[3] / "engine")
FILE = """\
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 1)
    def forward(self, x):
        if torch.is_tensor(x):
            raise ValueError("not yet")

def step(model, batch):
    x, y = batch
    return F.mse_loss(model(x), y)

data = torch.randn(16, 4), torch.randn(16, 1)
"""
CALL = "Net()(torch.ones(2, 4))"
RAISES = 11
COMMANDS = (
    TrainCommand,
    TraceMemoryCommand,
    MeasureStepCommand,
    LandscapeCommand,
    ReadPredictionsCommand,
    StartBackwardCommand,
    ReadForwardGraphCommand,
    FlowCommand,
    ReadStructureCommand,
    CompareSubjectsCommand,
    ExportCommand,
)


def reports(said: list[Snapshot]) -> list[ErrorReport]:
    found = (getattr(each, name, None) for each in said for name in ("error", "unrun"))
    return [each for each in found if isinstance(each, ErrorReport)]


def asked(kind: type[Command], path: Path, subject: Subject | None = None) -> Command:
    given: dict[str, Any] = {
        "model": Model(),
        "training": TrainingSetup(batch_size=8, epochs=1),
        "subject": subject or FileSubject(str(path), "Net"),
        "objective": Objective(data="data"),
        "points": 3,
        "format": "pt2",
        "path": str(path.with_suffix(".pt2")),
        "part": "training",
    }
    return kind(id=9, **{k: v for k, v in given.items() if k in kind.__struct_fields__})


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Snapshot]]:
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr("sys.path", list(sys.path))
    yield []
    sys.modules.pop("net", None)


def check(report: ErrorReport, file: str, line: int) -> None:
    assert (report.type, report.message) == ("ValueError", "not yet")
    assert report.line == line
    assert f'File "{file}", line {line}' in report.traceback
    assert OURS not in report.traceback
    first = report.traceback.splitlines()[1]
    assert first.startswith(f'  File "{file}"') or first.startswith('  File "<cell')


@pytest.mark.parametrize("kind", COMMANDS, ids=lambda kind: kind.__name__)
def test_a_room_shows_the_users_frames_alone(
    kind: type[Command], said: list[Snapshot], tmp_path: Path
) -> None:
    path = tmp_path / "net.py"
    path.write_text(FILE)
    session = Session(said.append)
    session.handle(RunFileCommand(id=1, path=str(path)))
    session.handle(KeepBeforeCommand(id=2, subject=FileSubject(str(path), "Net")))
    assert reports(said) == []
    session.handle(asked(kind, path))
    while session.advance():
        pass
    (report,) = reports(said)
    check(report, str(path), RAISES)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(ReadStructureCommand, torch.complex64), (ReadPredictionsCommand, torch.float16)],
)
def test_a_model_of_torchs_own_layers_alone(
    kind: type[Command], dtype: torch.dtype, said: list[Snapshot], tmp_path: Path
) -> None:
    """The traceback has no frame of the user's, and begins with the call of the model."""
    session = Session(said.append)
    cell = f"net, data = nn.Linear(4, 1, dtype={dtype}), (torch.ones(16, 4), torch.ones(16, 1))"
    session.handle(RunCellCommand(id=1, source=cell))
    command = asked(kind, tmp_path / "x.py", ConsoleSubject("net"))
    with pytest.raises(RuntimeError) as plain:
        torch.nn.Linear(4, 1, dtype=dtype)(torch.ones(16, 4))
    session.handle(command)
    (report,) = reports(said)
    assert report.message == str(plain.value) and report.line is None
    assert "Both operands must have one dtype here" in report.hint
    assert OURS not in report.traceback
    assert MODULE in report.traceback.splitlines()[1]


def test_each_check_that_runs_the_code_tells_its_line(said: list[Snapshot], tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(FILE)
    session = Session(said.append)
    session.handle(RunFileCommand(id=1, path=str(path)))
    session.handle(asked(CheckTrainingCommand, path))
    checks = [each.check for each in said if isinstance(each, CheckSnapshot)]
    assert {check.kind for check in checks if check.verdict == "error"} == {
        "labels", "first_loss", "unreached", "modes", "one_batch", "rates",
    }  # fmt: skip
    for check in checks[2:]:
        assert check.text == "This cannot be checked: ValueError: not yet"
        assert check.evidence == f'{path}:{RAISES}: raise ValueError("not yet")'


@pytest.mark.parametrize("kind", [RunFileCommand, RunCellCommand, StartTraceCommand])
def test_so_do_a_file_a_cell_and_a_trace(
    kind: type[Command], said: list[Snapshot], tmp_path: Path
) -> None:
    path, source = tmp_path / "net.py", FILE + CALL
    path.write_text(source)
    session = Session(said.append)
    session.handle(
        RunFileCommand(path=str(path)) if kind is RunFileCommand else kind(source=source)
    )
    report = reports(said)[-1]
    check(report, str(path) if kind is RunFileCommand else "<cell 1>", RAISES)
