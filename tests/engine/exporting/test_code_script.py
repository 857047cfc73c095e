"""The training of an own module as a script: run without the program, it gives the same weights."""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.datasets.console_values import values_of
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
    Transform,
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
from engine.server.session import handler_of
from engine.system.errors import LabError
from tests.engine.subjects.eight import CASES, SETUP
from tests.scripts import run_script

NET = """
import random

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

class Drawn(Pairs):
    def __getitem__(self, i):
        return x[i] * np.random.rand() + random.random(), y[i]

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
        ("Drawn()", "", Loading(), "random.setstate("),
        ("(x.numpy(), y.numpy())", "", Loading(), "*(torch.as_tensor(part) for part in"),
        ("[(x[i], int(y[i])) for i in range(30)]", "", Loading(), "DataLoader([(net_py.x"),
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


OF_CELLS = """
import torch
from torch import nn

wide = torch.randn(60, 5), torch.arange(60) % 3
"""
OF_SETUP = Objective("gone", "gone", of_setup=True)
POINTS = tuple((n / 20 - 1, n % 5 / 5, n % 2) for n in range(40))
TABLE = "width,colour,height\n" + "".join(
    f"{n % 7}.5,{('red', 'green', 'blue')[n % 3]},{n}\n" for n in range(40)
)
TEXT = "the cat sat on the mat, and the dog sat by the cat. " * 20
NETS = """
class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.last = nn.Embedding(30, 8), nn.Linear(8, 16)

    def forward(self, ids):
        return self.last(self.table(ids)).movedim(-1, 1)

class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
                                    nn.Dropout(0.2), nn.Linear(144, 10))

    def forward(self, x):
        return self.layers(x)

def shifted(samples):
    x, y = zip(*samples)
    return torch.stack(x) + 0.5, torch.stack(y)
"""
DRAWN = (Transform("RandomCrop"), Transform("GaussianNoise"))
WITH_OBJECTS = Loading(sampler="Last", generator="generator", collate_fn="shifted")


@pytest.mark.parametrize(
    ("expression", "data", "changes", "words"),
    [
        ("Images()", DataSetup("digits", transforms=DRAWN), {}, "x = gaussian_noise(x, generator"),
        ("Images()", DataSetup("digits", loading=Loading(balanced=True, drop_last=True)), {},
         "balanced_order(y_train.cpu(), 7, epoch)[:1408]"),
        ("Images()", DataSetup("digits", loading=Loading(shuffle=False, workers=0)),
         {"averaging": Averaging("SWA", start=1), "epochs": 3}, "(model, averaged, slices("),
        ("Images()", DataSetup("digits", loading=WITH_OBJECTS, transforms=DRAWN),
         {"averaging": Averaging("SWA", start=0)}, "generators = generators_of(loader)"),
        ("Images()", DataSetup("digits", loading=Loading(batch_sampler="[[3, 1], [2]]")),
         {"schedule": Schedule("lr_scheduler.OneCycleLR", {"max_lr": 0.1}, "step")},
         "total_steps=4"),
        ("Net(5)", DataSetup("iris"),
         {"stopping": Stopping("validation accuracy", 1), "epochs": 8}, 'float(found["accuracy"])'),
        ("nn.Linear(4, 1)", DataSetup("csv", path="table.csv"), {}, "r2 = R2()"),
        ("nn.Linear(2, 2)", DataSetup("painted", points=POINTS), {"accumulate": 2}, "slices("),
        ("Words()", DataSetup("text", {"length": 8}, path="words.txt"), {}, "F.cross_entropy"),
        ("nn.Linear(5, 3)", DataSetup("console", path="wide"), {}, "slices("),
    ],
)  # fmt: skip
def test_each_kind_of_data_set_of_train(
    expression: str, data: DataSetup, changes: dict, words: str,
    lab: Lab, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The data lies beside the script: names of the code are not looked up, and no file is read."""
    (tmp_path / "table.csv").write_text(TABLE)
    (tmp_path / "words.txt").write_text(TEXT)
    ask(lab, RunCellCommand(source=OF_CELLS))
    subject = of_net(lab, tmp_path, expression, NET + NETS)
    path = str(tmp_path / data.path) if data.kind in ("csv", "text") else data.path
    setup = replace(SHORT, batch_size=32, data=replace(data, path=path), **changes)
    with values_of(lambda text: lab.console.namespace.variables[text], lambda: ()):
        text = check_same(lab, tmp_path, capsys, subject, OF_SETUP, setup)
    assert words in text
    assert "The data and the first weights lie in train.data.pt" in text


