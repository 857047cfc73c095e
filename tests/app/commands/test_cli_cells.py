"""Commands on a project whose subject, or data, its cells make."""

from __future__ import annotations

import json

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from app.templates import load_template
from engine.project import files
from engine.project.document import Cell, DataSetup, Project, TrainingSetup, replace
from engine.project.subject import ConsoleSubject, Objective
from tests.app.commands.test_cli import run

pytestmark = pytest.mark.usefixtures("forked_processes")

CELLS = (
    "import torch\nfrom torch import nn\ntorch.manual_seed(3)\nmodel = nn.Linear(4, 3)",
    "open('ran.txt', 'w').close()\n"
    "data = torch.linspace(-1, 1, 80).reshape(20, 4), torch.arange(20) % 3",
)
SETUP = TrainingSetup(
    optimizer="optim.SGD", optimizer_params={"lr": 0.5}, batch_size=20, epochs=2, seed=1
)


def saved(path, *sources):
    """A project with these cells."""
    cells = tuple(Cell(f"c{number}", source) for number, source in enumerate(sources))
    chosen = {"subject": ConsoleSubject("model"), "objective": Objective("data")}
    files.save(Project(cells=cells, training=SETUP, **chosen), path)
    return path


@pytest.fixture
def project(tmp_path):
    return saved(tmp_path / "mine.tlab", *CELLS)


def learnt() -> dict[str, torch.Tensor]:
    """What a plain loop gives."""
    names: dict = {}
    for source in CELLS:
        exec(source.replace("open('ran.txt', 'w').close()", ""), names)
    model, (x, y) = names["model"], names["data"]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    torch.manual_seed(1)
    loader = DataLoader(TensorDataset(x, y), 20, shuffle=True)
    for _ in range(2):
        for a, b in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(a), b).backward()
            optimizer.step()
    return model.state_dict()


def test_nothing_runs_unless_it_is_said(project, tmp_path, capsys):
    for command in (("train",), ("inspect",), ("export", "--out", tmp_path / "a.pt")):
        assert run(command[0], project, *command[1:]) == 2
        assert "2 cells make it. Nothing of them runs until you say so: add --run-cells." in (
            capsys.readouterr().err
        )
    assert not (tmp_path / "ran.txt").exists()


def test_cells_are_shown_and_run_in_the_folder_of_the_project(project, tmp_path, capsys):
    out = tmp_path / "a.pt"
    assert run("train", project, "--run-cells", "--out", out) == 0
    told = capsys.readouterr().err
    assert told.index("Cell 1 of 2:\n    import torch\n") < told.index("Cell 2 of 2:\n    open(")
    assert (tmp_path / "ran.txt").exists()
    found, expected = torch.load(out), learnt()
    assert all(torch.equal(found[name], expected[name]) for name in ("weight", "bias"))


def test_the_subject_of_cells_is_inspected_and_exported(project, tmp_path, capsys):
    assert run("inspect", project, "--run-cells", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in report["parameters"]] == ["weight", "bias"]
    assert report["modules"][0]["calls"][0]["inputs"] == [[20, 4]]
    out = tmp_path / "a.safetensors"
    assert run("export", project, "--run-cells", "--out", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["verified"]


def test_a_cell_that_raises_ends_it_with_its_line(tmp_path, capsys):
    project = saved(tmp_path / "mine.tlab", "x = 1", "print('told')\nx.y")
    assert run("train", project, "--run-cells") == 1
    told = capsys.readouterr().err
    assert "told\n" in told and f"{project}: cell 2 raised." in told
    assert "line 2" in told and "AttributeError: 'int' object has no attribute 'y'" in told


def test_cells_make_data_for_the_canvas_too(tmp_path, capsys):
    mlp = load_template("mlp")
    data = DataSetup(kind="console", path="(x, y)")
    project = tmp_path / "blocks.tlab"
    cells = (Cell("c0", "import torch\nx = torch.rand(400, 1, 8, 8)\ny = torch.arange(400) % 10"),)
    training = replace(mlp.training, data=data, epochs=1)
    files.save(replace(mlp, training=training, cells=cells), project)
    assert run("train", project) == 1
    capsys.readouterr()
    assert run("train", project, "--run-cells", "--fresh", "--json") == 0
    assert json.loads(capsys.readouterr().out)["steps"] == -(-320 // training.batch_size)


def test_what_cannot_be_is_told(tmp_path, capsys):
    empty = saved(tmp_path / "empty.tlab")
    assert run("train", empty, "--run-cells") == 2
    assert "holds no cells that make it" in capsys.readouterr().err
    code = tmp_path / "net.py"
    code.write_text("from torch import nn\n")
    assert run("inspect", f"{code}:nn.Linear(2, 1)", "--run-cells") == 2
    assert "--run-cells is for a project" in capsys.readouterr().err


def test_a_run_goes_on_with_the_cells_of_its_project(project, tmp_path, capsys):
    folder = tmp_path / "run"
    assert run("train", project, "--run-cells", "--run", folder, "--epochs", 1) == 0
    assert run("train", "--run", folder, "--resume") == 2
    assert "Name the project: PROJECT.tlab --run-cells --run" in capsys.readouterr().err
    out = tmp_path / "a.pt"
    named = ("--run-cells", "--run", folder, "--resume", "--out", out)
    assert run("train", project, *named) == 0
    found, expected = torch.load(out), learnt()
    assert all(torch.equal(found[name], expected[name]) for name in ("weight", "bias"))
