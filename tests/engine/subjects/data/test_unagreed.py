"""Commands about a document whose Python the user has not agreed to use none of it."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

from engine.handlers.subjects.find import find_subject
from engine.project.document import DataSetup, Loading, Model, TrainingSetup, replace
from engine.project.subject import CanvasSubject, ConsoleSubject, FileSubject, Objective
from engine.protocol import (
    Command,
    DescribeDataCommand,
    ErrorSnapshot,
    ReadStructureCommand,
    RunCellCommand,
    RunFileCommand,
    Snapshot,
    TrainCommand,
    WriteStepCommand,
)
from engine.server.session import Session
from engine.subjects import state as subject_state

CELLS = """
ran = []
class Net(nn.Linear):
    def __init__(self):
        ran.append("made")
        super().__init__(4, 3)
net = nn.Linear(4, 3)
def pair():
    ran.append("called")
    return torch.ones(8, 4), torch.arange(8) % 3
"""


class Desk:
    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []
        self.session = Session(self.snapshots.append)
        self.ask(RunCellCommand(source=CELLS))

    def ask(self, command: Command) -> list[Snapshot]:
        self.snapshots.clear()
        self.session.handle(command)
        while self.session.advance():
            pass
        return self.snapshots

    @property
    def ran(self) -> list[str]:
        return self.session.lab.console.namespace.variables["ran"]


@pytest.fixture
def desk() -> Desk:
    return Desk()


CONSOLE = DataSetup("console", path="pair")
SETUP = TrainingSetup(epochs=1, batch_size=4)
NAMED = Objective(
    data="pair()", step="def step(batch): ran.append('step'); return model.bias.sum()"
)


@pytest.mark.parametrize(
    "command",
    [
        ReadStructureCommand(subject=ConsoleSubject("Net")),
        ReadStructureCommand(subject=ConsoleSubject("net"), objective=NAMED, training=SETUP),
        WriteStepCommand(subject=ConsoleSubject("net"), objective=NAMED, training=SETUP),
        TrainCommand(model=Model(), subject=ConsoleSubject("net"), objective=NAMED, training=SETUP),
        DescribeDataCommand(data=CONSOLE),
    ],
)
def test_nothing_is_looked_up_or_called(desk: Desk, command: Command, tmp_path: Path) -> None:
    if isinstance(command, TrainCommand):
        command = TrainCommand(
            model=Model(), subject=command.subject, objective=NAMED, training=SETUP,
            folder=str(tmp_path / "run"),
        )  # fmt: skip
    fields = {name: getattr(command, name) for name in command.__struct_fields__}
    answers = desk.ask(type(command)(**{**fields, "unagreed": True}))
    errors = [each for each in answers if isinstance(each, ErrorSnapshot)]
    told = errors[0].error if errors else answers[-1].error  # type: ignore[attr-defined]
    assert "Nothing of it runs until you say so." in told.message
    assert "Allow its Python" in told.hint and "--run-cells" in told.hint
    assert desk.ran == []
    desk.ask(command)
    assert desk.ran or isinstance(command, ReadStructureCommand)


def test_a_file_of_a_model_is_not_loaded(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, loaded = tmp_path / "net.pt", []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated
        torch.jit.save(torch.jit.script(nn.Linear(2, 1)), path)
    load = subject_state.load_model
    monkeypatch.setattr(subject_state, "load_model", lambda p: loaded.append(p) or load(p))
    subject = FileSubject(str(path), "model")
    (answer,) = desk.ask(ReadStructureCommand(subject=subject, unagreed=True))
    assert isinstance(answer, ErrorSnapshot) and loaded == []
    assert not isinstance(desk.ask(ReadStructureCommand(subject=subject))[-1], ErrorSnapshot)
    assert loaded == [path]


def test_nor_is_an_expression_of_a_file_that_has_run_computed(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "own_code.py"
    path.write_text("from torch import nn\nran = []\ndef make(n):\n    ran.append(n)\n"
                    "    return nn.Linear(n, 1)\n")  # fmt: skip
    desk.ask(RunFileCommand(path=str(path)))
    ran = desk.session.lab.subjects.file(path).variables["ran"]
    subject = FileSubject(str(path), "make(3)")
    (answer,) = desk.ask(ReadStructureCommand(subject=subject, unagreed=True))
    assert isinstance(answer, ErrorSnapshot) and ran == []
    desk.ask(ReadStructureCommand(subject=subject))
    assert ran == [3]


@pytest.mark.parametrize(
    "name", ["sampler", "batch_sampler", "worker_init_fn", "generator", "collate_fn"]
)
def test_the_objects_of_a_loader_are_not_looked_up(desk: Desk, name: str) -> None:
    loading = replace(Loading(), **{name: "pair()"})
    setup = TrainingSetup(data=DataSetup(loading=loading))
    lab = desk.session.lab
    lab.unagreed = True
    with pytest.raises(Exception, match="Nothing of it runs until you say so"):
        find_subject(lab, CanvasSubject(), training=setup).given_objects()
    assert desk.ran == []


def test_each_command_says_it_for_itself(desk: Desk) -> None:
    desk.ask(DescribeDataCommand(data=CONSOLE, unagreed=True))
    assert desk.session.lab.unagreed is False
    cell = RunCellCommand(source="y = net(torch.ones(1, 4))", unagreed=True)
    assert not any(isinstance(each, ErrorSnapshot) for each in desk.ask(cell))
    assert desk.ran == []
