"""Sweeps: each trial is a run of its own with the values that were drawn, and nothing else."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import torch

from app.templates import load_template
from engine.handlers.subjects.find import find_subject
from engine.handlers.training import run_script as run_script_room
from engine.handlers.training.sweeps.trial import figure_of
from engine.lab import Lab
from engine.project.document import Project, replace
from engine.project.subject import ConsoleSubject, Objective
from engine.project.sweeps.sweep import Choice, Sweep
from engine.project.sweeps.trials import with_values
from engine.protocol import (
    CheckpointSnapshot,
    EpochRow,
    FindCheckpointCommand,
    OutputSnapshot,
    RunRow,
    SweepCommand,
    TrainCommand,
    TrainingSnapshot,
)
from engine.runs import folders, reading
from engine.runs.record import load
from engine.runs.summary import rows_in
from engine.server.session import handler_of
from engine.system.errors import LabError
from engine.training.checkpoints import checkpoint_files
from engine.training.study import WARM_UP_TRIALS
from tests.scripts import run_script

MLP = load_template("mlp")
PROJECT = replace(MLP, training=replace(MLP.training, epochs=2, batch_size=400))
RATE, SIZE = (
    Choice("optimizer_params.lr", low=1e-4, high=1e-1, log=True),
    Choice("batch_size", (200, 400)),
)


def new_lab() -> Lab:
    return Lab(emit=lambda snapshot: None)


def swept(
    runs: Path, *choices: Choice, lab: Lab | None = None, project: Project = PROJECT, **fields
) -> tuple[list[TrainingSnapshot], list[RunRow]]:
    """The snapshots of a sweep, and its trials in their order."""
    command = SweepCommand(
        model=project.model,
        training=project.training,
        subject=project.subject,
        objective=project.objective,
        runs=str(runs),
        sweep=Sweep(choices, **{"trials": 3, "prune": False, **fields}),
    )
    told = [
        snapshot
        for snapshot in handler_of(SweepCommand)(lab or new_lab(), command)
        if isinstance(snapshot, TrainingSnapshot)
    ]
    rows = sorted(rows_in(runs), key=lambda row: row.trial.number if row.trial else 0)
    return told, rows


def plainly_trained(project: Project) -> TrainingSnapshot:
    command = TrainCommand(model=project.model, training=project.training, fresh=True)
    *_, last = handler_of(TrainCommand)(new_lab(), command)
    assert isinstance(last, TrainingSnapshot)
    return last


def test_a_trial_is_the_run_of_its_values(tmp_path: Path) -> None:
    told, rows = swept(tmp_path, RATE, SIZE)
    assert [row.state for row in rows] == ["finished"] * 3
    values: list[Any] = [load(Path(row.folder)).trial.values for row in rows]
    assert len({each["optimizer_params.lr"] for each in values}) == 3
    for row, each in zip(rows, values, strict=True):
        assert 1e-4 <= each["optimizer_params.lr"] <= 1e-1 and each["batch_size"] in (200, 400)
        project = with_values(PROJECT, each)
        assert load(Path(row.folder)).project.training == project.training
        whole = plainly_trained(project).epoch_rows[-1]
        assert row.epoch == whole
        assert row.trial.value == whole.validation_loss
    best = min(rows, key=lambda row: row.trial.value if row.trial and row.trial.value else 99.0)
    assert [row.trial.state for row in rows] == ["best" if row is best else "" for row in rows]
    last = told[-1].trial
    assert (last.number, last.trials, last.best, last.value) == (
        3, 3, best.trial.number, best.trial.value,
    )  # fmt: skip
    assert last.has_ended and not told[0].trial.has_ended
    assert rows[0].trial.values == (
        f"lr {values[0]['optimizer_params.lr']:.3g}, batch_size {values[0]['batch_size']}"
    )


def test_each_trial_has_a_script_that_gives_its_weights(tmp_path: Path) -> None:
    _, rows = swept(tmp_path / "runs", RATE, SIZE)
    for row in rows:
        check_script(Path(row.folder), tmp_path)


def check_script(folder: Path, tmp_path: Path) -> None:
    assert load(folder).no_script == ""
    run_script(folder / "train.py", "--out", str(tmp_path / "weights.pt"))
    weights = torch.load(tmp_path / "weights.pt", weights_only=True)
    last = checkpoint_files.load(folders.checkpoints_of(folder)[0]).model
    assert weights.keys() == last.keys()
    assert all(torch.equal(tensor, weights[name]) for name, tensor in last.items())


def test_the_files_of_all_scripts_are_not_larger_than_those_of_a_run(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(run_script_room, "MAX_BYTES", 3 * 200_000)
    _, rows = swept(tmp_path, RATE)
    told = [load(Path(row.folder)).no_script for row in rows]
    words = "Data and first weights lie beside it, in each of 3 trials: 0.5 MiB."
    assert told == [f"{words} Export writes the training script."] * 3


def test_the_same_seed_gives_the_same_sweep(tmp_path: Path) -> None:
    figures = [
        [(row.trial.values, row.trial.value) for row in swept(tmp_path / name, RATE, seed=seed)[1]]
        for name, seed in (("a", 3), ("b", 3), ("c", 4))
    ]
    assert figures[0] == figures[1] != figures[2]


def test_the_model_has_its_weights_of_before(tmp_path: Path) -> None:
    lab = new_lab()
    list(handler_of(TrainCommand)(lab, TrainCommand(model=MLP.model, training=PROJECT.training)))
    canvas = MLP.subject, MLP.model, PROJECT.training
    before = {n: t.clone() for n, t in find_subject(lab, *canvas).module.state_dict().items()}
    bias = Choice("blocks.linear1.bias", (True, False))
    _, rows = swept(tmp_path, bias, lab=lab, trials=4)
    assert {row.trial.values for row in rows} == {"linear1.bias True", "linear1.bias False"}
    assert {row.state for row in rows} == {"finished"}
    after = find_subject(lab, *canvas).module.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())


def test_accuracy_is_best_high(tmp_path: Path) -> None:
    _, rows = swept(tmp_path, RATE, figure="validation accuracy", maximise=True)
    best = next(row for row in rows if row.trial.state == "best")
    assert best.trial.value == max(row.epoch.validation_accuracy for row in rows)
    assert all(row.trial.value == row.epoch.validation_accuracy for row in rows)


def test_without_the_figure_none_is_best(tmp_path: Path) -> None:
    told, (row,) = swept(tmp_path, RATE, figure="validation perplexity", trials=1)
    assert (row.state, row.trial.value, row.trial.state) == ("finished", None, "")
    assert told[-1].trial.best == 0


def test_values_that_do_not_fit_make_no_run(tmp_path: Path) -> None:
    _, rows = swept(tmp_path, Choice("blocks.linear1.out_features", (7, 128)), trials=4)
    assert {row.trial.values for row in rows} == {"linear1.out_features 128"}
    assert 0 < len(rows) < 4


def test_a_trial_that_is_worse_than_most_ends_early(tmp_path: Path) -> None:
    project = replace(PROJECT, training=replace(PROJECT.training, epochs=3))
    _, rows = swept(tmp_path, RATE, project=project, trials=10, prune=True)
    losses = {
        row.trial.number: [
            epoch.validation_loss
            for epoch in reading.read(Path(row.folder) / "metrics.sqlite", 100)[1]
        ]
        for row in rows
    }
    whole: list[list[float]] = []
    pruned = 0
    for row in rows:
        own = losses[row.trial.number]
        is_worse = [
            len(whole) >= WARM_UP_TRIALS
            and min(own[: epoch + 1]) > statistics.median(other[epoch] for other in whole)
            for epoch in range(min(len(own), 2))  # after the last one there is nothing to end
        ]
        assert (row.trial.state == "pruned") == any(is_worse)
        if row.trial.state == "pruned":
            pruned += 1
            assert is_worse == [False] * (len(own) - 1) + [True]
            assert (row.state, row.trial.value) == ("stopped", own[-1])
        else:
            whole.append(own)
    assert pruned


def test_a_trial_that_diverges_is_told_and_the_sweep_goes_on(tmp_path: Path) -> None:
    sizes = Choice("optimizer_params.lr", (1e-2, 1e30))
    _, rows = swept(tmp_path, sizes, trials=5, seed=2)
    states = {row.trial.values: row.state for row in rows}
    assert states == {"lr 0.01": "finished", "lr 1e+30": "failed"}
    assert len(rows) == 5
    assert all(row.trial.value is None for row in rows if row.state == "failed")


def test_an_option_that_one_optimizer_lacks_is_left_out(tmp_path: Path) -> None:
    choices = (
        Choice("optimizer", ("optim.Adam", "optim.SGD")),
        Choice("optimizer_params.momentum", (0.5, 0.9)),
    )
    _, rows = swept(tmp_path, *choices, trials=4)
    setups = [load(Path(row.folder)).project.training for row in rows]
    assert {setup.optimizer for setup in setups} == {"optim.Adam", "optim.SGD"}
    for setup in setups:
        assert ("momentum" in setup.optimizer_params) == (setup.optimizer == "optim.SGD")


def test_an_object_of_the_users_code_begins_each_trial_with_its_weights(tmp_path: Path) -> None:
    lab = new_lab()
    names = lab.console.namespace.variables
    torch.manual_seed(0)
    names["net"] = torch.nn.Linear(3, 2)
    names["data"] = torch.utils.data.TensorDataset(torch.randn(20, 3), torch.arange(20) % 2)
    before = {name: tensor.clone() for name, tensor in names["net"].state_dict().items()}
    project = replace(
        PROJECT, subject=ConsoleSubject("net"), objective=Objective(data="data", validation="data")
    )
    told, rows = swept(tmp_path, Choice("seed", (0,)), lab=lab, project=project, trials=2)
    assert rows[0].trial.value == rows[1].trial.value
    assert told[-1].trial.best == 1  # the first of two equal ones
    after = names["net"].state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())


def test_what_the_code_of_a_trial_prints_is_told(tmp_path: Path) -> None:
    said: list[Any] = []
    lab = Lab(emit=said.append)
    names = lab.console.namespace.variables
    names["net"] = torch.nn.Linear(3, 2)
    names["data"] = torch.utils.data.TensorDataset(torch.randn(20, 3))
    step = "def step(batch):\n    print('one step')\n    return model(batch[0]).sum()"
    project = replace(
        PROJECT, subject=ConsoleSubject("net"), objective=Objective(data="data", step=step)
    )
    swept(tmp_path, Choice("seed", (0,)), lab=lab, project=project, trials=1)
    text = "".join(each.text for each in said if isinstance(each, OutputSnapshot))
    assert text == "one step\n" * PROJECT.training.epochs


def test_no_trial_is_offered_to_be_resumed(tmp_path: Path) -> None:
    swept(tmp_path, Choice("seed", (PROJECT.training.seed,)), trials=1)
    command = FindCheckpointCommand(
        model=MLP.model, training=PROJECT.training, runs=str(tmp_path)
    )  # fmt: skip
    (found,) = handler_of(FindCheckpointCommand)(new_lab(), command)
    assert isinstance(found, CheckpointSnapshot) and found.path == ""


def test_a_sweep_that_is_stopped_keeps_what_it_has(tmp_path: Path) -> None:
    lab = new_lab()
    command = SweepCommand(
        model=MLP.model,
        training=PROJECT.training,
        runs=str(tmp_path),
        sweep=Sweep((RATE,), trials=9, prune=False),
    )
    last = None
    for snapshot in handler_of(SweepCommand)(lab, command):
        if isinstance(snapshot, TrainingSnapshot):
            last = snapshot
            if snapshot.trial.number == 2:
                lab.control.stop.set()
    assert last is not None and last.state == "stopped" and last.trial.has_ended
    states = [(row.trial.number, row.state) for row in rows_in(tmp_path)]
    assert (1, "finished") in states and len(states) <= 2


def test_a_sweep_that_is_cut_off_ends_the_run_of_its_trial(tmp_path: Path) -> None:
    command = SweepCommand(
        model=MLP.model, training=PROJECT.training, runs=str(tmp_path), sweep=Sweep((RATE,))
    )
    steps = handler_of(SweepCommand)(new_lab(), command)
    assert any(isinstance(told, TrainingSnapshot) and told.step for told in steps)
    assert isinstance(steps, Generator)
    steps.close()
    (row,) = rows_in(tmp_path)
    assert (row.state, row.trial.number) == ("stopped", 1)


def test_what_makes_no_sense_is_refused(tmp_path: Path, monkeypatch) -> None:
    for choice, words in (
        (Choice("optimizer_params.nonsense", (1,)), "There is no parameter “nonsense”"),
        (Choice("batch_size", low=0, high=5), "batch_size cannot be 0"),
        (Choice("blocks.none.p", (0.5,)), "The model has no block `none`"),
        (
            Choice("blocks.linear1.out_features", (7,)),
            "No trial could be trained.*“linear2”: Linear expects 128 features, gets 7",
        ),
    ):
        with pytest.raises(LabError, match=words):
            swept(tmp_path, choice)
    with pytest.raises(LabError, match="Choose a setting to vary"):
        swept(tmp_path)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(LabError, match="Optuna is not installed") as told:
        swept(tmp_path, RATE)
    assert "pip install 'tensorlab[sweep]'" in told.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_trains_each_trial_in_one_process(tmp_path: Path) -> None:
    project = replace(PROJECT, training=replace(PROJECT.training, processes=2))
    with pytest.raises(LabError, match="A trial of a sweep trains in one process") as refused:
        swept(tmp_path, RATE, project=project)
    assert refused.value.hint == "Set processes to 1."


@pytest.mark.parametrize(
    ("name", "rows", "expected"),
    [
        ("validation loss", {}, 0.5), ("validation accuracy", {}, 0.25), ("train loss", {}, 2.0),
        ("validation loss", {"validation_loss": math.nan}, 2.0),
        ("validation accuracy", {"validation_accuracy": math.nan}, 0.75),
        ("f1", {"validation_figures": {"f1": 0.1},
                           "train_figures": {"f1": 0.2}}, 0.1),
        ("f1", {"train_figures": {"f1": 0.2}}, 0.2),
        ("f1", {"validation_figures": {"f1": math.nan},
                           "train_figures": {"f1": 0.2}}, 0.2),
        ("f1", {}, None),
    ],
)  # fmt: skip
def test_the_figure_of_an_epoch_is_that_of_training_without_validation(
    name: str, rows: dict[str, Any], expected: float | None
) -> None:
    assert figure_of(replace(EpochRow(1, 1, 2.0, 0.75, 0.5, 0.25), **rows), name) == expected
