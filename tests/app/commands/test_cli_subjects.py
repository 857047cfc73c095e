"""`tensorlab inspect`, `train` and `export` on a module of code."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

from app.commands.failures import CommandFailure
from app.commands.target import target_of
from app.templates import load_template
from engine.datasets.load import load_dataset
from engine.project import files
from engine.project.document import (
    DataSetup,
    HoldWhen,
    Project,
    TrainingSetup,
    Transform,
    replace,
)
from engine.project.subject import ConsoleSubject, FileSubject, Objective
from engine.runs.record import load
from tests.app.commands.test_cli import MLP, run

pytestmark = pytest.mark.usefixtures("forked_processes")

NET = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, hidden), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(hidden, 3)
        self.register_buffer("scale", torch.ones(()))

    def forward(self, x):
        return self.head(self.body(x)) * self.scale

x = torch.linspace(-1, 1, 160).reshape(40, 4)
data = TensorDataset(x, torch.arange(40) % 3)
print("loading")
"""


@pytest.fixture
def net(tmp_path):
    file = tmp_path / "net.py"
    file.write_text(NET)
    return file


def test_inspect_tells_modules_parameters_and_buffers(net, tmp_path, capsys):
    out = tmp_path / "structure.json"
    assert run("inspect", f"{net}:Net(16)", "--data", "data", "--json", out) == 0
    report = json.loads(out.read_text())
    assert capsys.readouterr().err == "loading\n"
    modules = {row["path"]: row for row in report["modules"]}
    assert list(modules) == ["", "body", "body.0", "body.1", "body.2", "head"]
    assert modules["body.0"]["class"] == "Linear" and modules["body.0"]["parameters"] == 4 * 16 + 16
    assert modules["head"]["calls"] == [
        {"inputs": [[40, 16]], "outputs": [[40, 3]], "macs": 40 * 16 * 3}
    ]
    assert [(row["name"], row["shape"]) for row in report["parameters"]] == [
        ("body.0.weight", [16, 4]), ("body.0.bias", [16]), ("head.weight", [3, 16]),
        ("head.bias", [3]),
    ]  # fmt: skip
    assert [row["name"] for row in report["buffers"]] == ["scale"]
    assert report["totals"]["parameters"] == 80 + 51 and report["unrun"] is None


TIED = """
import torch
from torch import nn

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(5, 3), nn.Linear(3, 5).double()
        self.out = nn.Linear(3, 5)
        self.out.weight = self.words.weight
        self.head.bias.requires_grad_(False)
        self.register_buffer("mask", torch.ones(2, 2, dtype=torch.bool), persistent=False)
"""


