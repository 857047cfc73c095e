"""`--hold-out` and `--loss`: what a module of code is validated on, and the loss of its step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from app.commands.failures import CommandFailure
from app.commands.objective import with_objective
from app.commands.target import target_of
from engine.handlers.training.as_rank import digest_of
from engine.project import files
from engine.project.document import DataSetup, Model, Project, TrainingSetup
from engine.project.machines import train_arguments
from engine.project.subject import FileSubject, Objective
from engine.protocol import TrainCommand
from engine.runs.record import load
from tests.app.commands.test_cli import MLP, run

pytestmark = pytest.mark.usefixtures("forked_processes")

NET = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Linear):
    def __init__(self):
        super().__init__(3, 1)

def step(batch):
    raise ValueError("the chosen loss has a step of its own")

g = torch.Generator().manual_seed(1)
x = torch.randn(40, 3, generator=g)
data = x, x.sum(1, keepdim=True)
loader = DataLoader(TensorDataset(*data), 8)
"""
HUBER = "HuberLoss(delta=0.25)"


@pytest.fixture
def net(tmp_path: Path) -> Path:
    file = tmp_path / "net.py"
    file.write_text(NET)
    return file


def test_a_share_validates_and_the_loss_is_the_one_that_is_named(
    net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out, script = tmp_path / "run", tmp_path / "net.pt", tmp_path / "train.py"
    options = ("--data", "data", "--hold-out", 0.3, "--loss", HUBER, "--epochs", 3, "--seed", 2)
    files_out = ("--run", folder, "--out", out, "--script", script, "--json")
    assert run("train", f"{net}:Net", *options, *files_out) == 0
    report = json.loads(capsys.readouterr().out)

    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(1))
    y = x.sum(1, keepdim=True)
    training, validation = train_test_split(torch.arange(40), test_size=0.3, random_state=0)
    torch.manual_seed(2)
    model, loss_fn = nn.Linear(3, 1), nn.HuberLoss(delta=0.25)
    torch.manual_seed(2)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        for part, wanted in DataLoader(TensorDataset(x[training], y[training]), 64, shuffle=True):
            optimizer.zero_grad()
            loss_fn(model(part), wanted).backward()
            optimizer.step()
    learnt = torch.load(out)
    assert all(torch.equal(learnt[name], value) for name, value in model.state_dict().items())
    assert report["val_loss"] == loss_fn(model(x[validation]), y[validation]).item()
    assert "nn.HuberLoss(delta=0.25)(prediction, y)" in script.read_text()

    assert run("runs", folder, "--json") == 0
    (listed,) = json.loads(capsys.readouterr().out)["runs"]
    assert listed["settings"]["loss"] == "nn.HuberLoss" and listed["objective"]["loss_of_setup"]
    assert listed["settings"]["data"]["validation_fraction"] == 0.3
    for option in (("--hold-out", 0.3), ("--loss", HUBER)):
        assert run("train", "--run", folder, "--resume", *option) == 2
        assert "--hold-out, --loss" in capsys.readouterr().err
    assert run("train", "--run", folder, "--resume", "--epochs", 4) == 2
    assert "names Python" in capsys.readouterr().err
    assert run("train", "--run", folder, "--resume", "--run-cells", "--epochs", 4, "--json") == 0
    assert json.loads(capsys.readouterr().out)["begins"]["step"] == 3


