"""The options of a sweep, and its trials in words: the best first."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.commands import sweep as module
from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from app.commands.sweep import SweepOptions, _in_words, _print_progress, _ranked, _sweep_of
from app.commands.target import Target
from engine.project.document import Project, replace
from engine.project.subject import FileSubject, Objective
from engine.project.sweeps.sweep import Sweep
from engine.protocol import (
    DoneSnapshot,
    ErrorReport,
    ErrorSnapshot,
    OutputSnapshot,
    RunRow,
    StepColumns,
    SweepCommand,
    TrainingSnapshot,
    TrialProgress,
)
from engine.protocol.training.runs import KeptState, TrialRow


def replace_options(**changes: Any) -> SweepOptions:
    return SweepOptions(**{"choices": ("seed=1,2",), "trials": 7, "sampler_seed": 3,
                           "metric": "loss", "prune": True, **changes})  # fmt: skip


def options(metric: str, *choices: str) -> SweepOptions:
    return replace_options(metric=metric, choices=choices or ("seed=1,2",))


@pytest.mark.parametrize(
    ("metric", "figure", "maximise"),
    [
        ("validation_loss", "validation loss", False), ("train_accuracy", "train accuracy", True),
        ("train_accuracy:min", "train accuracy", False), ("my_figure", "my_figure", False),
        ("validation_my_f1:max", "validation my f1", True), ("loss:", "loss", False),
    ],
)  # fmt: skip
def test_the_figure_of_a_sweep_and_which_way_is_better(metric, figure, maximise) -> None:
    wanted = _sweep_of(options(metric, "seed=1,2", "batch_size=8,16"))
    assert (wanted.figure, wanted.maximise) == (figure, maximise)
    assert (wanted.trials, wanted.seed, wanted.prune) == (7, 3, True)
    assert [choice.name for choice in wanted.choices] == ["seed", "batch_size"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (options("x", "seed"), "--set seed: “seed” has no =."),
        (options("x:best"), "--metric x:best: after the colon comes min or max."),
    ],
)
def test_options_that_say_nothing_are_refused(given, words) -> None:
    with pytest.raises(CommandFailure) as refused:
        _sweep_of(given)
    assert str(refused.value) == words and refused.value.exit_code == BAD_ARGUMENTS


def test_the_end_of_a_trial_is_told(capsys) -> None:
    _print_progress(TrialProgress(2, 9, "lr 0.1", "loss", state="failed"))
    _print_progress(TrialProgress(3, 9, "lr 0.2", "loss", 1, 0.123456, "finished"))
    assert capsys.readouterr() == (
        "", "trial 2/9 failed: lr 0.1\ntrial 3/9 finished: lr 0.2; best: trial 1, loss 0.1235\n",
    )  # fmt: skip


def row(number: int, value: float | None, state: KeptState = "finished", **told) -> RunRow:
    trial = TrialRow("s", number, f"seed {number}", "loss", value, **told)
    return RunRow(folder=f"/runs/{number}", state=state, trial=trial, error="no memory")


def test_the_best_trial_comes_first_and_those_without_a_figure_last() -> None:
    rows = [
        row(1, 0.5), row(2, None), row(3, 0.25), row(4, math.nan), row(5, 0.1, "failed"),
        row(6, 0.75), RunRow(folder="/runs/7", state="finished"),
    ]  # fmt: skip
    for maximise, order in ((False, "3 1 6 2 4 5 7"), (True, "6 1 3 2 4 5 7")):
        found = [each.folder.removeprefix("/runs/") for each in _ranked(rows, maximise)]
        assert " ".join(found) == order


def test_trials_in_words() -> None:
    rows = [row(3, 0.123456, state="finished"), row(12, None, "failed")]
    rows[0] = RunRow(folder="/runs/3", trial=TrialRow("s", 3, "seed 3", "loss", 0.123456, "best"))
    wanted = Sweep((), figure="validation loss")
    assert _in_words(rows, wanted).splitlines() == [
        "trial   3  best      validation loss 0.1235  (seed 3)  /runs/3",
        "trial  12  failed    no memory  (seed 12)  /runs/12",
    ]


# -- the whole command -----------------------------------------------------------------------------

CODE = Target(
    "net.py:Net()", Path("/work/net.py"), Project(name="net"), FileSubject("/work/net.py", "Net()"),
    Objective("data"),
)  # fmt: skip


@pytest.fixture
def sent(monkeypatch) -> list[SweepCommand]:
    """The commands that an engine would get; it has trained two trials."""
    commands: list[SweepCommand] = []

    def trained(target: Target, command: SweepCommand) -> list[RunRow]:
        commands.append(command)
        best = replace(row(2, 0.25), trial=TrialRow("s", 2, "seed 2", "loss", 0.25, "best"))
        return [row(1, 0.5), best]

    monkeypatch.setattr(module, "_trained", trained)
    monkeypatch.setattr(module, "run_report", lambda row: row.folder)
    return commands


def test_a_sweep_is_of_the_target_with_the_options(sent, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    given = replace_options(trials=2, runs_folder=Path("runs"), epochs=3, device="cpu")
    module.sweep(CODE, given, None)
    (command,) = sent
    assert (command.model, command.subject, command.objective) == (
        CODE.project.model, CODE.subject, CODE.objective,
    )  # fmt: skip
    assert command.training == replace(CODE.project.training, epochs=3, device="cpu")
    assert command.runs == str(tmp_path / "runs") and command.sweep == _sweep_of(given)
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["2", "1"]
    module.sweep(CODE, replace_options(trials=2), None)
    assert sent[1].training == CODE.project.training and sent[1].runs == ""


def test_the_report_of_a_sweep_has_the_best_trial_first(sent, tmp_path) -> None:
    module.sweep(CODE, replace_options(trials=2), str(tmp_path / "s.json"))
    report = json.loads((tmp_path / "s.json").read_text("utf-8"))
    assert report.pop("seconds") >= 0
    assert report == {
        "subject": "net.py:Net()", "figure": "loss", "seed": 3, "trials": ["/runs/2", "/runs/1"],
        "best": "/runs/2",
    }  # fmt: skip


def test_trials_that_are_missing_are_told_after_the_others(sent, capsys) -> None:
    with pytest.raises(CommandFailure, match=r"net\.py:Net\(\): 2 of 7 trials were trained\."):
        module.sweep(CODE, replace_options(), None)
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize(
    ("target", "changes", "words"),
    [
        (CODE._replace(objective=Objective()), {}, "which data?"),
        (CODE, {"choices": ("no_such=1,2",)}, "--set: "),
        (
            CODE,
            {"runs_folder": Path(os.fsdecode(b"/\xff"))},
            "--runs /\ufffd: the name is not valid UTF-8",
        ),
    ],
)
def test_a_sweep_that_cannot_be_is_not_begun(sent, target: Target, changes: dict, words: str):
    with pytest.raises(CommandFailure) as refused:
        module.sweep(target, replace_options(**changes), None)
    assert words in str(refused.value) and refused.value.exit_code == BAD_ARGUMENTS
    assert sent == []


class Engine:
    """Answers with these snapshots."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.kinds = answers, list[str]()

    def __call__(self, kind: str) -> Engine:
        self.kinds.append(kind)
        return self

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None: ...

    def ready(self) -> None: ...

    def ask(self, command: Any) -> Any:
        return iter(self.answers)


