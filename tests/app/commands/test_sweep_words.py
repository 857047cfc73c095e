"""The options of a sweep, and its trials in words: the best first."""

from __future__ import annotations

import math

import pytest

from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from app.commands.sweep import SweepOptions, _in_words, _print_progress, _ranked, _sweep_of
from engine.project.sweeps.sweep import Sweep
from engine.protocol import RunRow, TrialProgress
from engine.protocol.training.runs import KeptState, TrialRow


def options(metric: str, *choices: str) -> SweepOptions:
    return SweepOptions(choices or ("seed=1,2",), 7, 3, metric, True, 2)


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
    assert (wanted.trials, wanted.seed, wanted.prune, wanted.jobs) == (7, 3, True, 2)
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
