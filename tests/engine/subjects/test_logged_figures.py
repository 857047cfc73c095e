"""`lab.log` inside a step of Train: figures of the run, beside those that the step returns."""

from __future__ import annotations

import math

import pytest
import torch

from engine.project.document import Model, TrainingSetup
from engine.project.subject import ConsoleSubject, FileSubject, Objective
from engine.protocol import (
    LoggedPoints,
    ReadStructureCommand,
    RunCellCommand,
    RunFileCommand,
    TrainCommand,
    TrainingSnapshot,
)

SETUP = TrainingSetup(optimizer_params={"lr": 0.01}, batch_size=4, epochs=2, seed=1)
CODE = """
torch.manual_seed(0)
model = nn.Linear(3, 1)
x, y = torch.randn(12, 3), torch.randn(12, 1)
data, held = (x, y), (x[:6], y[:6])
"""
STEP = """\
def step(batch):
    x, y = batch
    error = model(x) - y
    lab.log(bias=error.mean(), largest=error.abs().max().item())
    if float(x[0, 0]) > 0:
        lab.log(positive=x[0, 0])
    return {"loss": error.square().mean(), "bias": 0.5}
"""


@pytest.fixture(autouse=True)
def data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path / "data"))


def train(ask, subject, objective, setup=SETUP) -> list[TrainingSnapshot]:
    command = TrainCommand(model=Model(), training=setup, subject=subject, objective=objective)
    told = [answer for answer in ask(command) if isinstance(answer, TrainingSnapshot)]
    assert (told[-1].state, told[-1].error) == ("finished", None)
    return told


def plain(setup=SETUP):
    """Per step (largest, positive or None), and per epoch (mean of positive over the samples of
    the batches that have it, mean of largest in validation)."""
    names: dict = {"torch": torch, "nn": torch.nn}
    exec(CODE, names)
    model, steps, epochs = names["model"], [], []
    torch.manual_seed(setup.seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(*names["data"]), setup.batch_size, shuffle=True
    )
    for _ in range(setup.epochs):
        of_epoch = []
        for x, y in loader:
            error = model(x) - y
            optimizer.zero_grad()
            error.square().mean().backward()
            optimizer.step()
            first = x[0, 0].item()
            of_epoch.append((error.abs().max().item(), first if first > 0 else None))
        steps += of_epoch
        having = [first for _, first in of_epoch if first is not None]
        x, y = names["held"]
        parts = [(model(x[at]) - y[at]).abs().max() for at in (slice(0, 4), slice(4, 6))]
        largest = (parts[0].item() * 4 + parts[1].item() * 2) / 6
        epochs.append((sum(having) / len(having) if having else None, largest))
    return steps, epochs


def test_logged_figures_are_those_of_the_step_and_of_the_epoch(ask):
    ask(RunCellCommand(source=CODE))
    told = train(ask, ConsoleSubject("model"), Objective("data", "held", STEP))
    steps, epochs = plain()
    columns: dict[str, list[float]] = {"largest": [], "positive": [], "bias": []}
    for snapshot in told:
        for name, values in columns.items():
            empty = (math.nan,) * len(snapshot.steps.step)
            values += snapshot.steps.figures.get(name, empty)
    assert columns["largest"] == pytest.approx([largest for largest, _ in steps])
    expected = [math.nan if first is None else first for _, first in steps]
    assert math.nan in expected and any(first == first for first in expected)
    assert columns["positive"] == pytest.approx(expected, nan_ok=True)
    assert columns["bias"] == [0.5] * 6  # what the step returns goes before
    rows = [row for snapshot in told for row in snapshot.epoch_rows]
    for row, (positive, largest) in zip(rows, epochs, strict=True):
        assert row.train_figures.get("positive") == pytest.approx(positive)
        assert row.validation_figures["largest"] == pytest.approx(largest)


def test_figures_logged_in_some_of_the_batches_of_a_step_are_the_mean_of_these(ask):
    setup = TrainingSetup(batch_size=4, epochs=1, seed=1, accumulate=3)
    ask(RunCellCommand(source=CODE))
    told = train(ask, ConsoleSubject("model"), Objective("data", "", STEP), setup)
    having = [first for _, first in plain(TrainingSetup(batch_size=4, epochs=1, seed=1))[0]]
    having = [first for first in having if first is not None]
    assert 0 < len(having) < 3
    (values,) = [s.steps.figures["positive"] for s in told if s.steps.figures]
    assert values == pytest.approx([sum(having) / len(having)])


def test_a_step_of_a_file_has_lab_too(lab, ask, write):
    path = write("net.py", f"import torch\nfrom torch import nn\n{CODE}\n{STEP}")
    ask(RunFileCommand(path=str(path)))
    told = train(ask, FileSubject(str(path), "model"), Objective("data"))
    assert any("largest" in snapshot.steps.figures for snapshot in told)


def test_what_a_loop_has_logged_stays_while_a_step_is_looked_at(lab, ask):
    ask(RunCellCommand(source=CODE))
    users = lab.console.namespace.lab
    users.log(mine=3)
    objective = Objective("data", "", STEP.replace("0.5", "F.relu(error.mean())"))
    subject = ConsoleSubject("model")
    (answer,) = ask(ReadStructureCommand(subject=subject, objective=objective, training=SETUP))
    assert answer.unrun is None
    assert users.numbers.read() == {"mine": LoggedPoints((1,), (3.0,))}


def test_too_many_names_in_a_step_are_told(ask):
    ask(RunCellCommand(source=CODE))
    step = "def step(batch):\n    for n in range(25): lab.log(**{f'f{n}': n})"
    command = TrainCommand(
        model=Model(), training=SETUP, subject=ConsoleSubject("model"),
        objective=Objective("data", "", step),
    )  # fmt: skip
    last = [a for a in ask(command) if isinstance(a, TrainingSnapshot)][-1]
    assert last.state == "failed" and "at most 24 different names" in last.error.message