def test_a_module_of_the_console_on_a_data_set_of_train(
    lab: Lab, tmp_path: Path, capsys: Any
) -> None:
    """Its objects for the DataLoader come from the cells."""
    cells = "import torch\nfrom torch import nn", "rows = torch.randperm(20).tolist()"
    for cell in (*cells, "class Net(nn.Linear):\n    def __init__(self): super().__init__(4, 3)"):
        ask(lab, RunCellCommand(source=cell))
    data = DataSetup("iris", loading=Loading(sampler="rows"))
    setup, subject = replace(SHORT, data=data), ConsoleSubject("Net")
    text = check_same(lab, tmp_path, capsys, subject, OF_SETUP, setup)
    assert "rows = torch.randperm(20).tolist()" in text and "sampler=rows" in text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("(x, y)", 'TensorDataset(*(part[saved["validation rows"]] for part in whole))'),
        (
            "torch.utils.data.TensorDataset(x, y)",
            'part[saved["training rows"]] for part in whole.t',
        ),
        ("(x.numpy(), y)", 'torch.as_tensor(part)[saved["training rows"]] for part in whole'),
        ("made(20)", "torch.set_rng_state(saved["),
        ("Pairs()", 'Subset(whole, saved["training rows"].tolist())'),
        ("[(x[i], int(y[i])) for i in range(30)]", 'DataLoader(Subset(whole, saved["validation'),
    ],
)
def test_a_share_that_is_held_out(
    data: str, words: str, lab: Lab, tmp_path: Path, capsys: Any
) -> None:
    """The rows lie beside the script."""
    setup = replace(SHORT, data=DataSetup(hold_out=True, validation_fraction=0.3))
    text = check_same(lab, tmp_path, capsys, of_net(lab, tmp_path), Objective(data), setup)
    assert words in text
    assert lab.run.loop.metrics.epochs[-1].validation_loss is not None


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


def test_a_step_that_is_written_with_a_chosen_loss(lab: Lab, tmp_path: Path, capsys: Any) -> None:
    """Also where the code defines a step of its own, which then is not used."""
    text = NET + "\ndef step(batch):\n    raise ValueError\n"
    setup = replace(SHORT, loss="nn.MultiMarginLoss", loss_params={"margin": 0.5})
    objective = Objective("pair", "(x, y)", loss_of_setup=True)
    script = check_same(lab, tmp_path, capsys, of_net(lab, tmp_path, text=text), objective, setup)
    assert "loss = nn.MultiMarginLoss(margin=0.5)(prediction, y)" in script


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


TAGGER = [
    """import torch
from torch import nn
torch.manual_seed(2)
rows = [(torch.randint(1, 9, (2 + i % 4,)), i % 3) for i in range(20)]
class Sequences(torch.utils.data.Dataset):
    def __len__(self):
        return len(rows)
    def __getitem__(self, i):
        return rows[i]""",
    """class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedded, self.last = nn.Embedding(9, 4), nn.Linear(4, 3)
    def forward(self, ids, real):
        if real.ndim == 1:
            real = torch.arange(ids.shape[1]) < real[:, None]
        return self.last((self.embedded(ids) * real[..., None]).sum(1) / real.sum(1)[:, None])""",
]


