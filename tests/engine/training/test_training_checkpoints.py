"""Checkpoints: a resumed run equals one that never stopped; what is wrong with a file is said."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from engine.errors import LabError
from engine.project.document import DataSetup, TrainingSetup, replace
from engine.runs import folders
from engine.training.checkpoints import checkpoint_fields, checkpoint_files
from engine.training.checkpoints.checkpoint_fields import FieldProblem
from engine.training.checkpoints.checkpoint_files import Checkpoint
from engine.training.components.optimizers import Group
from engine.training.loop import TrainingLoop
from engine.training.optimization.optimizer_state import check_optimizer_state
from engine.training.run import TrainingRun


def train_until(loop: TrainingLoop, pieces: int) -> None:
    """Advance by this many pieces (steps, batches of validation, ends of epochs)."""
    steps = loop.steps()
    for _ in range(pieces):
        next(steps)
    steps.close()


def saved(loop: TrainingLoop, run: str = "run") -> Path:
    return checkpoint_files.save(loop.checkpoint(run))


def untimed(rows: list) -> list[tuple]:
    """Rows without what depends on the clock and the machine."""
    return [row[:5] for row in rows]


# 15 pieces in all: per epoch 3 steps, 1 batch of validation, 1 end (the last epoch has none).
@pytest.mark.parametrize("pieces", [0, 1, 3, 4, 5, 8, 9, 14])
@pytest.mark.parametrize("optimizer", ["optim.SGD", "optim.Adam", "optim.AdamW", "optim.RMSprop"])
def test_a_resumed_run_equals_a_straight_one_bit_for_bit(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], pieces: int, optimizer: str
) -> None:
    setup = replace(
        moons,
        optimizer=optimizer,
        optimizer_params={"lr": 0.02} if optimizer != "optim.SGD" else {"momentum": 0.9},
    )
    straight = TrainingLoop(make_mlp(), setup)
    for _ in straight.steps():
        pass

    killed = TrainingLoop(make_mlp(), setup)
    train_until(killed, pieces)
    path = saved(killed)
    model = make_mlp()
    nn.init.zeros_(model.get_parameter("0.weight"))
    torch.manual_seed(1234)  # another process has other weights and random numbers
    resumed = TrainingLoop(model, setup)
    resumed.restore(checkpoint_files.load(path))
    assert resumed.step == killed.step
    for _ in resumed.steps():
        pass

    expected = straight.model.state_dict()
    for name, tensor in resumed.model.state_dict().items():
        assert torch.equal(tensor, expected[name]), name
    assert resumed.metrics.epochs == straight.metrics.epochs
    assert untimed(resumed.metrics.history) == untimed(straight.metrics.history)


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


def test_a_checkpoint_comes_back_as_it_was(
    moons: TrainingSetup,
    make_mlp: Callable[[], nn.Sequential],
    data_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = TrainingLoop(make_mlp(), moons)
    loop.metrics.samples_per_second = 640.0
    monkeypatch.setattr(loop.gpu, "percent", lambda: 75.0)
    train_until(loop, 7)
    written = loop.checkpoint("run")
    assert written.history[-1][-3:] == (640.0, 75.0, {})
    path = checkpoint_files.save(written)
    assert path == data_folder / "runs" / "run" / "checkpoints" / "step-00000005.pt"
    read = checkpoint_files.load(path)
    for field in Checkpoint.__struct_fields__:
        if field not in ("model", "optimizer", "rng", "epoch_rng", "best"):
            assert getattr(read, field) == getattr(written, field), field
    assert read.best is not None and written.best is not None
    assert replace(read.best, weights={}) == replace(written.best, weights={})
    for name, tensor in written.best.weights.items():
        assert torch.equal(read.best.weights[name], tensor), name
    assert checkpoint_files.load(path).model.keys() == loop.model.state_dict().keys()
    assert torch.load(path, weights_only=True)["run"] == "run"


def test_the_last_checkpoints_and_runs_are_kept(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "KEPT_RUNS", 2)
    loop = TrainingLoop(make_mlp(), moons)
    for _ in loop.steps():
        path = saved(loop)
        os.utime(path, (loop.step, loop.step))
    names = sorted(file.name for file in path.parent.iterdir())
    assert names == ["step-00000007.pt", "step-00000008.pt", "step-00000009.pt"]

    for age, run in enumerate(("run", "second", "third")):
        path = saved(loop, run)
        os.utime(path.parent, (age, age))
    runs = sorted(folder.name for folder in folders.data_runs().iterdir())
    assert runs == ["second", "third"]


def test_an_early_checkpoint_written_last_is_kept(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    loop = TrainingLoop(make_mlp(), moons)
    for step in (7, 8, 9):
        loop.step = step
        os.utime(saved(loop), (step, step))
    loop.step = 2
    assert saved(loop).exists()


def test_a_run_can_be_resumed_for_more_epochs_and_with_another_learning_rate(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    loop = TrainingLoop(make_mlp(), moons)
    for _ in loop.steps():
        pass
    setup = replace(moons, epochs=5, optimizer_params={"lr": 0.5})
    longer = TrainingLoop(make_mlp(), setup)
    longer.restore(checkpoint_files.load(saved(loop)))
    for _ in longer.steps():
        pass
    assert [row.epoch for row in longer.metrics.epochs] == [1, 2, 3, 4, 5]
    assert [row.learning_rate for row in longer.metrics.history] == [1e-3] * 9 + [0.5] * 6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"data": DataSetup("circles")}, "another data set"),
        ({"batch_size": 16}, "another batch size: 32, now 16"),
        ({"seed": 8}, "another seed: 7, now 8"),
        ({"optimizer": "optim.SGD"}, "another optimizer"),
    ],
)
def test_a_checkpoint_of_another_set_up_is_refused(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], change: dict, words: str
) -> None:
    saved_run = checkpoint_files.load(saved(TrainingLoop(make_mlp(), moons)))
    with pytest.raises(LabError, match=words):
        TrainingRun(TrainingLoop(make_mlp(), replace(moons, **change)), saved_run)


def test_a_checkpoint_of_another_model_is_refused_and_nothing_changes(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    saved_run = checkpoint_files.load(saved(TrainingLoop(make_mlp(), moons)))
    other = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
    weight = other.get_parameter("0.weight")
    before = weight.clone()
    with pytest.raises(LabError, match=r"0\.weight has shape \(16, 2\) there and \(3, 2\) here"):
        TrainingRun(TrainingLoop(other, moons), saved_run)
    assert torch.equal(weight, before)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"There is no checkpoint .*gone\.pt"):
        checkpoint_files.load(tmp_path / "gone.pt")


@pytest.mark.parametrize("kept", [0, 10, 1000, -1])
def test_a_half_written_file_is_told(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], kept: int
) -> None:
    path = saved(TrainingLoop(make_mlp(), moons))
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(LabError, match="damaged or of another kind") as caught:
        checkpoint_files.load(path)
    assert "weights_only" not in str(caught.value) + caught.value.hint


class Payload:
    def __reduce__(self):
        return os.mkdir, ("ran",)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"weight": torch.zeros(2)}, "not a checkpoint of a training run"),
        ([1, 2], "holds a list"),
        (Payload(), "damaged or of another kind"),
        ({"format": 99}, "checkpoint format 99"),
    ],
)
def test_a_foreign_file_is_told_and_not_executed(
    content: object, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(content, "foreign.pt")
    with pytest.raises(LabError, match=words):
        checkpoint_files.load("foreign.pt")
    assert not Path("ran").exists()


def test_a_run_name_that_leaves_the_folder_is_refused(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], tmp_path: Path
) -> None:
    path = saved(TrainingLoop(make_mlp(), moons))
    fields = torch.load(path, weights_only=True)
    torch.save({**fields, "run": "../elsewhere"}, tmp_path / "bad.pt")
    with pytest.raises(LabError, match="is not a name of a folder"):
        checkpoint_files.load(tmp_path / "bad.pt")


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
        ("format", "3", "format: 4 is expected, not '3'"),
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


def test_a_pipe_is_no_checkpoint_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pt")
    with pytest.raises(LabError, match="damaged or of another kind"):
        checkpoint_files.load(tmp_path / "pipe.pt")


def test_checkpoints_are_for_this_user_only(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    path = saved(TrainingLoop(make_mlp(), moons))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(folders.data_runs().stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_written_is_told(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], data_folder: Path
) -> None:
    data_folder.write_text("a file where the folder should be")
    with pytest.raises(LabError, match="could not be written") as caught:
        saved(TrainingLoop(make_mlp(), moons))
    assert "TENSORLAB_DATA_DIR" in caught.value.hint
