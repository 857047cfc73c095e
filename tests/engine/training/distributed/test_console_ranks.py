"""Data and models of the console, trained by two real processes as by one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from app import templates
from engine.handlers.subjects.find import find_subject, subject_of
from engine.handlers.training.code_files import files_needed
from engine.handlers.training.ranks import console_for
from engine.project.document import DataSetup, Loading, TrainingSetup, replace
from engine.project.machines import NoCommand, train_arguments
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    ErrorSnapshot,
    RunCellCommand,
    TakeConsoleCommand,
    TrainCommand,
    TrainingSnapshot,
)
from engine.server.session import Session

pytestmark = pytest.mark.timeout(600)
MODEL = templates.load_template("mlp").model
CELLS = [
    "shift = 0.5\nx, y = torch.rand(48, 1, 8, 8), torch.arange(48) % 10",
    "class Rows(torch.utils.data.Dataset):\n"
    "    def __init__(self, x, y):\n        self.x, self.y = x, y\n"
    "    def __len__(self):\n        return len(self.x)\n"
    "    def __getitem__(self, row):\n        return self.x[row] - shift, self.y[row]",
    "rows = Rows(x, y)\ndrawn = torch.Generator().manual_seed(3)",
    "halved = lambda samples: torch.utils.data.default_collate([(a / 2, b) for a, b in samples])",
    "class Net(nn.Module):\n"
    "    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(64, 10)\n"
    "    def forward(self, x):\n        return self.fc(x.flatten(1))",
    "def loss_of(batch):\n    x, y = batch\n    return F.cross_entropy(net(x), y)",
    "torch.manual_seed(0)\nnet = Net()\nlost = lambda: 1",
]
OBJECTS = Loading(collate_fn="halved", generator="drawn")


def setup_of(processes: int, **fields) -> TrainingSetup:
    return TrainingSetup(
        processes=processes,
        batch_size=12,
        epochs=2,
        optimizer="optim.SGD",
        optimizer_params={"lr": 0.1},
        **fields,
    )


def canvas(processes: int) -> TrainCommand:
    data = DataSetup("console", path="rows", loading=OBJECTS)
    return TrainCommand(id=50, model=MODEL, training=setup_of(processes, data=data), fresh=True)


def of_console(processes: int) -> TrainCommand:
    step = "def step(batch):\n    return {'loss': loss_of(batch)}"
    return TrainCommand(
        id=50,
        model=MODEL,
        training=setup_of(processes, data=DataSetup(loading=OBJECTS)),
        subject=ConsoleSubject("net"),
        objective=Objective("rows", step=step),
    )


def session_of(cells: list[str] = CELLS) -> tuple[Session, list]:
    told: list = []
    session = Session(told.append)
    for number, cell in enumerate(cells, 1):
        session.handle(RunCellCommand(id=number, source=cell))
    return session, told


def trained(command: TrainCommand) -> dict[str, torch.Tensor]:
    """The weights after the run."""
    torch.manual_seed(1)
    return trained_in(*session_of(), command)


def trained_in(session: Session, told: list, command: TrainCommand) -> dict[str, torch.Tensor]:
    session.handle(command)
    while session.advance():
        pass
    failed = [each for each in told if isinstance(each, ErrorSnapshot)]
    assert not failed, failed
    ended = next(each for each in reversed(told) if isinstance(each, TrainingSnapshot))
    assert ended.state == "finished", ended.error
    found = find_subject(session.lab, command.subject, command.model, command.training)
    weights = {name: t.detach().clone() for name, t in found.module.state_dict().items()}
    session.close()
    return weights


def test_two_processes_train_as_one_on_data_of_the_console(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path))
    one, two = trained(canvas(1)), trained(canvas(2))
    assert one.keys() == two.keys()
    for name, expected in one.items():
        torch.testing.assert_close(two[name], expected, rtol=0, atol=1e-6)


def test_a_model_of_the_console_trains_in_another_process_as_here(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path / "data"))
    torch.manual_seed(1)
    session, _ = session_of()
    command, path = of_console(1), tmp_path / "console.bin"
    path.write_bytes(console_for(subject_of(session.lab, command)))
    session.close()
    other, told = session_of([])
    other.handle(TakeConsoleCommand(id=1, path=str(path)))
    here, there = trained(command), trained_in(other, told, command)
    assert here.keys() == there.keys() == {"fc.weight", "fc.bias"}
    for name, expected in here.items():
        assert torch.equal(there[name], expected), name


def test_what_other_processes_cannot_have_is_refused_with_the_reason() -> None:
    session, told = session_of()
    session.lab.console.namespace.variables["given"] = lambda samples: samples
    data = DataSetup("console", path="rows", loading=Loading(collate_fn="given"))
    session.handle(TrainCommand(id=60, model=MODEL, training=setup_of(2, data=data)))
    while session.advance():
        pass
    error = next(each for each in told if isinstance(each, ErrorSnapshot)).error
    assert "Another process cannot have `given` of the console" in error.message
    session.close()


def test_only_what_is_named_is_handed() -> None:
    session, _ = session_of()
    plain = TrainCommand(model=MODEL, training=setup_of(2))
    assert console_for(subject_of(session.lab, plain)) == b"" and files_needed(plain) == []
    named = Loading(sampler="mine.py:s")
    of_file = DataSetup("console", path="own.py:rows", loading=named)
    command = TrainCommand(model=MODEL, training=setup_of(2, data=of_file))
    assert console_for(subject_of(session.lab, command)) == b""
    assert files_needed(command) == ["own.py", "mine.py"]
    session.close()


def test_other_machines_do_not_have_the_console() -> None:
    project = templates.load_template("mlp")
    for data in (DataSetup("console", path="rows"), DataSetup(loading=OBJECTS)):
        changed = replace(project, training=setup_of(2, data=data))
        with pytest.raises(NoCommand, match="objects of the console"):
            train_arguments(changed, "net.tlab")
