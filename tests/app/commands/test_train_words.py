"""What `train` asks of its engine, and what it says of each end of a run."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

from app import templates
from app.commands import projects
from app.commands.conversation import EngineEnded
from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from app.commands.projects import TrainOptions, train
from app.commands.target import Target
from app.processes.exit_reasons import ExitReason
from engine.project.document import HoldWhen, replace
from engine.project.subject import FileSubject, Objective
from engine.protocol import (
    Command,
    Device,
    EpochRow,
    ErrorReport,
    ErrorSnapshot,
    ExportCommand,
    ExportSnapshot,
    Finding,
    FindingSnapshot,
    OutputSnapshot,
    ReadySnapshot,
    StepColumns,
    TrainCommand,
    TrainingSnapshot,
)

MLP = templates.load_template("mlp")


class Engine:
    """Answers the run with what the test gives; raises it, if it is an error."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = answers, []
        self.interrupted = False

    def __call__(self, doing: str) -> Engine:
        assert doing == "training"
        return self

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_) -> None:
        pass

    def ready(self) -> ReadySnapshot:
        devices = (Device("cpu", "8 cores"), Device("cuda:0", "H100"))
        return ReadySnapshot(
            torch_version="2.13", python_version="3.11", pid=1, devices=devices, torch_threads=1
        )

    def ask(self, command: Command):
        self.asked.append(command)
        if isinstance(command, ExportCommand):
            yield ExportSnapshot(
                path=command.path, format=command.format, size_bytes=9, sha256="ab", verified=True,
                max_abs_error=0.0, keys=(),
            )  # fmt: skip
        elif isinstance(command, TrainCommand):
            for answer in self.answers:
                if isinstance(answer, Exception):
                    raise answer
                yield answer


@pytest.fixture
def engine(monkeypatch):
    def use(*answers: Any) -> Engine:
        made = Engine(*answers)
        monkeypatch.setattr(projects, "Conversation", made)
        return made

    monkeypatch.setattr(projects, "time", Clock())
    return use


