"""The training of an own module as a script: run without the program, it gives the same weights."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.errors import LabError
from engine.handlers.training.run_script import FILE
from engine.lab import Lab
from engine.project.document import (
    Averaging,
    DataSetup,
    Loading,
    Model,
    Schedule,
    Stopping,
    TrainingSetup,
    replace,
)
from engine.project.subject import ConsoleSubject, FileSubject, Objective
from engine.protocol import (
    ExportCommand,
    ExportSnapshot,
    RunCellCommand,
    RunFileCommand,
    TrainCommand,
    TrainingSnapshot,
)
from engine.session import handler_of
from tests.engine.subjects.eight import CASES, SETUP
from tests.scripts import run_script

NET = """
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import Dataset

x, y = torch.randn(30, 4), torch.arange(30) % 3
noise = torch.from_numpy(np.random.rand(30, 4)).float()
pair = (x + noise, y)

class Pairs(Dataset):
    def __len__(self):
        return 30

    def __getitem__(self, i):
        return x[i] + torch.rand(4), y[i]

class Dicts(Pairs):
    def __getitem__(self, i):
        return {"x": x[i], "y": y[i]}

generator = torch.Generator().manual_seed(3)
loader = torch.utils.data.DataLoader(Pairs(), 7, shuffle=True, generator=generator)
width = 5

def batches():
    return ((x[i : i + 8] + torch.rand(1), y[i : i + 8]) for i in range(0, 30, 8))

def made(count):
    return torch.randn(count, 4), torch.arange(count) % 3

class Last:
    def __init__(self, data):
        self.size = len(data)
    def __iter__(self):
        return iter(range(self.size - 10, self.size))
    def __len__(self):
        return 10

class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return zip(x, y)

rows = [[0, 1, 2], [3, 4], [29, 7]]

class Net(nn.Module):
    def __init__(self, hidden=6):
        super().__init__()
        self.first, self.norm = nn.Linear(4, hidden), nn.BatchNorm1d(hidden)
        self.drop, self.last = nn.Dropout(0.3), nn.Linear(hidden, 3)

    def forward(self, x):
        return self.last(self.drop(self.norm(self.first(x)).relu()))

def scale(loss):
    return loss * 2
