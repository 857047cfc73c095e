"""`tensorlab sweep`: its report, its folders, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from app import cli

TEMPLATE = Path(__file__).parents[3] / "assets" / "templates" / "mlp.tlab"

pytestmark = pytest.mark.usefixtures("forked_processes")


def run(*arguments: object) -> int:
    return cli.main([str(argument) for argument in arguments])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copy(TEMPLATE, tmp_path / "net.tlab"))


def test_a_sweep_is_reported_and_its_trials_are_runs(project: Path, capsys) -> None:
    sweep = (
        *("sweep", project, "--set", "training.learning_rate=1e-4..1e-1:log"),
        *("--set", "batch_size=200,400", "--trials", 3, "--epochs", 1, "--no-prune"),
    )
    assert run(*sweep, "--json") == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    trials = told["trials"]
    values = [trial["trial"]["value"] for trial in trials]
    assert values == sorted(values) and len(values) == 3
    assert told["best"] == trials[0] and trials[0]["trial"]["state"] == "best"
    assert {Path(trial["folder"]).parent for trial in trials} == {project.with_suffix(".runs")}
    assert "trial 3/3 finished: lr" in printed.err
    for trial in trials:
        rate = trial["settings"]["optimizer_params"]["lr"]
        assert f"lr {rate:.3g}" in trial["trial"]["values"]
        assert trial["epoch"]["validation_loss"] == trial["trial"]["value"]
    assert run("runs", project) == 0
    assert "trial 3 (lr " in capsys.readouterr().out
    best = trials[0]
    plain = (
        *("train", project, "--epochs", 1, "--json", "--run", project.parent / "plain", "--fresh"),
    )
    text = json.loads(project.read_text())
    text["training"]["batch_size"] = best["settings"]["batch_size"]
    text["training"]["optimizer_params"] = best["settings"]["optimizer_params"]
    project.write_text(json.dumps(text))
    assert run(*plain) == 0
    assert json.loads(capsys.readouterr().out)["val_loss"] == best["trial"]["value"]


def test_what_cannot_be_swept_is_told(project: Path, capsys) -> None:
    for option, words in (
        ("nonsense", "“nonsense” has no ="),
        ("nonsense=1,2", "There is no setting `nonsense`"),
        ("batch_size=0,8", "batch_size cannot be 0: batch_size is 0: it must be at least 1"),
        ("learning_rate=1..0.1", "a range goes up"),
        ("learning_rate=0..1:log", "begins above 0"),
        ("learning_rate=a..b", "“a” is not a number"),
        ("optimizer=Adam,Nadir", "There is no optimizer “optim.Nadir”"),
        ("batch_size=", "there is nothing to try"),
        ("epochs=2.5,3", "epochs cannot be 2.5"),
    ):
        assert run("sweep", project, "--set", option) == 2
        error = capsys.readouterr().err
        assert error.startswith("tensorlab: --set") and words in error
    assert run("sweep", project, "--set", "seed=1,2", "--metric", "x:best") == 2
    assert "min or max" in capsys.readouterr().err
    assert run("sweep", project) == 2
    assert not project.with_suffix(".runs").exists()


def test_jobs_are_gone(project: Path, capsys) -> None:
    assert run("sweep", project, "--set", "seed=1,2", "--jobs", 3) == 2
    assert (
        "--jobs is gone: trials run one after the other. Leave it out." in capsys.readouterr().err
    )