def test_they_are_put_over_the_settings_of_a_project(net: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings.tlab"
    data = DataSetup("iris", split_seed=3, stratified=False)
    setup = TrainingSetup(data=data, loss="nn.HuberLoss", loss_params={"delta": 0.5})
    chosen = Objective("data", step="", loss_of_setup=True)
    subject = FileSubject(str(net), "Net")
    project = Project(training=setup, subject=subject, objective=chosen)
    files.save(project, settings)

    target = target_of(f"{net}:Net", data="data", settings=settings)
    assert (target.objective, target.project.training) == (chosen, setup)
    assert with_objective(target, None, None) == target
    found = with_objective(target, 0.4, "torch.nn.SmoothL1Loss(reduction='sum')")
    assert found.objective == Objective("data", loss_of_setup=True)
    trained = found.project.training
    assert (trained.loss, trained.loss_params) == ("nn.SmoothL1Loss", {"reduction": "sum"})
    assert trained.data == DataSetup(
        "iris", split_seed=3, stratified=False, hold_out=True, validation_fraction=0.4
    )
    assert with_objective(target, None, "nn.HuberLoss").project.training.loss_params == {
        "delta": 0.5
    }  # an argument of the settings stays
    arguments = train_arguments(project, str(settings))
    assert arguments[-2:] == ("--settings", str(settings))
    usual = Project(subject=subject, objective=chosen)
    assert train_arguments(usual, str(settings))[-2:] == ("--settings", str(settings))
    of_set = with_objective(target_of(f"{net}:Net", dataset="diabetes"), 0.5, "MSELoss")
    assert of_set.objective == Objective(of_setup=True, loss_of_setup=True)
    assert of_set.project.training.data.validation_fraction == 0.5


STEP = """\
def step(batch):
    x, y = batch
    return 3 * F.l1_loss(model(x), y)
"""


def test_the_step_of_the_settings_is_the_one_that_trains(
    net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not that of the file, which raises."""
    settings, folder, out = tmp_path / "settings.tlab", tmp_path / "run", tmp_path / "net.pt"
    setup = TrainingSetup(
        epochs=2, seed=2, optimizer="optim.SGD", optimizer_params={"lr": 0.1}, device="cpu"
    )
    chosen = Objective("other", step=STEP)
    subject = FileSubject(str(tmp_path / "other.py"), "Other")
    files.save(Project(training=setup, subject=subject, objective=chosen), settings)
    target = f"{net}:Net", "--data", "loader", "--settings", settings
    assert run("train", *target, "--run", folder) == 2
    assert "settings.tlab names Python:\n    def step(" in capsys.readouterr().err
    target += ("--run-cells",)
    assert run("train", *target, "--run", folder, "--out", out, "--json") == 0

    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(2)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        for part in x.split(8):
            optimizer.zero_grad()
            (3 * nn.functional.l1_loss(model(part), part.sum(1, keepdim=True))).backward()
            optimizer.step()
    learnt = torch.load(out)
    assert all(torch.equal(learnt[name], value) for name, value in model.state_dict().items())
    assert load(folder).project.objective == Objective("loader", step=STEP)
    target = target_of(f"{net}:Net", data="loader", settings=settings, run_cells=True)
    assert with_objective(target, None, "L1Loss").objective.step == ""  # it has a step of its own


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--hold-out", "0"), "a number between 0 and 1 is expected, not “0”"),
        (("--hold-out", "1"), "a number between 0 and 1 is expected, not “1”"),
        (("--hold-out", "nan"), "a number between 0 and 1 is expected, not “nan”"),
        (("--hold-out", "half"), "a number between 0 and 1 is expected, not “half”"),
        (("--hold-out", "0.2", "--validation", "data"), "leave --hold-out off"),
        (("--loss", "Huber"), "--loss Huber: There is no loss “nn.Huber”. Choose"),
        (("--loss", "HuberLoss(1.0)"), "a call with named arguments: HuberLoss(delta=0.5)"),
        (("--loss", "HuberLoss(**x)"), "a call with named arguments"),
        (("--loss", "HuberLoss(delta=x)"), "a call with named arguments"),
        (("--loss", "HuberLoss("), "a call with named arguments"),
        (("--loss", "HuberLoss(d=1)"), "There is no parameter “d”."),
        (("--loss", "HuberLoss(delta=-1)"), "delta must be at least 1e-12, not -1"),
    ],
)
def test_what_cannot_be_is_told_before_anything_runs(
    net: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], words: str
) -> None:
    net.write_text("raise ValueError('it ran')")
    command = ("train", f"{net}:Net", "--data", "data", *options)
    try:
        code = run(*command)
    except SystemExit as end:  # argparse's own
        code = end.code
    assert code == 2
    told = capsys.readouterr().err
    assert words in told and "it ran" not in told


def test_a_loader_has_no_share_to_hold_out(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("train", f"{net}:Net", "--data", "loader", "--hold-out", 0.2) == 1
    assert "No share of a DataLoader can be held out" in capsys.readouterr().err


@pytest.mark.parametrize("option", [("--hold-out", "0.2"), ("--loss", "MSELoss")])
@pytest.mark.parametrize("command", [("train",), ("sweep", "--set", "lr=1e-3..1e-2")])
def test_a_project_has_both(
    option: tuple[str, str], command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    name, *others = command
    assert run(name, MLP, *others, *option) == 2
    assert f"{option[0]} is for a subject of code" in capsys.readouterr().err


def test_a_sweep_has_them_too(
    net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = ("--set", "lr=1e-3,1e-2", "--trials", 1, "--epochs", 1, "--runs", tmp_path / "runs")
    options = ("--data", "data", "--hold-out", 0.3, "--loss", "L1Loss", "--json")
    assert run("sweep", f"{net}:Net", *choice, *options) == 0
    (trial,) = json.loads(capsys.readouterr().out)["trials"]
    assert trial["settings"]["loss"] == "nn.L1Loss"
    assert trial["epoch"]["validation_loss"] == trial["trial"]["value"] > 0


def test_a_project_of_code_cannot_take_them_either(net: Path, tmp_path: Path) -> None:
    project = tmp_path / "code.tlab"
    files.save(Project(subject=FileSubject(str(net), "Net"), objective=Objective("data")), project)
    with pytest.raises(CommandFailure, match="a project has its split"):
        with_objective(target_of(str(project), run_cells=True), 0.2, None)


def test_ranks_that_were_started_with_and_without_a_loss_are_told_apart() -> None:
    """Also where it is the loss that a new set-up has."""

    def digest(objective: Objective) -> bytes:
        command = TrainCommand(model=Model(), training=TrainingSetup(), objective=objective)
        return digest_of(command, nn.Linear(3, 1))

    assert digest(Objective("/here/data.py:x")) == digest(Objective("/there/data.py:x"))
    assert digest(Objective("x")) != digest(Objective("x", loss_of_setup=True))