def trial_of(folder: str, number: int, state: Any = "finished") -> TrainingSnapshot:
    progress = TrialProgress(number, 2, f"seed {number}", "loss", state=state)
    return TrainingSnapshot(
        run=folder, state="running", step=1, steps_per_second=1.0, steps=StepColumns(),
        device="cpu", folder=folder, trial=progress,
    )  # fmt: skip


def test_each_trial_is_told_once_at_its_end(monkeypatch, capsys) -> None:
    engine = Engine(
        OutputSnapshot(stream="stdout", text="hello\n"), trial_of("/r/1", 1, "running"),
        trial_of("/r/1", 1), trial_of("/r/1", 1), trial_of("", 2, "failed"), DoneSnapshot(),
    )  # fmt: skip
    monkeypatch.setattr(module, "Conversation", engine)
    monkeypatch.setattr(module, "run_code", lambda *_: None)
    listed = [RunRow(folder="/r/1"), RunRow(folder="/r/of another sweep")]
    monkeypatch.setattr(module, "rows_in", lambda runs: listed if runs == Path("/r") else [])
    found = module._trained(CODE, SimpleNamespace())  # pyright: ignore[reportArgumentType]
    assert found == listed[:1] and engine.kinds == ["training"]
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "hello\ntrial 1/2 finished: seed 1\ntrial 2/2 failed: seed 2\n"


def test_an_error_of_the_engine_ends_a_sweep(monkeypatch) -> None:
    error = ErrorSnapshot(command="SweepCommand", error=ErrorReport("LabError", "No data."))
    monkeypatch.setattr(module, "Conversation", Engine(error))
    monkeypatch.setattr(module, "run_code", lambda *_: None)
    with pytest.raises(CommandFailure, match=r"net\.py.*No data\."):
        module._trained(CODE, SimpleNamespace())  # pyright: ignore[reportArgumentType]
