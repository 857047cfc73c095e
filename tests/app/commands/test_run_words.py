"""A run in words, where it begins, and its numbers where JSON has none; its event files."""

from __future__ import annotations

import math
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from app.commands import event_files
from app.commands.failures import CommandFailure
from app.commands.run_beginnings import Beginning, begin
from app.commands.runs import _plain, run_report, words_of
from app.commands.target import Target
from engine.project import edits
from engine.project.document import Project, TrainingSetup
from engine.project.subject import FileSubject
from engine.protocol import (
    CheckpointSnapshot,
    EpochRow,
    ErrorReport,
    ErrorSnapshot,
    EventsSnapshot,
    RunRow,
)
from engine.protocol.training.runs import TrialRow

BEGAN_S = datetime(2026, 3, 4, 5, 6).timestamp()
HEAD = "one  2026-03-04 05:06, MLP, finished, step 1,234"


def row(**fields: Any) -> RunRow:
    told: dict[str, Any] = {"folder": "/runs/one", "title": "MLP", "state": "finished"}
    return RunRow(**told | {"began_s": BEGAN_S, "step": 1234} | fields)


def epoch(loss: float = math.nan, accuracy: float = math.nan) -> EpochRow:
    return EpochRow(2, 1234, 0.5, 0.25, loss, accuracy)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, HEAD),
        ({"loss": 0.123456}, f"{HEAD}, loss 0.1235"),
        ({"loss": math.nan}, HEAD),
        ({"epoch": epoch(), "epochs": 9}, f"{HEAD}, epoch 2 of 9"),
        (
            {"epoch": epoch(0.75, 0.125), "epochs": 9, "loss": 1.0},
            f"{HEAD}, loss 1, epoch 2 of 9, validation loss 0.75, accuracy 12.5%",
        ),
        ({"epoch": epoch(accuracy=0.5), "epochs": 9}, f"{HEAD}, epoch 2 of 9, accuracy 50.0%"),
        (
            {"trial": TrialRow("s", 3, "lr 0.1", "", None)},
            HEAD.replace("one  ", "one  trial 3 (lr 0.1), "),
        ),
        ({"note": "a\nb", "error": "c"}, f"{HEAD}\n    a\n    b\n    c"),
        (
            {"problem": "d", "no_script": "Too large."},
            f"{HEAD}\n    d\n    It has no train.py. Too large.",
        ),
        ({"state": "damaged", "problem": "no run.json", "note": "x"}, "one  damaged: no run.json"),
    ],
)
def test_a_run_is_one_line_and_its_words_are_others(fields: dict[str, Any], words: str) -> None:
    assert words_of(row(**fields)) == words


def test_numbers_that_json_does_not_have_are_nothing_or_a_text() -> None:
    value = {"a": [1.5, math.nan], "b": (math.inf, {"c": -math.inf}), "d": "nan", "e": None}
    assert _plain(value) == {"a": [1.5, None], "b": ["inf", {"c": "-inf"}], "d": "nan", "e": None}


def test_numbers_that_json_does_not_have_are_told_in_a_report(tmp_path: Path) -> None:
    told = run_report(row(folder=str(tmp_path), epoch=epoch(math.inf), loss=math.nan))
    assert (told["epoch"]["validation_loss"], told["epoch"]["validation_accuracy"]) == ("inf", None)
    assert told["epoch"]["train_accuracy"] == 0.25 and told["loss"] is None
    assert told["settings"] == {} and told["step"] == 1234
    assert run_report(row(folder=str(tmp_path)))["epoch"] is None


# -- where a run begins ----------------------------------------------------------------------------