def test_inspect_tells_what_is_frozen_shared_and_of_another_dtype(tmp_path, capsys):
    file = tmp_path / "tied.py"
    file.write_text(TIED)
    assert run("inspect", f"{file}:Tied", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    names: dict = {"__name__": "tied"}
    exec(TIED, names)
    module = names["Tied"]()
    parameters = dict(module.named_parameters(remove_duplicate=False))

    def facts(rows):
        keys = ("shape", "dtype", "trainable", "shared_with")
        return {row["name"]: tuple(row[key] for key in keys) for row in rows}

    assert facts(report["parameters"]) == {
        name: (
            list(p.shape),
            str(p.dtype).removeprefix("torch."),
            p.requires_grad,
            [other for other, each in parameters.items() if each is p and other != name],
        )
        for name, p in parameters.items()
    }
    assert facts(report["buffers"]) == {"mask": ([2, 2], "bool", False, [])}
    assert report["batch"] is None and not any(row["calls"] for row in report["modules"])
    totals = report["totals"]
    assert (totals["parameters"], totals["trainable"]) == (15 + 20 + 5, 15 + 15 + 5)
    assert (totals["buffers"], totals["buffer_bytes"]) == (4, 4)


def test_inspect_tells_what_torch_does_not_know(net, tmp_path, capsys):
    lost = "        self.more = [nn.Linear(4, 4)]\n        self.gain = x.clone().requires_grad_()\n"
    net.write_text(
        NET.replace("        self.register_buffer", f"{lost}        self.register_buffer")
    )
    out = tmp_path / "structure.json"
    assert run("inspect", f"{net}:Net", "--json", out) == 0
    assert json.loads(out.read_text())["unregistered"] == ["more", "gain"]
    capsys.readouterr()
    assert run("inspect", f"{net}:Net") == 0
    assert "not trained, moved or saved with the module: more, gain." in capsys.readouterr().out


def test_inspect_tells_where_a_step_failed(net, tmp_path, capsys):
    with net.open("a") as file:
        file.write("\ndef step(batch):\n    raise ValueError('oops')\n")
    line = len(net.read_text().splitlines())
    out = tmp_path / "structure.json"
    assert run("inspect", f"{net}:Net", "--data", "data", "--json", out) == 0
    error = json.loads(out.read_text())["unrun"]
    assert (error["type"], error["message"], error["line"]) == ("ValueError", "oops", line)
    capsys.readouterr()
    assert run("inspect", f"{net}:Net", "--data", "data") == 0
    told = capsys.readouterr().out
    assert "The step did not run. ValueError: oops\n" in told
    assert f'{net.name}", line {line}, in step' in told


def test_inspect_tells_them_in_words_and_of_a_project_too(net, capsys):
    assert run("inspect", f"{net}:Net") == 0
    assert "6 modules · 67 parameters" in capsys.readouterr().out
    assert run("inspect", f"{net}:nn.Linear(1, 1, bias=False)") == 0
    assert "1 module · 1 parameter (1 trainable" in capsys.readouterr().out
    assert run("inspect", MLP, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["totals"]["parameters"] == sum(
        row["elements"] for row in report["parameters"] if not row["shared_with"]
    )
    assert report["modules"][0]["calls"][0]["outputs"] == [[64, 10]]


def test_a_module_of_code_is_trained_and_exported_as_a_plain_loop_would(net, tmp_path, capsys):
    weights, told = tmp_path / "net.pt", tmp_path / "run.json"
    arguments = ("--data", "data", "--validation", f"{net}:data", "--epochs", 2, "--seed", 3)
    assert run("train", f"{net}:Net", *arguments, "--out", weights, "--json", told) == 0
    report = json.loads(told.read_text())
    assert (report["state"], report["steps"], report["data"]) == ("finished", 2, "data")
    assert 0 <= report["val_accuracy"] <= 1

    names: dict = {"__name__": "net"}
    exec(compile(NET, "net.py", "exec"), names)
    torch.manual_seed(3)
    model = names["Net"]()
    torch.manual_seed(3)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        for x, y in names["DataLoader"](names["data"], 64, shuffle=True):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    learnt = torch.load(weights)
    assert learnt.keys() == model.state_dict().keys()
    assert all(torch.equal(value, learnt[key]) for key, value in model.state_dict().items())

    copy = tmp_path / "net.safetensors"
    assert run("export", f"{net}:Net", "--weights", weights, "--out", copy) == 0
    assert all(torch.equal(value, learnt[key]) for key, value in load_file(copy).items())
    capsys.readouterr()
    assert run("export", f"{net}:Net", "--out", tmp_path / "x.py") == 1
    assert "Only a model of blocks is written as Python" in capsys.readouterr().err
    assert run("export", f"{net}:Net", "--out", tmp_path / "x.pt2") == 1
    assert "There is no batch to call net.py: Net with" in capsys.readouterr().err
    program = tmp_path / "net.pt2"
    assert run("export", f"{net}:Net", "--data", "data", "--out", program, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["verified"] and report["batch_sizes"][:3] == [1, 2, 5]
    assert torch.export.load(program).state_dict.keys() == learnt.keys()


def test_an_export_that_differs_is_written_and_told(tmp_path, capsys):
    """Tracing freezes a branch as the batch took it."""
    net = tmp_path / "branch.py"
    net.write_text(
        "import torch\nfrom torch import nn\ndata = [(torch.ones(4, 3),)]\n"
        "class Branch(nn.Module):\n"
        "    def forward(self, x):\n        return x if len(x) > 3 else -x\n"
    )
    out = tmp_path / "out.pt"
    arguments = ("--format", "torchscript-trace", "--data", "data", "--out", out, "--json")
    assert run("export", f"{net}:Branch", *arguments) == 1
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert not report["verified"] and report["max_abs_error"] == 1.0  # -0.5, not 0.5
    assert report["differs"] == "Branch.forward; the modules inside agree" and out.is_file()
    assert f"{out}: what was read back differs in Branch.forward" in captured.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("inspect", "{net}"), 2, "which module of the file? Write"),
        (("inspect", "gone.py:Net"), 2, "gone.py: there is no such file"),
        (
            ("inspect", MLP, "--data", "x"),
            2,
            "--data, --validation and --dataset are for a subject of code",
        ),
        (("train", "{net}:Net"), 2, "which data? Add --data"),
        (("train", "{net}:Net", "--data", "gone.py:x"), 2, "gone.py: there is no such file"),
        (("train", "{net}:Net", "--data", "gone"), 1, "There is no variable named `gone`"),
        (("train", "{net}:Net", "--data", "x"), 1, "No usual task fits"),
        (("inspect", "{net}:Gone"), 1, "There is no variable named `Gone`"),
    ],
)
def test_a_wrong_subject_is_told(net, capsys, arguments, code, words):
    written = [str(argument).format(net=net) for argument in arguments]
    assert run(*written) == code
    assert words in capsys.readouterr().err


