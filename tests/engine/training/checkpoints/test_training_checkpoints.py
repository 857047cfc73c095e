"""Checkpoints: a resumed run equals one that never stopped; what is wrong with a file is said."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from engine.project.document import Averaging, DataSetup, Schedule, TrainingSetup, replace
from engine.runs import folders
from engine.system.errors import LabError
from engine.training.checkpoints import checkpoint_files
from engine.training.checkpoints.checkpoint_fields import (
    Checkpoint,
    FieldProblem,
    decode,
    encode,
)
from engine.training.checkpoints.past import Change, Past
from engine.training.loop import TrainingLoop
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


def test_a_checkpoint_of_before_has_sharding(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    """Files of up to November 2026 say of each set-up whether FSDP2 divided the model."""
    written = replace(
        TrainingLoop(make_mlp(), moons).checkpoint("run"), past=Past((Change(0, moons),))
    )

    def of_before(kind: str) -> dict[str, Any]:
        fields = encode(written)
        for name in ("setup", "past"):
            fields[name] = fields[name].replace('"epochs"', f'"sharding":"{kind}","epochs"')
            assert fields[name].count("sharding") == 1
        return fields

    read = decode(of_before("none"))
    assert (read.setup, read.past) == (written.setup, written.past)
    with pytest.raises(FieldProblem, match="no longer divides a model between processes"):
        decode(of_before("FSDP2"))


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
        ({"schedule": Schedule("lr_scheduler.StepLR", {"step_size": 2})}, "another schedule"),
        ({"accumulate": 2}, "another number of batches a step: 1, now 2"),
        ({"precision": "bfloat16"}, "another precision: float32, now bfloat16"),
        ({"averaging": Averaging("EMA")}, "another averaging of weights"),
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
