"""A run whose process is killed goes on from its folder as if nothing had happened: bit for bit."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch

from engine.project.document import replace
from engine.protocol import FindCheckpointCommand, TrainCommand, TrainingSnapshot
from engine.runs import folders, reading, record
from engine.runs.summary import row_of
from engine.server.session import handler_of
from engine.system.errors import LabError
from engine.training.run import TrainingRun

from .killed import NAMES, STEPS_BEFORE, command_of, opened

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the runs of a process that was killed in the middle of all of them."""
    folder = tmp_path_factory.mktemp("killed")
    threads = str(torch.get_num_threads())
    arguments = [sys.executable, "-m", "tests.engine.runs.killed", str(folder), threads]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return folder


def trained(name: str, **fields: str) -> tuple[TrainingRun, list[TrainingSnapshot]]:
    lab = opened(name)
    told = [
        s
        for s in handler_of(TrainCommand)(lab, command_of(name, **fields))
        if isinstance(s, TrainingSnapshot)
    ]
    assert isinstance(lab.run, TrainingRun)
    assert (told[-1].state, told[-1].error) == ("finished", None)
    return lab.run, told


@pytest.mark.parametrize("name", NAMES)
def test_a_killed_run_ends_as_the_run_never_killed(killed: Path, tmp_path: Path, name: str) -> None:
    folder = killed / name
    lost = row_of(folder)
    assert (lost.state, lost.problem) == ("cut off", "")
    found = record.load(folder)
    command = command_of(name)
    assert found.project.training == command.training
    assert found.project.model == command.model
    assert (found.project.subject, found.project.objective) == (command.subject, command.objective)

    find = FindCheckpointCommand(
        model=command.model,
        training=command.training,
        subject=command.subject,
        folder=str(folder),
    )
    (checkpoint,) = handler_of(FindCheckpointCommand)(opened(name), find)
    assert checkpoint.step == STEPS_BEFORE
    resumed, told = trained(name, checkpoint=checkpoint.path)
    whole, _ = trained(name, folder=str(tmp_path / "whole"))

    expected = whole.loop.model.state_dict()
    for key, tensor in resumed.loop.model.state_dict().items():
        assert torch.equal(tensor, expected[key]), key
    theirs, ours = (run.loop.checkpoint("run") for run in (whole, resumed))
    torch.testing.assert_close(ours.optimizer, theirs.optimizer, rtol=0, atol=0)
    torch.testing.assert_close(ours.rng, theirs.rng, rtol=0, atol=0)

    # The folders tell the same figures, and those that the snapshots had.
    first, second = (reading.read(run.files.writer.folder / "metrics.sqlite", 10**6)
                     for run in (whole, resumed))  # fmt: skip
    assert second[0].step == tuple(range(1, resumed.step + 1))
    for column in ("loss", "gradient_norm", "learning_rate"):
        assert getattr(first[0], column) == getattr(second[0], column), column
    shown = {
        step: loss for s in told for step, loss in zip(s.steps.step, s.steps.loss, strict=True)
    }
    assert shown == dict(zip(second[0].step, second[0].loss, strict=True))
    assert repr(first[1]) == repr(second[1])  # NaN equals itself there
    row = row_of(folder)
    assert (row.id, row.state, row.step) == (lost.id, "finished", resumed.step)
    assert row.epoch is not None and math.isfinite(row.epoch.train_loss)


def test_a_run_without_a_checkpoint_and_one_that_is_damaged_are_told(tmp_path: Path) -> None:
    run, _ = trained("mlp", folder=str(tmp_path / "run"))
    command = command_of("mlp")
    find = FindCheckpointCommand(
        model=command.model, training=command.training, folder=str(tmp_path / "run")
    )
    last, *others = folders.checkpoints_of(run.files.writer.folder)
    for other in others:  # a slow machine has written more than one
        other.unlink()
    whole = last.read_bytes()
    last.write_bytes(b"damaged")
    with pytest.raises(LabError, match="it is damaged"):
        list(handler_of(FindCheckpointCommand)(opened("mlp"), find))
    last.with_name("step-00000001.pt").write_bytes(whole)
    last.touch()
    (found,) = handler_of(FindCheckpointCommand)(opened("mlp"), find)
    assert found.path.endswith("step-00000001.pt")  # an earlier one that is whole
    for path in folders.checkpoints_of(run.files.writer.folder):
        path.unlink()
    with pytest.raises(LabError, match="has no checkpoint"):
        list(handler_of(FindCheckpointCommand)(opened("mlp"), find))


def test_a_run_that_another_process_trains_is_left_to_it(tmp_path: Path) -> None:
    run, _ = trained("mlp", folder=str(tmp_path / "run"))
    folder = run.files.writer.folder
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        began_s = psutil.Process(process.pid).create_time()
        writer = replace(record.Writer.own(), pid=process.pid, began_s=began_s)
        record.save(folder, replace(record.load(folder), state="running", writer=writer))
        assert row_of(folder).state == "running"
        checkpoint = str(folders.checkpoints_of(folder)[0])
        with pytest.raises(LabError, match="is being trained by another process"):
            next(iter(handler_of(TrainCommand)(
                opened("mlp"), command_of("mlp", checkpoint=checkpoint))))  # fmt: skip
    finally:
        process.communicate()
    assert row_of(folder).state == "cut off"
