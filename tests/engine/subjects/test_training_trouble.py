"""Runs of a subject of code that go wrong: told in words, and the module stays usable."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from engine.handlers.subjects.find import find_subject
from engine.lab import Lab
from engine.project.document import Model, TrainingSetup
from engine.project.subject import FileSubject, Objective
from engine.protocol import ReadStructureCommand, RunFileCommand, TrainCommand, TrainingSnapshot

from .conftest import Ask, Write

SETUP = TrainingSetup(optimizer_params={"lr": 0.01}, batch_size=4, epochs=2, seed=1)
FILE = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.head = nn.Linear(3, 4)
        self.aside = nn.Dropout(0.5).eval()

    def forward(self, x):
        return self.head(self.norm(x))

x = torch.linspace(-1, 1, 36).reshape(12, 3)
y = torch.arange(12) % 4
data = TensorDataset(x, y)
loader = DataLoader(data, batch_size=4)
steps = 0

def step(model, batch):
    global steps
    steps += 1
    x, y = batch
    loss = F.cross_entropy(model(x), y)
"""


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path / "data"))


class Tried:
    """A file that has run, its module, and how a run of it ended."""

    def __init__(self, lab: Lab, ask: Ask, path: Path) -> None:
        ask(RunFileCommand(path=str(path)))
        self.path, self.ask = path, ask
        self.subject = FileSubject(str(path), "Net")
        self.module = find_subject(lab, self.subject, Model(), SETUP).module

    def train(self, data: str = "loader") -> TrainingSnapshot:
        command = TrainCommand(
            model=Model(), training=SETUP, subject=self.subject, objective=Objective(data)
        )
        *_, last = self.ask(command)
        assert isinstance(last, TrainingSnapshot)
        return last

    def is_usable(self) -> None:
        """No hook is left, the modes are those of the class, the weights are numbers."""
        hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
        for part in self.module.modules():
            assert not any(getattr(part, name) for name in hooks)
        assert self.module.training and not self.module.aside.training
        assert all(bool(t.isfinite().all()) for t in self.module.state_dict().values())


@pytest.fixture
def tried(lab: Lab, ask: Ask, write: Write):
    return lambda ending, name="net.py": Tried(lab, ask, write(name, FILE + ending))


def plain_steps(count: int) -> nn.Module:
    """The module after so many steps of the plain loop."""
    names: dict = {"__name__": "plain"}
    exec(FILE + "    return loss\n", names)
    torch.manual_seed(SETUP.seed)
    model = names["Net"]()
    torch.manual_seed(SETUP.seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _, batch in zip(range(count), names["loader"], strict=False):
        optimizer.zero_grad()
        names["step"](model, batch).backward()
        optimizer.step()
    return model


def same_weights(ours: nn.Module, plain: nn.Module) -> None:
    for name, p in plain.named_parameters():
        assert torch.equal(p, ours.get_parameter(name)), name


def test_a_step_that_raises_in_the_middle(tried) -> None:
    run = tried("    if steps == 3:\n        raise KeyError('third')\n    return loss\n")
    last = run.train()
    assert (last.state, last.step) == ("failed", 2)
    assert last.error.type == "KeyError" and "third" in last.error.message
    assert f'File "{run.path}", line {last.error.line}' in last.error.traceback
    assert run.path.read_text().splitlines()[last.error.line - 1].strip().startswith("raise")
    assert "engine" not in last.error.traceback
    same_weights(run.module, plain_steps(2))
    run.is_usable()
    assert run.train().state == "finished"  # it goes on from there


def test_a_loss_that_is_nan(tried) -> None:
    run = tried("    return loss * (float('nan') if steps == 2 else 1.0)\n")
    last = run.train()
    assert (last.state, last.step) == ("failed", 1)
    assert last.error.type == "Diverged"
    same_weights(run.module, plain_steps(1))
    run.is_usable()


def test_a_label_out_of_range(tried) -> None:
    run = tried("    return loss\n\ny[6] = 9\n")
    last = run.train()
    assert (last.state, last.step) == ("failed", 1)
    assert last.error.type == "IndexError" and "Target 9 is out of bounds" in last.error.message
    assert "4 classes, numbered 0 to 3, and a label is 9." in last.error.hint
    assert "loss = F.cross_entropy(model(x), y)" in last.error.traceback
    same_weights(run.module, plain_steps(1))
    run.is_usable()


SHRINKING = """
    return loss

class Shrinking(Dataset):
    def __init__(self):
        self.length = 12
    def __len__(self):
        return self.length
    def __getitem__(self, i):
        if i == 11:
            self.length = 6
        return data[i]

shrinking = DataLoader(Shrinking(), batch_size=4)
"""


def test_data_that_change_their_length(tried) -> None:
    run = tried(SHRINKING)
    last = run.train("shrinking")
    assert (last.state, last.error) == ("finished", None)
    assert last.step == 3 + 2 and [row.epoch for row in last.epoch_rows][-1:] == [2]
    assert last.total_steps == 2 * 2  # as the data say now
    run.is_usable()


def test_a_data_set_that_raises(tried) -> None:
    run = tried(
        "    return loss\n\nclass Broken(TensorDataset):\n    def __getitem__(self, i):\n"
        "        return self.tensors[0][i], i % 4 + 0 // (i - 5)\n\nbroken = Broken(x)\n"
        "broken = DataLoader(broken, batch_size=4)\n"
    )
    last = run.train("broken")
    assert (last.state, last.step) == ("failed", 1)
    assert last.error.type == "ZeroDivisionError" and "0 // (i - 5)" in last.error.traceback
    run.is_usable()
    (structure,) = run.ask(
        ReadStructureCommand(subject=run.subject, objective=Objective("broken"), training=SETUP)
    )
    assert structure.unrun is None and structure.modules[0].call_count == 1


def test_lazy_modules_are_trained_as_after_a_dry_run(lab: Lab, ask: Ask, write: Write) -> None:
    path = write(
        "lazy.py",
        """
        import torch
        from torch import nn

        class Lazy(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(nn.LazyLinear(5), nn.LazyBatchNorm1d(), nn.ReLU())
                self.head = nn.LazyLinear(1)

            def forward(self, x):
                return self.head(self.body(x))

        data = torch.linspace(-1, 1, 36).reshape(12, 3), torch.linspace(0, 1, 12).reshape(12, 1)
        """,
    )
    ask(RunFileCommand(path=str(path)))
    subject, objective = FileSubject(str(path), "Lazy"), Objective("data")
    (before,) = ask(ReadStructureCommand(subject=subject, training=SETUP))
    assert [row.elements for row in before.weights if row.kind == "parameter"] == [0] * 6
    *_, last = ask(
        TrainCommand(model=Model(), training=SETUP, subject=subject, objective=objective)
    )
    assert (last.state, last.error) == ("finished", None)
    (after,) = ask(ReadStructureCommand(subject=subject, objective=objective, training=SETUP))
    assert after.unrun is None
    shapes = {row.name: row.shape for row in after.weights if row.kind == "parameter"}
    assert shapes["body.0.weight"] == (5, 3) and shapes["head.weight"] == (1, 5)
    module = find_subject(lab, subject, Model(), SETUP).module
    assert int(module.state_dict()["body.1.num_batches_tracked"]) == last.step