def test_an_error_of_the_code_shows_its_own_lines_only(net, capsys):
    net.write_text(NET + "raise ValueError('no')\n")
    assert run("inspect", f"{net}:Net") == 1
    told = capsys.readouterr().err
    assert "ValueError: no" in told and f'File "{net}", line' in told
    assert "engine/" not in told


def test_a_prefix_of_the_weights_is_taken_off_and_told(net, tmp_path, capsys):
    assert run("export", f"{net}:Net", "--out", tmp_path / "net.pt") == 0
    state = torch.load(tmp_path / "net.pt")
    torch.save({f"module.{key}": value + 1 for key, value in state.items()}, tmp_path / "w.pt")
    capsys.readouterr()
    arguments = ("export", f"{net}:Net", "--weights", tmp_path / "w.pt", "--out")
    assert run(*arguments, tmp_path / "out.pt") == 0
    assert "“module.” is taken off the names of the file" in capsys.readouterr().out
    written = torch.load(tmp_path / "out.pt")
    assert all(torch.equal(written[key], value + 1) for key, value in state.items())
    assert run(*arguments, tmp_path / "out.pt", "--json") == 0
    assert json.loads(capsys.readouterr().out)["renaming"].startswith("“module.”")
    torch.save({"module.head.weight": state["head.weight"]}, tmp_path / "w.pt")
    assert run(*arguments, tmp_path / "out.pt") == 1
    assert "does not fit the model. missing: scale" in capsys.readouterr().err


def test_a_file_that_holds_a_model_is_a_subject(tmp_path):
    path = tmp_path / "net.pt2"
    with pytest.raises(CommandFailure, match="there is no such file"):
        target_of(str(path))
    path.touch()
    target = target_of(str(path), data="(x, y)")
    assert (target.subject, target.is_code) == (FileSubject(str(path), "model"), True)
    assert target.objective.data == "(x, y)"


STRETCHED = """
def step(model, batch):
    x, y = batch
    return torch.nn.functional.mse_loss(model(x)[:, :1], y.float())
"""


def test_training_tells_what_looks_wrong(net, tmp_path, capsys):
    net.write_text(NET + STRETCHED)
    line = NET.count("\n") + STRETCHED.count("\n")
    assert run("train", f"{net}:Net", "--data", "data", "--epochs", 1, "--json") == 0
    captured = capsys.readouterr()
    (finding,) = json.loads(captured.out)["findings"]
    assert (finding["kind"], finding["file"], finding["line"]) == ("broadcast", str(net), line)
    assert finding["fix"].endswith("y.float().unsqueeze(-1))")
    assert f"{net}:{line}: broadcast: {finding['text']}\n" in captured.err
    assert f"  {finding['evidence'][0]}\n" in captured.err
    assert f"  Fix: {finding['fix']}\n" in captured.err
    assert f"{net}:{line}: UserWarning: Using a target size" in captured.err
    assert "engine" not in captured.err