"""


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No module of a script's, and no folder to import from."""
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path / "data"))
    modules, paths = dict(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - set(modules):
        if "/models/" in str(getattr(sys.modules[name], "__file__", "")) or name == "net":
            del sys.modules[name]
    sys.path[:] = paths


@pytest.fixture
def lab() -> Lab:
    return Lab(emit=lambda snapshot: None)


def ask(lab: Lab, command: Any) -> Any:
    *_, last = handler_of(type(command))(lab, command)
    return last


def of_net(lab: Lab, tmp_path: Path, expression: str = "Net(width)", text: str = NET) -> Any:
    path = tmp_path / "net.py"
    path.write_text(text)
    ask(lab, RunFileCommand(path=str(path)))
    return FileSubject(str(path), expression)


def check_same(
    lab: Lab, tmp_path: Path, capsys: Any, subject: Any, objective: Objective, setup: TrainingSetup
) -> str:
    """Train, and run the script in the run's folder: weights and losses are the same."""
    command = TrainCommand(
        model=Model(), training=setup, subject=subject, objective=objective,
        folder=str(tmp_path / "run"),
    )  # fmt: skip
    last = ask(lab, command)
    assert isinstance(last, TrainingSnapshot)
    assert (last.state, last.error) == ("finished", None)
    assert lab.run.files.writer.record.no_script == ""
    path, out = tmp_path / "run" / FILE, tmp_path / "weights.pt"
    capsys.readouterr()
    run_script(path, "--out", str(out))
    printed = capsys.readouterr().out
    state, found = torch.load(out, weights_only=True), lab.run.loop.model.state_dict()
    assert found.keys() == state.keys()
    assert [name for name, tensor in found.items() if not torch.equal(tensor, state[name])] == []
    told = [line for line in printed.splitlines() if line.startswith("epoch ")]
    losses = [[float(n) for n in re.findall(r"\d+\.\d{6}", line)] for line in told]
    rows = [[row.train_loss, row.validation_loss] for row in lab.run.loop.metrics.epochs]
    assert len(losses) == len(rows)
    for numbers, row in zip(losses, rows, strict=True):
        assert numbers == pytest.approx(row[: len(numbers)], abs=2e-6)
    text = path.read_text()
    assert not re.search(r"import (tensorlab|engine)|from (tensorlab|engine)", text)
    return text


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_of_eight_models(case: Any, lab: Lab, tmp_path: Path, capsys: Any) -> None:
    ask(lab, RunFileCommand(path=str(case.path)))
    check_same(lab, tmp_path, capsys, case.subject, case.objective, replace(SETUP, epochs=2))


SHORT = TrainingSetup(optimizer_params={"lr": 0.05}, batch_size=8, epochs=2, seed=7)


@pytest.mark.parametrize(
    ("data", "validation", "loading", "words"),
    [
        ("pair", "(x, y)", Loading(), "DataLoader(TensorDataset(*net_py.pair), batch_size=8"),
        ("pair", "pair", Loading(shuffle=False, drop_last=True), "drop_last=True)"),
        ("Pairs()", "Pairs()", Loading(workers=0), "DataLoader(net_py.Pairs()"),
        ("Dicts()", "", Loading(), "DataLoader(net_py.Dicts()"),
        ("loader", "loader", Loading(), "generators_of(loader, validation_loader)"),
        ("batches", "batches", Loading(), "for batch in loader())"),
        ("made(20)", "made(5)", Loading(), "torch.set_rng_state(saved["),
        ("pair", "pair", Loading(sampler="Last", generator="generator"), "(net_py.Last)(samples)"),
        ("Stream()", "", Loading(), "    return DataLoader(net_py.Stream(), batch_size=8)"),
        ("pair", "pair", Loading(batch_sampler="rows"), "batch_sampler=net_py.rows)"),
    ],
)  # fmt: skip
def test_each_kind_of_data(
    data: str, validation: str, loading: Loading, words: str, lab: Lab, tmp_path: Path, capsys: Any
) -> None:
    """The file draws numbers that nobody has seeded, by torch and by NumPy."""
    setup = replace(SHORT, data=DataSetup(loading=loading))
    subject = of_net(lab, tmp_path)
    text = check_same(lab, tmp_path, capsys, subject, Objective(data, validation), setup)
    assert words in text and "np.random.set_state(" in text


STEP = """
def step(batch):
    x, y = batch  # a comment
    return scale(F.cross_entropy(model(x), y))
"""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"accumulate": 2, "clip_norm": 0.1}, "(loss / 2).backward()"),
        ({"schedule": Schedule("lr_scheduler.CosineAnnealingLR", {}, "step", warmup=2)}, "T_max=6"),
        ({"schedule": Schedule("lr_scheduler.ReduceLROnPlateau", {"patience": 0}), "epochs": 4},
         "scheduler.step(validation if losses"),
        ({"optimizer": "optim.LBFGS", "optimizer_params": {"max_iter": 3}, "accumulate": 2},
         "trained += sum("),
        ({"averaging": Averaging("EMA", 0.8, start=1), "epochs": 3}, "in_use(averaged, model)"),
        ({"averaging": Averaging("SWA", start=1), "epochs": 3}, "update_norms("),
        ({"order": ("zero_grad", "forward", "step", "loss", "backward")}, "optimizer.step()"),
        ({"precision": "bfloat16"}, "torch.autocast"),
        ({"recomputed": ("first",)}, "module.forward = recomputed(module)"),
        ({"stopping": Stopping("validation accuracy", 1), "epochs": 8}, 'float(found["accuracy"])'),
        ({"stopping": Stopping("train loss", 1, 0.05), "epochs": 8}, "if waited >= 1"),
    ],
)  # fmt: skip
def test_each_setting(changes: dict, words: str, lab: Lab, tmp_path: Path, capsys: Any) -> None:
    """With a step of the program's for an accuracy, else one that is written in the form."""
    setup = replace(SHORT, **changes)
    step = "" if "accuracy" in setup.stopping.figure else STEP
    objective = Objective("pair", "(x, y)", step)
    text = check_same(lab, tmp_path, capsys, of_net(lab, tmp_path), objective, setup)
    assert words in text
    if step:
        assert "scale = net_py.scale" in text and "# a comment" in text