class Engine:
    """Keeps the commands that it is asked, and answers with these snapshots."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = answers, list[Any]()

    def __call__(self, kind: str) -> Engine:
        return self

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None: ...

    def ask(self, command: Any) -> Any:
        self.asked.append(command)
        return iter(self.answers)


REFUSED = ErrorSnapshot(command="X", error=ErrorReport("LabError", "It does not fit."))
SETUP = TrainingSetup(epochs=3)


def begun(engine: Engine, target: Target, wanted: Any, run: Path | None = None) -> Beginning:
    return begin(engine, target, SETUP, wanted, run)  # pyright: ignore[reportArgumentType]


@pytest.fixture
def project(tmp_path: Path) -> Target:
    model = edits.add_block(Project(), "nn.ReLU", 0, 0)[0]
    return Target("net.tlab", tmp_path / "net.tlab", model)


def test_a_run_begins_from_the_weights_beside_its_project(project: Target, tmp_path: Path) -> None:
    engine = Engine()
    assert begun(engine, project, "weights") == Beginning("fresh")
    weights = tmp_path / "net.safetensors"
    weights.write_bytes(b"")
    assert begun(engine, project, "fresh") == Beginning("fresh") and engine.asked == []
    assert begun(engine, project, "weights") == Beginning("weights", str(weights))
    (command,) = engine.asked
    assert (command.model, command.training) == (project.project.model, SETUP)
    assert command.path == os.fsencode(weights)
    code = project._replace(subject=FileSubject("/net.py", "Net()"))
    assert begun(engine, code, "weights") == Beginning("fresh")
    with pytest.raises(CommandFailure, match=r"does not fit[\s\S]*add --fresh"):
        begun(Engine(REFUSED), project, "weights")


@pytest.mark.parametrize("run", [None, Path("r")])
def test_a_checkpoint_is_sought_in_the_run_or_beside_the_project(
    project: Target, tmp_path: Path, monkeypatch, run: Path | None
) -> None:
    monkeypatch.chdir(tmp_path)
    engine = Engine(CheckpointSnapshot(), CheckpointSnapshot(path="/c.pt", step=1200))
    assert begun(engine, project, "checkpoint", run) == Beginning("checkpoint", "/c.pt", 1200)
    (command,) = engine.asked
    assert (command.model, command.training, command.subject) == (
        project.project.model, SETUP, project.subject,
    )  # fmt: skip
    assert command.runs == str(tmp_path / "net.runs")
    assert command.folder == (str(tmp_path / "r") if run else "")
    code = Target("net.py:Net", tmp_path / "net.py", Project(), FileSubject("/net.py", "Net"))
    begun(engine, code, "checkpoint", run)
    assert engine.asked[1].runs == "" and engine.asked[1].subject == code.subject
    with pytest.raises(CommandFailure, match="--resume: there is no checkpoint of this model"):
        begun(Engine(CheckpointSnapshot()), project, "checkpoint", run)
    with pytest.raises(CommandFailure, match="It does not fit"):
        begun(Engine(REFUSED), project, "checkpoint", run)


@pytest.mark.parametrize(
    ("beginning", "words", "report"),
    [
        (Beginning("fresh"), "from fresh weights", ("fresh", None, 0)),
        (
            Beginning("weights", "/a/net.safetensors"), "from the weights in net.safetensors",
            ("weights", "/a/net.safetensors", 0),
        ),
        (
            Beginning("checkpoint", "/c.pt", 1200), "from step 1,200 (/c.pt)",
            ("checkpoint", "/c.pt", 1200),
        ),
    ],
)  # fmt: skip
def test_a_beginning_in_words(beginning: Beginning, words: str, report: tuple) -> None:
    assert str(beginning) == words and tuple(beginning.report().values()) == report


# -- event files -----------------------------------------------------------------------------------


def written(monkeypatch, out: Path, *rows: RunRow, answers: tuple = ()) -> tuple[list[str], Any]:
    engine = Engine(*answers)
    monkeypatch.setattr(event_files, "Conversation", engine)
    return event_files.write_event_files(rows, out), engine


def test_runs_that_can_be_read_are_written_as_event_files(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    answers = (EventsSnapshot(path="", runs=0), EventsSnapshot(path="", runs=1, written=("/o/a",)))
    rows = (RunRow(folder="a", state="finished"), RunRow(folder="b", state="damaged"))
    found, engine = written(monkeypatch, Path("out"), *rows, answers=answers)
    assert found == ["/o/a"]
    assert (engine.asked[0].folders, engine.asked[0].path) == (
        (str(tmp_path / "a"),), str(tmp_path / "out"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "state", "answers", "words"),
    [
        ("out", "damaged", (), "--tensorboard: there is no run that can be written."),
        ("file", "finished", (), "this is not a folder."),
        (os.fsdecode(b"\xff"), "finished", (), "the name is not valid UTF-8"),
        ("out", "finished", (EventsSnapshot(path="", runs=0),), "stopped before all runs were"),
        ("out", "finished", (REFUSED,), "It does not fit."),
    ],
)
def test_why_event_files_are_not_written(
    tmp_path: Path, monkeypatch, name: str, state: Any, answers: tuple, words: str
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandFailure) as refused:
        written(monkeypatch, tmp_path / name, RunRow(folder="a", state=state), answers=answers)
    assert words in str(refused.value)