def test_a_project_that_has_chosen_code_is_trained_as_that_code(net, tmp_path, capsys):
    setup = TrainingSetup(epochs=1, batch_size=10, seed=3)
    project = tmp_path / "chosen.tlab"
    files.save(
        replace(
            load_template("mlp"),
            training=setup,
            subject=FileSubject(str(net), "Net(5)"),
            objective=Objective("data"),
        ),
        project,
    )
    settings = tmp_path / "settings.tlab"
    files.save(Project(training=setup), settings)
    for command in (("train",), ("inspect",), ("export", "--out", tmp_path / "a.safetensors")):
        assert run(command[0], project, *command[1:]) == 2
        told = capsys.readouterr().err
        assert f"chosen.tlab names Python:\n    {net}: Net(5)\n    data\n" in told
        assert "Nothing of it runs until you say so: add --run-cells." in told
    assert run("train", project, "--run-cells", "--out", tmp_path / "a.pt") == 0
    of_code = ("--data", "data", "--settings", settings, "--out", tmp_path / "b.pt")
    assert run("train", f"{net}:Net(5)", *of_code) == 0
    of_project, plain = torch.load(tmp_path / "a.pt"), torch.load(tmp_path / "b.pt")
    assert of_project.keys() == plain.keys() >= {"body.0.weight", "scale"}
    assert all(torch.equal(of_project[name], plain[name]) for name in plain)
    assert len(list((tmp_path / "chosen.runs").iterdir())) == 1  # beside it, as in the window


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        (
            ConsoleSubject("net.encoder"),
            "its subject is net.encoder, of the console, and it holds no cells",
        ),
        (FileSubject("net.py", "Net"), "Choose them under Train in the window"),
    ],
)
def test_a_project_whose_code_cannot_be_trained_here_says_so(tmp_path, capsys, subject, words):
    project = tmp_path / "chosen.tlab"
    files.save(replace(load_template("mlp"), subject=subject), project)
    cells = () if isinstance(subject, ConsoleSubject) else ("--run-cells",)
    assert run("train", project, *cells) == 2
    assert words in capsys.readouterr().err


def test_a_script_of_code_gives_the_weights_of_the_run(net, tmp_path, capsys):
    """By a Python that knows nothing of the program. The data is drawn anew each time that it is
    made, from the same numbers."""
    net.write_text(NET + "def drawn():\n    return torch.rand(40, 4), torch.arange(40) % 3\n")
    arguments = ("--data", "drawn()", "--validation", "data", "--epochs", 2, "--seed", 3)
    script, out, folder = tmp_path / "s.py", tmp_path / "lab.safetensors", tmp_path / "runs" / "a"
    folder.parent.mkdir()
    code = ("--script", script, "--out", out, "--run", folder)
    assert run("train", f"{net}:Net(6)", *arguments, *code) == 0
    expected = load_file(out)
    for path in (script, folder / "train.py"):
        again = path.with_name("w.safetensors")
        command = [sys.executable, path, "--out", again]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert "epoch 2: loss " in done.stdout
        found = load_file(again)
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
    capsys.readouterr()
    assert run("runs", folder.parent, "--json") == 0
    (listed,) = json.loads(capsys.readouterr().out)["runs"]
    assert listed["settings"]["data"].keys() == {"loading"}  # no data set of the catalogue
    assert (listed["objective"]["data"], listed["no_script"]) == ("drawn()", "")
    own = net.read_text()
    assert run("train", f"{net}:Net(6)", *arguments, "--script", net) == 1
    assert "net.py is your own file" in capsys.readouterr().err and net.read_text() == own


def test_code_is_trained_by_the_settings_of_a_project(net, tmp_path, capsys):
    project = tmp_path / "settings.tlab"
    setup = TrainingSetup(optimizer="optim.SGD", optimizer_params={"lr": 0.25}, batch_size=10)
    files.save(Project(training=setup), project)
    arguments = ("--data", "data", "--epochs", 1, "--run", tmp_path / "run", "--json")
    assert run("train", f"{net}:Net", "--settings", project, *arguments) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 4
    assert load(tmp_path / "run").project.training == replace(setup, epochs=1, hold=HoldWhen())
    assert run("train", "--run", tmp_path / "run", "--resume", "--settings", project) == 2
    assert "go with a SUBJECT" in capsys.readouterr().err
    assert run("train", MLP, "--settings", project) == 2
    assert "--settings is for a subject of code" in capsys.readouterr().err