CELLS = [
    "import torch\nfrom torch import nn\nrows = 40",
    "torch.manual_seed(1)\nx = torch.randn(rows, 3)\nprint('drawn')",
    "y = x.sum(1, keepdim=True)\nclass Net(nn.Module):\n"
    "    def __init__(self):\n        super().__init__()\n        self.last = nn.Linear(3, 1)\n"
    "    def forward(self, x):\n        return self.last(x)",
    "gone = torch.rand(5)",
    "noise = torch.randn(rows, 3)",
    "net = Net()\nunused = 1",
    "def step(batch):\n    x, y = batch\n    return (net(x) - y).square().mean()",
]


@pytest.mark.parametrize("expression", ["net", "Net", "net.last"])
def test_a_module_of_the_console(expression: str, lab: Lab, tmp_path: Path, capsys: Any) -> None:
    """The cells that drew random numbers are repeated with the generators as they were; one that
    nothing needs is not."""
    for cell in CELLS[: None if expression == "net" else -1]:
        ask(lab, RunCellCommand(source=cell))
    objective = Objective("(x + noise, y)", "(x, y)")
    subject = ConsoleSubject(expression)
    text = check_same(lab, tmp_path, capsys, subject, objective, SHORT)
    assert "torch.manual_seed(1)\nx = torch.randn(rows, 3)" in text
    assert ("def step(batch):\n    x, y = batch\n    return (net" in text) == (expression == "net")
    assert "gone" not in text
    assert ("unused" in text) == (expression != "Net")  # the cell that draws comes whole


def test_a_step_of_the_model_and_the_batch(lab: Lab, tmp_path: Path, capsys: Any) -> None:
    step = "\ndef step(model, batch):\n    return F.cross_entropy(model(batch[0]), batch[1])\n"
    subject = of_net(lab, tmp_path, text=NET + step)
    text = check_same(lab, tmp_path, capsys, subject, Objective("pair", "(x, y)"), SHORT)
    assert "found = net_py.step(model, batch)" in text


@pytest.mark.parametrize(
    ("cells", "subject", "objective", "words"),
    [
        (["def f(x, w=torch.ones(3, requires_grad=True)):\n    return x * w"], "f",
         Objective("[(torch.ones(3), torch.ones(3))]"), "is a function of tensors"),
        ([*CELLS[:3], "save = 2"], "Net",
         Objective("(x * save, y)"), "The script has a `save` of its own"),
        (CELLS[:3], "Net", Objective("(x, y)", "", "def step(batch):\n    x, y = batch\n"
         "    loss = F.mse_loss(model(x), y)\n    lab.log(a=1)\n    return loss"), "uses `lab`"),
    ],
)  # fmt: skip
def test_what_a_script_cannot_have_is_told_in_the_run(
    cells: list[str], subject: str, objective: Objective, words: str, lab: Lab, tmp_path: Path
) -> None:
    for cell in cells:
        ask(lab, RunCellCommand(source=cell))
    setup = replace(SHORT, epochs=1)
    command = TrainCommand(
        model=Model(), training=setup, subject=ConsoleSubject(subject), objective=objective,
        folder=str(tmp_path / "run"),
    )  # fmt: skip
    last = ask(lab, command)
    assert last.state == "finished", last.error
    assert words in lab.run.files.writer.record.no_script
    assert not (tmp_path / "run" / FILE).exists()