class Clock:
    """Two seconds and a half go by between two looks."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 2.5
        return self.now


def run(state: str = "finished", **fields: Any) -> TrainingSnapshot:
    told = {
        "run": "r", "state": state, "step": 1_200, "total_steps": 2_400, "epoch": 1, "epochs": 2,
        "device": "cpu", "steps_per_second": 9.0, "steps": StepColumns(), "folder": "/runs/r",
        "epoch_rows": (EpochRow(1, 600, 0.5, 0.9, math.nan, 0.875, {"f1": math.inf}),),
    }  # fmt: skip
    return TrainingSnapshot(**{**told, **fields})


def target(folder: Path, **fields: Any) -> Target:
    return Target("net.tlab", folder / "net.tlab", MLP)._replace(**fields)


FRESH = TrainOptions(begin_from="fresh")


def test_options_replace_those_of_the_project_and_nothing_holds_the_run(engine, tmp_path) -> None:
    held = replace(
        MLP, training=replace(MLP.training, hold=HoldWhen(unchanged=3), epochs=7, seed=5)
    )
    told = engine(run())
    train(target(tmp_path, project=held), FRESH, None)
    (command,) = told.asked
    assert command.training == replace(held.training, hold=HoldWhen())
    assert command.runs == str(tmp_path / "net.runs") and (command.folder, command.checkpoint) == (
        "", "",
    )  # fmt: skip
    told = engine(run())
    options = TrainOptions(
        epochs=3, device="cuda:0", seed=9, begin_from="fresh", run_folder=Path("r"),
        nproc_per_node=2,
    )  # fmt: skip
    train(target(tmp_path, project=held), options, None)
    (command,) = told.asked
    setup = command.training
    assert (setup.epochs, setup.device, setup.seed, setup.processes) == (3, "cuda:0", 9, 2)
    assert command.folder == str(Path("r").absolute())


def test_the_end_of_a_run_is_reported(engine, tmp_path, capsys) -> None:
    finding = Finding("softmax", "Too high.", ("one", "two"), "lr=0.1", "net.py", 3)
    plain = Finding("softmax", "Too low.", (), "lr=1")
    engine(
        OutputSnapshot(stream="stdout", text="printed\n"), FindingSnapshot(finding=finding),
        FindingSnapshot(finding=plain), run("running"), run(),
    )  # fmt: skip
    train(target(tmp_path), FRESH, None)
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "finished after 1,200 steps in 2.5 s on cpu, from fresh weights",
        "validation accuracy 87.50%",
    ]
    assert err.startswith(
        "printed\nnet.py:3: softmax: Too high.\n  one\n  two\n  Fix: lr=0.1\n"
        "softmax: Too low.\n  Fix: lr=1\n"
    )
    engine(FindingSnapshot(finding=finding), run(checkpoint="/c"))
    train(target(tmp_path), FRESH, "-")
    report = json.loads(capsys.readouterr().out)
    assert report.pop("findings") == [
        {"kind": "softmax", "text": "Too high.", "evidence": ["one", "two"], "fix": "lr=0.1",
         "file": "net.py", "line": 3}
    ]  # fmt: skip
    assert report == {
        "subject": "net.tlab", "project": "net.tlab", "state": "finished",
        "begins": {"from": "fresh", "path": None, "step": 0}, "device": "cpu",
        "seed": MLP.training.seed, "epochs": 1, "steps": 1_200, "train_loss": 0.5,
        "train_accuracy": 0.9, "val_loss": None, "val_accuracy": 0.875,
        "train_figures": {"f1": "inf"}, "val_figures": {}, "steps_per_second": 9.0,
        "run": "/runs/r", "checkpoint": "/c", "weights": None, "seconds": 2.5,
    }  # fmt: skip


def test_a_run_without_an_epoch_has_no_figures(engine, tmp_path, capsys) -> None:
    code = target(
        tmp_path, subject=FileSubject("net.py", "Net()"), objective=Objective(data="net.py:data"),
    )  # fmt: skip
    engine(run(epoch_rows=(), folder=""))
    train(code, FRESH, "-")
    report = json.loads(capsys.readouterr().out)
    assert report["data"] == "net.py:data" and "project" not in report
    assert (report["epochs"], report["train_loss"], report["val_figures"]) == (0, None, {})
    assert report["run"] is report["checkpoint"] is None
    engine(run(epoch_rows=(), folder=""))
    train(code, FRESH, None)
    assert "accuracy" not in capsys.readouterr().out


def test_weights_and_script_are_exported_by_the_same_engine(engine, tmp_path, capsys) -> None:
    told = engine(run())
    script, out = tmp_path / "train.py", tmp_path / "w.safetensors"
    train(target(tmp_path), TrainOptions(begin_from="fresh", script=script, out=out), None)
    first, trained, last = told.asked
    assert (first.format, first.path, first.verify) == ("script", str(script), False)
    assert (last.format, last.path, last.verify) == ("safetensors", str(out), False)
    assert isinstance(trained, TrainCommand) and first.training == trained.training
    assert f"wrote {out}: 9 bytes, SHA-256 ab" in capsys.readouterr().out


ENDED = ExitReason("The engine crashed", "It was training.", "")


@pytest.mark.parametrize(
    ("answers", "options", "words"),
    [
        ((), {}, "training did not start"),
        ((run("failed"),), {}, "training did not start"),
        ((run("failed", error=ErrorReport("E", "No data.")),), {}, "No data."),
        ((run("failed", error=ErrorReport("E", "No data.", "Add some.")),), {},
         "No data.\nAdd some."),
        ((run("stopped"),), {}, "stopped after 1,200 of 2,400 steps."),
        ((run("stopped", total_steps=0, checkpoint="/c"),), {},
         "stopped after 1,200 steps. Go on with --resume."),
        ((run("stopped", checkpoint="/c"),), {"run_folder": Path("r")},
         "stopped after 1,200 of 2,400 steps. Go on with --run r --resume."),
        ((EngineEnded(ENDED, None),), {},
         "The engine crashed. It was training.\nTrain again: the run had written no checkpoint"
         " yet."),
        ((EngineEnded(ENDED, 1_200),), {},
         "The engine crashed. It was training.\nThe run's last checkpoint is step 1,200. Go on from"
         " it with the same command and --resume."),
        ((EngineEnded(ENDED, 0),), {"run_folder": Path("r")},
         "The engine crashed. It was training.\nThe run's last checkpoint is step 0. Go on from it"
         " with `tensorlab train --run r --resume`."),
        ((ErrorSnapshot(command="T", error=ErrorReport("LabError", "No model.")),), {},
         "No model."),
    ],
)  # fmt: skip
def test_a_run_that_ends_otherwise_says_so(engine, tmp_path, answers, options, words) -> None:
    engine(*answers)
    with pytest.raises(CommandFailure) as failed:
        train(target(tmp_path), TrainOptions(begin_from="fresh", **options), None)
    assert str(failed.value) == f"{tmp_path / 'net.tlab'}: {words}"
    assert failed.value.exit_code == 1


def test_what_cannot_be_trained_is_refused_before(engine, tmp_path) -> None:
    told = engine(run())
    elsewhere = replace(MLP, training=replace(MLP.training, device="mps"))
    code = target(tmp_path, subject=FileSubject("net.py", "Net()"), path=tmp_path / "net.py")
    has = "there is no device “mps” on this machine; it has: cpu, cuda:0."
    for of, options, words in (
        (target(tmp_path), {"device": "mps"}, f"--device: {has}"),
        (target(tmp_path, project=elsewhere), {},
         f"{tmp_path / 'net.tlab'}: training.device: {has} Choose one with --device."),
        (code, {}, "net.tlab: which data? Add --data FILE.py:NAME, --data NAME for one of the same"
         " file, or --dataset KIND for a data set or a file of data."),
        (code._replace(path=tmp_path / "net.tlab"), {},
         "net.tlab: which data? Choose them under Train in the window, and save the project."),
        (target(tmp_path), {"script": tmp_path / "t.py", "begin_from": "checkpoint"},
         "--script: a script begins at the first step, and --resume in the middle."),
        (target(tmp_path), {"script": tmp_path / "t.txt"},
         f"--script {tmp_path / 't.txt'}: the name must end in .py."),
        (target(tmp_path), {"out": tmp_path / "w.onnx"},
         f"--out {tmp_path / 'w.onnx'}: the name must end in .pt or .safetensors."),
    ):  # fmt: skip
        with pytest.raises(CommandFailure) as failed:
            train(of, dataclasses.replace(FRESH, **options), None)
        assert str(failed.value) == words
        assert failed.value.exit_code == (1 if of.project is elsewhere else BAD_ARGUMENTS)
    assert told.asked == []