def flowers_learnt(epochs: int, **fields) -> torch.Tensor:
    """The weights of `head` after training net.py's Net on iris, as a plain loop has it."""
    names: dict = {"__name__": "net"}
    exec(compile(NET, "net.py", "exec"), names)
    torch.manual_seed(0)
    model = names["Net"]()
    dataset = load_dataset(DataSetup("iris", **fields))
    optimizer = torch.optim.Adam(model.parameters())
    torch.manual_seed(0)
    for epoch in range(epochs):
        for batch in range(dataset.batches(64)):
            x, y = dataset.train_batch(batch, 64, 0, epoch)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    return model.head.weight


def test_code_is_trained_on_a_data_set(net, tmp_path, capsys):
    out = tmp_path / "a.pt"
    arguments = ("--dataset", "iris", "--epochs", 2, "--out", out, "--json")
    assert run("train", f"{net}:Net", *arguments) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["data"], report["steps"]) == ("iris", 4) and 0 <= report["val_accuracy"] <= 1
    assert torch.equal(torch.load(out)["head.weight"], flowers_learnt(2))
    settings = tmp_path / "settings.tlab"
    data = DataSetup("iris", split_seed=3, transforms=(Transform("GaussianNoise"),))
    files.save(Project(training=TrainingSetup(data=data, epochs=1)), settings)
    assert run("train", f"{net}:Net", "--settings", settings, "--out", out) == 0
    learnt = flowers_learnt(1, split_seed=3, transforms=data.transforms)
    assert torch.equal(torch.load(out)["head.weight"], learnt)


def test_a_project_of_code_says_that_it_trains_on_its_data_set(net, tmp_path, capsys):
    project = tmp_path / "flowers.tlab"
    subject, of_setup = FileSubject(str(net), "Net()"), Objective(of_setup=True)
    training = TrainingSetup(data=DataSetup("iris"), epochs=1)
    files.save(Project(training=training, subject=subject, objective=of_setup), project)
    assert run("train", project, "--run-cells", "--out", tmp_path / "a.pt") == 0
    assert torch.equal(torch.load(tmp_path / "a.pt")["head.weight"], flowers_learnt(1))
    capsys.readouterr()
    assert run("runs", project, "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)["runs"]
    assert row["settings"]["data"]["kind"] == "iris" and row["objective"]["of_setup"]


def test_the_data_set_of_code_is_put_over_that_of_its_settings(net, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = DataSetup(
        "csv", {"missing": "drop"}, path="/far.csv", split_seed=3, validation_fraction=0.5
    )
    settings = tmp_path / "settings.tlab"
    files.save(Project(training=TrainingSetup(data=data, seed=7)), settings)

    def of(**fields):
        target = target_of(f"{net}:Net", **fields)
        return target.objective, target.project.training

    assert of(settings=settings)[0] == Objective(of_setup=True)
    assert of(settings=settings, data="data")[0] == Objective("data")
    objective, setup = of(settings=settings, dataset="csv:here.csv")
    assert objective == Objective(of_setup=True)
    assert setup == TrainingSetup(data=replace(data, path=str(tmp_path / "here.csv")), seed=7)
    objective, setup = of(settings=settings, dataset="wine")
    assert setup.data == DataSetup("wine", split_seed=3, validation_fraction=0.5)
    code = Project(subject=FileSubject(str(net), "Net"), objective=Objective("data"))
    files.save(code, settings)
    assert of(settings=settings)[0] == Objective()  # its data is of its own code


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--dataset", "flowers"), "--dataset: there is no “flowers”; there are digits, iris"),
        (("--dataset", "csv"), "--dataset: where is it? Write csv:PATH."),
        (("--dataset", "iris:here"), "--dataset: iris has no path."),
        (("--dataset", "iris", "--data", "data"), "leave --data and --validation off"),
        ((), "or --dataset KIND for a data set"),
    ],
)
def test_a_data_set_that_cannot_be_is_told(net, capsys, options, words):
    assert run("train", f"{net}:Net", *options) == 2
    assert words in capsys.readouterr().err
    assert run("train", MLP, "--dataset", "iris") == 2
    assert "--dataset are for a subject of code" in capsys.readouterr().err