def test_padding_of_samples_is_refused(lab: Lab, tmp_path: Path) -> None:
    for each in CELLS[:3]:
        ask(lab, RunCellCommand(source=each))
    setup = replace(SHORT, data=DataSetup(loading=Loading(padding="right")))
    export = ExportCommand(
        model=Model(), training=setup, format="script", path=str(tmp_path / "s.py"),
        subject=ConsoleSubject("Net"), objective=Objective("(x, y)"), verify=False,
    )  # fmt: skip
    with pytest.raises(LabError, match="A script has no padding of samples"):
        ask(lab, export)


def test_a_name_that_no_cell_makes_is_told(lab: Lab, tmp_path: Path) -> None:
    for cell in CELLS[:3]:
        ask(lab, RunCellCommand(source=cell))
    lab.console.namespace.variables["alone"] = torch.ones(40, 3)
    export = ExportCommand(
        model=Model(), training=SHORT, format="script", path=str(tmp_path / "s.py"),
        subject=ConsoleSubject("Net"), objective=Objective("(alone, y)"), verify=False,
    )  # fmt: skip
    with pytest.raises(Exception, match="No cell that ran makes `alone`"):
        ask(lab, export)
    assert list(tmp_path.iterdir()) == []


def test_a_fresh_script_begins_where_the_seed_does(lab: Lab, tmp_path: Path, capsys: Any) -> None:
    """The live module, which has trained, stays as it is; the next run draws the same data."""
    subject, objective = of_net(lab, tmp_path), Objective("made(20)", "made(5)")
    check_same(lab, tmp_path, capsys, subject, objective, SHORT)
    trained = {name: t.clone() for name, t in lab.run.loop.model.state_dict().items()}
    path = tmp_path / "fresh.py"
    export = ExportCommand(
        model=Model(), training=SHORT, format="script", path=str(path), subject=subject,
        objective=objective, fresh=True, verify=False,
    )  # fmt: skip
    done = ask(lab, export)
    assert isinstance(done, ExportSnapshot)
    assert [file.name for file in done.files] == ["fresh.py", "fresh.data.pt"]
    first = torch.load(tmp_path / "fresh.data.pt", weights_only=True)["weights"]
    live = lab.run.loop.model.state_dict()
    assert all(torch.equal(live[name], tensor) for name, tensor in trained.items())
    train = TrainCommand(
        model=Model(), training=SHORT, subject=subject, objective=objective, fresh=True
    )
    ask(lab, train)
    run_script(path, "--out", str(tmp_path / "w.pt"))
    state = torch.load(tmp_path / "w.pt", weights_only=True)
    assert all(torch.equal(state[n], t) for n, t in lab.run.loop.model.state_dict().items())
    assert not all(torch.equal(first[name], tensor) for name, tensor in trained.items())


def test_a_file_that_has_changed_is_told(lab: Lab, tmp_path: Path, capsys: Any) -> None:
    subject = of_net(lab, tmp_path)
    check_same(lab, tmp_path, capsys, subject, Objective("pair"), SHORT)
    (tmp_path / "net.py").write_text(NET + textwrap.dedent("\nmore = 1\n"))
    run_script(tmp_path / "run" / FILE)
    assert "net.py has changed since this script was written." in capsys.readouterr().err


def test_the_users_own_file_is_not_overwritten(lab: Lab, tmp_path: Path) -> None:
    subject = of_net(lab, tmp_path)
    export = ExportCommand(
        model=Model(), training=SHORT, format="script", path=subject.path, subject=subject,
        objective=Objective("pair"), verify=False,
    )  # fmt: skip
    with pytest.raises(Exception, match="is your own file"):
        ask(lab, export)
    assert (tmp_path / "net.py").read_text() == NET
