"""What is wrong with a field of a checkpoint is said, with the name of the field and the file."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from torch import nn

from engine.project.document import TrainingSetup
from engine.system.errors import LabError
from engine.training.checkpoints import checkpoint_fields, checkpoint_files
from engine.training.checkpoints.checkpoint_fields import FieldProblem
from engine.training.components.optimizers import Group
from engine.training.loop import TrainingLoop
from engine.training.optimization.optimizer_state import check_optimizer_state
from engine.training.run import TrainingRun

from .test_training_checkpoints import saved, train_until


def changed(path: Path, **changes: object) -> Path:
    """The checkpoint with other fields; those that are None are taken out."""
    fields = torch.load(path, weights_only=True)
    fields.update(changes)
    torch.save({name: value for name, value in fields.items() if value is not None}, path)
    return path


TOTALS = {
    "loss_sum": 0.5,
    "correct": 1,
    "samples": 2,
    "figure_sums": {},
    "figure_samples": {},
    "counted": True,
}
BEST = {
    "figure": "train loss", "epoch": 1, "step": 2, "value": 0.5, "reference": 0.5, "waited": 0,
    "weights": {},
}  # fmt: skip
ROW = (1, 2, 0.0, 0.0, 0.0, 0.0, {}, {})


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("epoch", "one", r"epoch: a whole number from 0 on is expected, not 'one'\."),
        ("epoch", -1, "epoch: a whole number from 0 on is expected, not -1"),
        ("step", True, "step: a whole number from 0 on is expected, not True"),
        ("step", 2.5, "step: a whole number from 0 on is expected, not 2.5"),
        ("step", 2**70, "step: .* not a whole number of more than 64 bits"),
        ("batch", None, "batch: it is missing"),
        ("totals", 3, "totals: loss_sum, correct, .* are expected, not 3"),
        ("totals", TOTALS | {"loss_sum": "much"}, "totals.loss_sum: a finite number is expected"),
        ("totals", TOTALS | {"loss_sum": math.nan}, "totals.loss_sum: a finite .* not nan"),
        ("totals", TOTALS | {"correct": 0.5}, "totals.correct: a whole number from 0 on"),
        ("totals", TOTALS | {"samples": -1}, "totals.samples: a whole number from 0 on"),
        ("totals", TOTALS | {"counted": 1}, "totals.counted: True or False is expected, not 1"),
        ("totals", TOTALS | {"figure_sums": {"f1": "x"}}, "totals.figure_sums.f1: a float is"),
        ("totals", TOTALS | {"figure_sums": {1: 0.5}}, "figure_sums: the name of a figure is 1"),
        (
            "totals",
            TOTALS | {"figure_sums": {"f1": 0.5}},
            "figure_samples: a number for each figure",
        ),
        (
            "totals",
            TOTALS | {"figure_sums": {"f1": 0.5}, "figure_samples": {"f1": 0}},
            "totals.figure_samples.f1: it is 0",
        ),
        ("figures", [{}], "figures: one dict for each step is expected"),
        ("figures", 3, "figures: one dict for each step is expected, not 3"),
        ("run", 5, "run: 5 is not a name of a folder"),
        ("run", "..", r"run: '\.\.' is not a name of a folder"),
        ("run", "\ud800", "run: .* is not a name of a folder"),
        ("setup", 5, "setup: JSON is expected, not 5"),
        ("setup", "{", "setup: Input data was truncated"),
        ("setup", '{"seed": "x"}', "setup: Expected `int`, got `str`"),
        ("subject", 5, "subject: JSON is expected, not 5"),
        ("subject", '{"type": "moon"}', "subject: Invalid value 'moon'"),
        ("metrics", 5, "metrics: names and states are expected, not 5"),
        ("metrics", ({"f1": 0}, []), "metrics.names.f1: there is no metric 0"),
        ("metrics", ({}, [5]), r"metrics\[0\]: a dict is expected, not 5"),
        ("metrics", ({}, [{"sums": "x"}]), r"metrics\[0\].sums: a tensor is expected, not 'x'"),
        ("model", [1], "model: tensors by name are expected, not a list"),
        ("model", {"w": 1}, "model.w: a tensor is expected, not 1"),
        ("model", {3: torch.zeros(1)}, "model: the name of a tensor is 3"),
        ("model", {"w": torch.zeros(2, 2).to_sparse()}, "model.w: a dense tensor is expected"),
        ("optimizer", 7, "optimizer: a state_dict is expected, not 7"),
        ("optimizer", {}, "optimizer.state: a dict is expected, not None"),
        ("optimizer", {"state": {"a": {}}}, "optimizer.state, the number of a parameter"),
        ("optimizer", {"state": {0: 5}}, r"optimizer.state\[0\]: a dict is expected, not 5"),
        ("optimizer", {"state": {0: {1: 5}}}, r"state\[0\]: the name of an entry is 1"),
        ("optimizer", {"state": {0: {"m": "x"}}}, r"state\[0\].m: a tensor is expected, not 'x'"),
        ("rng", {"cpu": torch.zeros(8)}, "rng.cpu: a uint8 tensor of one dimension"),
        ("rng", {"cpu": torch.zeros(8, dtype=torch.uint8)}, "rng.cpu: this is not a state of"),
        ("epoch_rng", {"cpu": torch.zeros(8)}, "epoch_rng.cpu: a uint8 tensor of one dimension"),
        ("history", [1, 2], "history: a tensor is expected, not a list"),
        ("history", torch.zeros(2, 9).double().to_sparse(), "history: a dense tensor is expected"),
        ("history", torch.zeros(2, 9), r"history: a float64 tensor of shape \(steps, 9\)"),
        ("history", torch.zeros(2, 3, dtype=torch.float64), "history: a float64 tensor of shape"),
        ("history", torch.full((1, 9), math.inf, dtype=torch.float64), r"history\[0\]: .* not inf"),
        ("history", torch.full((1, 9), math.nan, dtype=torch.float64), r"history\[0\]: .* not nan"),
        ("epoch_rows", 3, "epoch_rows: a list is expected, not 3"),
        ("epoch_rows", [(1, 2)], r"epoch_rows\[0\]: 8 entries are expected, not a tuple"),
        ("epoch_rows", [("a", *ROW[1:])], r"epoch_rows\[0\].epoch: a whole number"),
        ("epoch_rows", [(*ROW[:2], "a", *ROW[3:])], r"epoch_rows\[0\].train_loss: a float is"),
        ("epoch_rows", [(*ROW[:7], 3)], r"epoch_rows\[0\].validation_figures: figures by name"),
        ("totals", TOTALS | {"figure_sums": {"f1": 1}}, "totals.figure_sums.f1: a float is"),
        ("totals", TOTALS | {"figure_sums": 5}, "totals.figure_sums: figures by name are"),
        ("totals", {**TOTALS, "more": 1}, "totals: loss_sum, correct, .* are expected"),
        ("metrics", ({}, [{}], 3), "metrics: names and states are expected, not a tuple"),
        ("metrics", ({"f1": -1}, [{}]), "metrics.names.f1: a whole number from 0 on"),
        ("gradients", {"w": 1}, "gradients.w: a tensor is expected, not 1"),
        ("averaged", {"w": 1}, "averaged.w: a tensor is expected, not 1"),
        ("scheduler", 5, "scheduler: numbers by name are expected, not 5"),
        ("scheduler", {"rates": [0.1, "x"]}, "scheduler.rates: a number is expected, not 'x'"),
        ("scaler", {1: 0.5}, "scaler: the name of an entry is 1"),
        ("rng", {"other:0": torch.zeros(8, dtype=torch.uint8)}, "rng.other:0: this is not a state"),
        ("past", '{"since": "x"}', "past: Expected `int`, got `str`"),
        ("marks", 5, "marks: a list is expected, not 5"),
        ("marks", [(1, "a", "b")], r"marks\[0\]: a step and words are expected"),
        ("marks", [(1, "a"), (2, 3)], r"marks\[1\]: a step and words are expected"),
        ("marks", [(-1, "a")], r"marks\[0\]: a whole number from 0 on is expected, not -1"),
        ("best", 5, "best: an epoch with its weights is expected, not 5"),
        ("best", {"figure": "train loss"}, "best: an epoch with its weights is expected"),
        ("best", BEST | {"figure": "beauty"}, "best.figure: it is 'beauty'"),
        ("best", BEST | {"value": 1}, "best.value: a float is expected: 1"),
        ("best", BEST | {"reference": None}, "best.reference: a float is expected: None"),
        ("best", BEST | {"waited": -1}, "best.waited: a whole number from 0 on"),
        ("best", BEST | {"weights": {"w": 1}}, "best.weights.w: a tensor is expected, not 1"),
        ("format", "3", "format: 4 is expected, not '3'"),
        ("format", True, "format: 4 is expected, not True"),
    ],
)
def test_a_field_of_a_wrong_type_is_named_with_its_file(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], field: str, value, words: str
) -> None:
    path = changed(saved(TrainingLoop(make_mlp(), moons)), **{field: value})
    with pytest.raises(LabError, match=words) as caught:
        checkpoint_files.load(path)
    assert str(caught.value).startswith(f"{path} is not a checkpoint of a training run. ")


def test_the_generator_of_another_device_is_read_without_that_device(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    loop = TrainingLoop(make_mlp(), moons)
    states = {**loop.checkpoint("run").rng, "cuda": torch.zeros(16, dtype=torch.uint8)}
    read = checkpoint_files.load(changed(saved(loop), rng=states))
    assert {name: len(state) for name, state in read.rng.items()} == {
        "cpu": len(states["cpu"]), "cuda": 16}  # fmt: skip
    TrainingRun(TrainingLoop(make_mlp(), moons), read)


@pytest.mark.parametrize(
    ("entry", "value", "words"),
    [
        ("exp_avg", torch.zeros(3), r"exp_avg: it has shape \(3,\), its parameter needs \(16, 2\)"),
        ("exp_avg", None, "exp_avg: a tensor is expected"),
        ("exp_avg", torch.zeros(16, 2, dtype=torch.int64), "exp_avg: it has dtype torch.int64"),
        ("step", torch.zeros(4), r"step: it has shape \(4,\), its parameter needs \(\)"),
        ("step", 5, "step: a tensor is expected"),
    ],
)
def test_an_optimizer_state_that_does_not_fit_is_named_and_nothing_changes(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], entry: str, value, words: str
) -> None:
    loop = TrainingLoop(make_mlp(), moons)
    train_until(loop, 2)
    path = saved(loop)
    optimizer = torch.load(path, weights_only=True)["optimizer"]
    optimizer["state"][0][entry] = value
    checkpoint = checkpoint_files.load(changed(path, optimizer=optimizer))
    other = make_mlp()
    before = {name: tensor.clone() for name, tensor in other.state_dict().items()}
    with pytest.raises(
        LabError, match=rf"does not fit the optimizer. optimizer.state\[0\].{words}"
    ):
        TrainingRun(TrainingLoop(other, moons), checkpoint)
    assert all(torch.equal(tensor, before[name]) for name, tensor in other.state_dict().items())


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({0: {}}, r"optimizer.state\[0\]: exp_avg is missing"),
        ({9: {}}, r"optimizer.state\[9\]: the model has 6 parameters"),
    ],
)
def test_an_optimizer_state_without_an_entry_or_of_no_parameter_is_told(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], state: dict, words: str
) -> None:
    loop = TrainingLoop(make_mlp(), moons)
    path = changed(saved(loop), optimizer={"state": state, "param_groups": []})
    with pytest.raises(LabError, match=words):
        TrainingRun(TrainingLoop(make_mlp(), moons), checkpoint_files.load(path))


def check_state(kind: type[torch.optim.Optimizer], state: dict, *shapes: int) -> None:
    """Check a state against an optimizer with one group of parameters of these shapes."""
    parameters = [nn.Parameter(torch.zeros(shape)) for shape in shapes]
    groups = [Group({}, parameters)]
    check_optimizer_state(
        state, parameters, groups, lambda groups: kind([p for g in groups for p in g.parameters])
    )


def test_the_example_of_a_state_is_on_the_device_of_the_run() -> None:
    """With `capturable`, Adam refuses to step a parameter on the CPU."""
    devices: list[str] = []

    def make(groups: Sequence[Group]) -> torch.optim.Optimizer:
        parameters = [p for group in groups for p in group.parameters]
        devices.extend(p.device.type for p in parameters)
        return torch.optim.Adam(parameters)

    parameter = nn.Parameter(torch.zeros(5, device="meta"))
    entry = {"step": torch.tensor(3.0), "exp_avg": torch.zeros(5), "exp_avg_sq": torch.zeros(5)}
    check_optimizer_state({0: entry}, [parameter], [Group({}, [parameter])], make)
    assert set(devices) == {"meta"}


def test_sparse_adam_counts_its_steps_with_a_plain_number() -> None:
    moments = {"exp_avg": torch.zeros(5), "exp_avg_sq": torch.zeros(5)}
    check_state(torch.optim.SparseAdam, {0: {"step": 3, **moments}}, 5)
    with pytest.raises(FieldProblem, match=r"optimizer.state\[0\].step: a int is expected"):
        check_state(torch.optim.SparseAdam, {0: {"step": torch.tensor(3.0), **moments}}, 5)


def test_lbfgs_has_one_entry_for_all_parameters() -> None:
    vector = torch.zeros(3)
    entry = {"d": vector, "prev_flat_grad": vector, "old_dirs": [vector], "old_stps": [vector]}
    check_state(torch.optim.LBFGS, {0: entry}, 2, 1)
    with pytest.raises(FieldProblem, match="one entry for all parameters"):
        check_state(torch.optim.LBFGS, {0: entry, 1: entry}, 2, 1)


def test_the_history_of_earlier_files_has_fewer_columns(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    loop = TrainingLoop(make_mlp(), moons)
    train_until(loop, 3)
    written = loop.checkpoint("run")
    fields = checkpoint_fields.encode(written)
    fields["history"] = fields["history"][:, :9]
    read = checkpoint_fields.decode(fields).history
    assert [row[:9] for row in read] == [row[:9] for row in written.history]
    assert all(map(math.isnan, read[0][9:11])) and len(read) == 3
    fields["history"] = fields["history"][:, :8]
    with pytest.raises(checkpoint_fields.FieldProblem, match=r"shape \(steps, 11\)"):
        checkpoint_fields.decode(fields)


def test_a_gradient_of_another_shape_is_refused(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    path = saved(TrainingLoop(make_mlp(), moons))
    for gradients, words in (
        ({"0.weight": torch.zeros(2)}, r"of shape \(2,\) for 0.weight, which has shape \(16, 2\)"),
        ({"other": torch.zeros(2)}, r"of shape \(2,\) for other, which has shape none"),
    ):
        read = checkpoint_files.load(changed(path, gradients=gradients))
        with pytest.raises(LabError, match=words):
            TrainingRun(TrainingLoop(make_mlp(), moons), read)
