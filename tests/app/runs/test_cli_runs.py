"""`tensorlab train --run`, its resumption after kill -9, and `tensorlab runs`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from app import cli
from engine.project import files
from engine.project.document import HoldWhen, replace
from engine.runs import folders
from tests import forking
from tests.scripts import run_script

MLP = Path(__file__).parents[3] / "assets" / "templates" / "mlp.tlab"

pytestmark = pytest.mark.usefixtures("forked_processes")


def run(*arguments: object) -> int:
    return cli.main([str(argument) for argument in arguments])


def report(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict:
    assert run(*arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, forked_processes: None) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "first"
    assert run("train", MLP, "--run", folder, "--epochs", 2) == 0
    return folder


def test_a_run_leaves_its_folder_and_runs_lists_it(finished: Path, capsys) -> None:
    assert sorted(path.name for path in finished.iterdir() if "-" not in path.name) == [
        "checkpoints", "metrics.sqlite", "run.json", "states", "train.data.pt", "train.py",
    ]  # fmt: skip
    whole = report(capsys, "train", MLP, "--epochs", 2)
    (listed,) = report(capsys, "runs", finished.parent)["runs"]
    assert report(capsys, "runs", finished)["runs"] == [listed]
    assert (listed["state"], listed["step"], listed["epochs"]) == ("finished", whole["steps"], 2)
    for name, of_report in (
        ("train_loss", "train_loss"),
        ("validation_loss", "val_loss"),
        ("validation_accuracy", "val_accuracy"),
    ):
        assert listed["epoch"][name] == whole[of_report]
    assert listed["settings"]["optimizer"] == "optim.Adam"
    assert listed["versions"]["torch"] == version("torch")
    assert run("runs", finished.parent) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("first  ") and "finished, step 46" in printed


def test_nothing_holds_a_run_without_a_window(tmp_path: Path, capsys) -> None:
    project = files.load(MLP)
    setup = replace(project.training, hold=HoldWhen(gradient_norm=1e-9))
    files.save(replace(project, training=setup), tmp_path / "held.tlab")
    done = report(capsys, "train", tmp_path / "held.tlab", "--epochs", 1)
    assert done["epochs"] == 1 and done["steps"] > 1


def test_runs_of_a_project_and_an_empty_folder(finished: Path, tmp_path: Path, capsys) -> None:
    project = tmp_path / "net.tlab"
    project.write_bytes(MLP.read_bytes())
    assert run("runs", project) == 2
    assert "there is no such folder" in capsys.readouterr().err
    (tmp_path / "net.runs").mkdir()
    assert run("runs", project) == 0
    assert "there are no runs" in capsys.readouterr().out
    shutil.copytree(finished, tmp_path / "net.runs" / "one")
    (tmp_path / "net.runs" / "one" / "metrics.sqlite").write_bytes(b"damaged" * 100)
    shutil.copytree(finished, tmp_path / "net.runs" / "two")
    (tmp_path / "net.runs" / "two" / "run.json").write_bytes(b"{")
    assert run("runs", project) == 0
    printed = capsys.readouterr().out
    assert "metrics.sqlite cannot be used" in printed and "two  damaged" in printed
    listed = {each["state"]: each for each in report(capsys, "runs", project)["runs"]}
    assert listed["damaged"]["settings"] == {} and "run.json" in listed["damaged"]["problem"]


def test_a_folder_that_cannot_be_a_new_run_is_refused(finished: Path, tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("")
    for folder, words in (
        (finished, "it has a run already"),
        (tmp_path, "not an empty folder"),
        (tmp_path / "file", "not an empty folder"),
        (tmp_path / "none" / "run", "the folder does not exist"),
    ):
        assert run("train", MLP, "--run", folder) == 2
        assert words in capsys.readouterr().err


def test_what_cannot_be_resumed_is_told(finished: Path, tmp_path: Path, capsys) -> None:
    assert run("train") == 2
    assert "which SUBJECT" in capsys.readouterr().err
    assert run("train", "--run", tmp_path, "--resume") == 2
    assert "not the folder of a run" in capsys.readouterr().err
    copy = shutil.copytree(finished, tmp_path / "copy")
    (copy / "run.json").write_bytes(b"{}")
    assert run("train", "--run", copy, "--resume") == 2
    assert "name the SUBJECT too" in capsys.readouterr().err
    assert run("train", MLP, "--run", copy, "--resume", "--epochs", 3) == 0
    assert "from step 46" in capsys.readouterr().out
    for checkpoint in (copy / "checkpoints").iterdir():
        checkpoint.write_bytes(b"damaged")
    assert run("train", "--run", copy, "--resume") == 1
    assert "it is damaged" in capsys.readouterr().err


def test_the_script_of_a_run_gives_its_weights(finished: Path, tmp_path) -> None:
    out = tmp_path / "weights.pt"
    run_script(finished / "train.py", "--out", str(out))
    last = max((finished / "checkpoints").iterdir())
    expected = torch.load(last, weights_only=True)["model"]
    found = torch.load(out, weights_only=True)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())


@pytest.mark.skipif(not forking.POSSIBLE, reason="forks the program")
def test_a_killed_program_goes_on_with_nothing_but_the_folder(tmp_path: Path, capsys) -> None:
    folder, weights = tmp_path / "run", tmp_path / "weights.pt"
    program = forking.Program(
        tmp_path, ["train", str(MLP), "--run", str(folder), "--epochs", "100000"]
    )
    while not any((folder / "checkpoints").glob("step-*.pt")):
        assert program.errors.readline().startswith("epoch ")
    engines = psutil.Process(program.pid).children(recursive=True)
    for number in (*(engine.pid for engine in engines), program.pid):
        os.kill(number, signal.SIGKILL)
    program.end()
    psutil.wait_procs(engines)
    (lost,) = report(capsys, "runs", folder)["runs"]
    assert lost["state"] == "cut off"

    checkpoint = torch.load(lost["checkpoint"], weights_only=True)
    epochs = checkpoint["epoch"] + 2
    resumed = report(
        capsys, "train", "--run", folder, "--resume", "--epochs", epochs, "--out", weights
    )
    assert resumed["begins"] == {
        "from": "checkpoint", "path": lost["checkpoint"], "step": checkpoint["step"],
    }  # fmt: skip
    assert resumed["run"] == str(folder)
    whole = tmp_path / "whole.pt"
    plain = report(capsys, "train", MLP, "--epochs", epochs, "--out", whole)
    assert (resumed["steps"], resumed["train_loss"]) == (plain["steps"], plain["train_loss"])
    theirs = torch.load(whole, weights_only=True)
    for name, tensor in torch.load(weights, weights_only=True).items():
        assert torch.equal(tensor, theirs[name]), name
    with closing(sqlite3.connect(folder / "metrics.sqlite")) as connection:
        (epoch_loss,) = connection.execute(
            "SELECT train_loss FROM epochs ORDER BY epoch DESC LIMIT 1"
        ).fetchone()
    assert epoch_loss == plain["train_loss"]
    assert report(capsys, "runs", folder)["runs"][0]["state"] == "finished"


def test_runs_needs_neither_torch_nor_qt(finished: Path) -> None:
    source = (
        f"import sys; from app import cli; cli.main(['runs', {str(finished)!r}]);"
        "print(sorted({'torch', 'PySide6'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", source],
        executable=sys.executable,  # not forked from the server, which has torch
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_runs_are_written_as_event_files(finished: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "events"
    told = report(capsys, "runs", finished.parent, "--tensorboard", out)
    assert told["event_files"] == [str(out / "first")]
    theirs = EventAccumulator(str(out / "first"))
    theirs.Reload()
    with closing(sqlite3.connect(finished / "metrics.sqlite")) as connection:
        ours = connection.execute("SELECT step, loss, wall_s FROM steps ORDER BY step").fetchall()
    assert [(e.step, e.value, e.wall_time) for e in theirs.Scalars("step/loss")] == [
        (step, pytest.approx(loss, rel=1e-6), wall_s) for step, loss, wall_s in ours
    ]
    assert theirs.Scalars("epoch/validation_loss")[-1].value == pytest.approx(
        told["runs"][0]["epoch"]["validation_loss"], rel=1e-6
    )
    assert run("runs", finished.parent, "--tensorboard", out) == 1
    assert "has something already" in capsys.readouterr().err
    assert run("runs", finished, "--tensorboard", tmp_path / "more") == 0
    assert f"wrote {tmp_path / 'more' / 'first'}" in capsys.readouterr().out


def test_without_a_folder_the_run_is_beside_the_project(tmp_path: Path, capsys) -> None:
    project = tmp_path / "net.tlab"
    project.write_bytes(MLP.read_bytes())
    first = report(capsys, "train", project, "--epochs", 1)
    beside = tmp_path / "net.runs"
    assert Path(first["run"]).parent == beside
    (listed,) = report(capsys, "runs", project)["runs"]
    assert listed["folder"] == first["run"]
    resumed = report(capsys, "train", project, "--epochs", 2, "--resume")
    assert (resumed["run"], resumed["begins"]["step"]) == (first["run"], first["steps"])
    assert report(capsys, "train", MLP, "--epochs", 1)["run"].startswith(str(folders.data_runs()))
    assert not MLP.with_suffix(".runs").exists()
