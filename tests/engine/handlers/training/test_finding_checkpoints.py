"""The checkpoint that a later start of the program goes on from, or a given run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from msgspec.structs import replace

from engine.project.document import TrainingSetup
from engine.project.subject import ConsoleSubject
from engine.protocol import (
    CheckpointSnapshot,
    ErrorSnapshot,
    FindCheckpointCommand,
    StepTrainingCommand,
    TrainCommand,
)
from engine.runs import record
from engine.runs.folders import checkpoints_of
from engine.runs.record import Writer

from ..test_training_handlers import MLP, Client

SETUP = TrainingSetup(epochs=1, batch_size=512, seed=3)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was stopped after two steps."""
    client, folder = Client(), tmp_path_factory.mktemp("begun") / "run"
    train = TrainCommand(id=1, model=MLP, training=SETUP, paused=True, folder=str(folder))
    client.send(train)
    for number in (2, 3):
        client.send(StepTrainingCommand(id=number))
    client.session.close()
    for older in checkpoints_of(folder)[1:]:
        older.unlink()
    return folder


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path / "data"))
    client = Client()
    yield client
    client.session.close()


@pytest.fixture
def folder(begun: Path, tmp_path: Path) -> Path:
    """A copy of the run, beside a project."""
    return Path(shutil.copytree(begun, tmp_path / "net.runs" / "run"))


def find(client: Client, **fields: Any) -> tuple[str, int]:
    """The path and the step that are found; for a refusal its words and -1."""
    client.send(FindCheckpointCommand(id=9, **{"model": MLP, "training": SETUP, **fields}))
    found = client.said[-1]
    if isinstance(found, ErrorSnapshot):
        return found.error.message, -1
    assert isinstance(found, CheckpointSnapshot)
    assert not found.path or found.written_s == Path(found.path).stat().st_mtime
    return found.path, found.step


def test_the_newest_of_the_runs_beside_the_project_and_in_the_data_folder(
    client: Client, folder: Path, tmp_path: Path
) -> None:
    runs = str(folder.parent)
    (path,) = (folder / "checkpoints").iterdir()
    assert find(client, runs=runs) == (str(path), 2) == find(client, folder=str(folder))
    assert find(client) == ("", 0)  # none in the data folder
    later = Path(shutil.copytree(folder, tmp_path / "data" / "runs" / "later"))
    (other,) = (later / "checkpoints").iterdir()
    os.utime(path, (50, 50))
    os.utime(other, (60, 60))
    assert find(client, runs=runs)[0] == str(other) == find(client)[0]
    os.utime(path, (70, 70))
    assert find(client, runs=runs)[0] == str(path)


def test_a_damaged_checkpoint_is_passed_over_only_in_a_run_that_is_named(
    client: Client, folder: Path
) -> None:
    (path,) = (folder / "checkpoints").iterdir()
    damaged = path.with_name("step-00000099.pt")
    damaged.write_bytes(b"damaged")
    os.utime(path, (50, 50))
    assert find(client, folder=str(folder)) == (str(path), 2)
    assert find(client, runs=str(folder.parent)) == ("", 0)
    path.unlink()
    words, step = find(client, folder=str(folder))
    assert "damaged" in words and step == -1
    damaged.unlink()
    assert f"The run {folder} has no checkpoint" in find(client, folder=str(folder))[0]
    assert client.said[-1].error.hint == "Train again, into a new folder."


def test_another_set_up_does_not_fit(client: Client, folder: Path) -> None:
    other = replace(SETUP, seed=4)
    assert find(client, runs=str(folder.parent), training=other) == ("", 0)
    assert "another seed" in find(client, folder=str(folder), training=other)[0]


def test_runs_of_another_process_or_subject_are_left_alone(client: Client, folder: Path) -> None:
    runs, before = str(folder.parent), record.load(folder)
    parent = psutil.Process(os.getppid())
    living = Writer(before.writer.host, parent.pid, parent.create_time())
    for fields, is_found in (
        ({"writer": living}, False),
        ({"writer": living, "state": "stopped"}, True),
        ({"writer": replace(living, began_s=living.began_s - 60)}, True),  # it has ended
        ({"writer": Writer.own()}, True),
        ({"project": replace(before.project, subject=ConsoleSubject("net"))}, False),
    ):
        record.save(folder, replace(before, **{"state": "running", **fields}))
        assert (find(client, runs=runs)[1] == 2) == is_found, fields
    (folder / record.FILE).write_text("{")
    assert find(client, runs=runs)[1] == 2  # the checkpoint itself says whether it fits


def test_a_run_that_is_left_aside_hides_no_other(client: Client, folder: Path) -> None:
    """Those before it and after it are: whichever is read first."""
    before = record.load(folder)
    parent = psutil.Process(os.getppid())
    living = Writer(before.writer.host, parent.pid, parent.create_time())
    trial = record.Trial("s", 1, {}, "loss", False)
    names = [f"{folder.name}-{end}" for end in "abcd"]
    others = [Path(shutil.copytree(folder, folder.with_name(name))) for name in names]
    shutil.rmtree(folder)
    kept = others[1]
    for fields in (
        {"trial": trial},
        {"writer": living, "state": "running"},
        {"project": replace(before.project, subject=ConsoleSubject("net"))},
    ):
        for other in others:
            record.save(other, replace(before, **({} if other == kept else fields)))
        path, step = find(client, runs=str(folder.parent))
        assert (Path(path).parents[1], step) == (kept, 2), fields
    for other in others:
        record.save(other, replace(before, trial=trial))
    assert find(client, runs=str(folder.parent)) == ("", 0)