@pytest.mark.parametrize(
    "loading", [Loading(padding="right", gives="lengths"), Loading(padding="left", gives="mask")]
)
def test_samples_of_different_lengths_are_padded(
    loading: Loading, lab: Lab, tmp_path: Path, capsys: Any
) -> None:
    for cell in TAGGER:
        ask(lab, RunCellCommand(source=cell))
    setup = replace(SHORT, data=DataSetup(loading=loading))
    objective = Objective("Sequences()", "Sequences()")
    text = check_same(lab, tmp_path, capsys, ConsoleSubject("Tagger"), objective, setup)
    written = f"side={loading.padding!r}, value=0.0, gives={loading.gives!r}"
    assert f"partial(pad_batch, {written})" in text


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
    with pytest.raises(Exception, match="is your own file") as refused:
        ask(lab, export)
    assert refused.value.hint == "Give the script another name, or folder."
    assert (tmp_path / "net.py").read_text() == NET


def test_a_script_has_nothing_of_what_is_not_set(lab: Lab, tmp_path: Path, capsys: Any) -> None:
    cells = ("import torch\nfrom torch import nn", "torch.manual_seed(1)\nx = torch.randn(9, 3)",
             "net = nn.Linear(3, 1)\nbatches = [(x, x.sum(1, keepdim=True))]")  # fmt: skip
    for cell in cells:
        ask(lab, RunCellCommand(source=cell))
    subject, objective = ConsoleSubject("net"), Objective("batches")
    text = check_same(lab, tmp_path, capsys, subject, objective, SHORT)
    head, _, rest = text.partition("torch.set_num_threads(")
    assert head.partition('"""\n\n')[2] == (
        "import argparse\nimport random\nfrom collections.abc import Iterator, Mapping\n"
        "from itertools import islice\nfrom pathlib import Path\nfrom typing import Any\n\n"
        "import numpy as np\nimport torch\nimport torch.nn.functional as F\n"
        "from torch import Tensor, nn\n\n"
    )
    for word in (
        "scaler", "scheduler", "clip_", "autocast", " / 1)", "closure", "recomputed", "def aside",
        "in_use", "update_norms", "pad_batch", "generators_of", "Subset", "right", "averaged",
        "found[\"accuracy\"]", "\nNone", "imported(", "reference", "loader_of",
    ):  # fmt: skip
        assert word not in rest, word
    functions = [each.name for each in ast.parse(text).body if isinstance(each, ast.FunctionDef)]
    assert functions == [
        "tensors_in", "samples_in", "moved", "step", "figures_of", "made", "loaders", "train",
        "save", "main",
    ]  # fmt: skip
    assert "The first weights lie in train.data.pt" in head and "Trains `net`" in head


def test_averaged_weights_without_norms_need_no_statistics(
    lab: Lab, tmp_path: Path, capsys: Any
) -> None:
    setup = replace(SHORT, averaging=Averaging("SWA", start=1), epochs=3)
    subject = of_net(lab, tmp_path, "nn.Linear(4, 3)")
    text = check_same(lab, tmp_path, capsys, subject, Objective("pair"), setup)
    assert "update_norms" not in text and "def aside" not in text and "def in_use" in text
    assert "averaged.update_parameters(model)" in text


def test_names_of_the_loop_are_not_free_for_the_users_code(tmp_path: Path) -> None:
    for name in ("samples", "whole", "made", "saved", "nn"):
        cell = f"import torch\n{name} = torch.ones(9, 3)\nnet = torch.nn.Linear(3, 1)"
        lab = Lab(emit=lambda snapshot: None)
        ask(lab, RunCellCommand(source=cell))
        export = ExportCommand(
            model=Model(), training=SHORT, format="script", path=str(tmp_path / "s.py"),
            subject=ConsoleSubject("net"), verify=False,
            objective=Objective(f"[({name}, {name}[:, :1])]"),
        )  # fmt: skip
        with pytest.raises(LabError, match=f"The script has a `{name}` of its own"):
            ask(lab, export)
        assert not list(tmp_path.glob("s.*"))
