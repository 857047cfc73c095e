"""The command line on the eight model files: run as scripts, inspected, trained and exported."""

from __future__ import annotations

import contextlib
import io
import json
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_model

from engine.system.devices import usable_cores
from tests.app.commands.test_cli import run
from tests.engine.subjects.eight import CASES, SEED, Case, imported, plain_epoch

pytestmark = pytest.mark.usefixtures("forked_processes")

SEEDED = ("resnet", "gpt", "vae", "adaptive")
"""These files seed torch themselves, so that each run of them prints the same."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_file_runs_as_a_script(case: Case, tmp_path: Path, capsys) -> None:
    out = tmp_path / "report.json"
    assert run("exec", case.path, "--json", out) == 0, capsys.readouterr().err
    report = json.loads(out.read_text())
    assert report["ok"] and report["error"] is None
    assert report["stdout"].count("\n") > 0  # the loop under __main__ has run
    if case.name in SEEDED:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), torch.random.fork_rng(devices=[]):
            runpy.run_path(str(case.path), run_name="__main__")
        assert report["stdout"] == printed.getvalue()


@contextlib.contextmanager
def threads_of_an_engine() -> Iterator[None]:
    """torch with as many threads as in an engine: they decide the last bits of sums."""
    own = torch.get_num_threads()
    torch.set_num_threads(max(1, usable_cores() - 1))
    try:
        yield
    finally:
        torch.set_num_threads(own)


@pytest.mark.parametrize("name", ["packed_lstm", "gpt"])
def test_two_of_them_are_inspected_trained_and_exported(name: str, tmp_path: Path, capsys) -> None:
    (case,) = (case for case in CASES if case.name == name)
    subject = f"{case.path}:{case.expression}"
    structure, told, weights = (tmp_path / n for n in ("structure.json", "run.json", "w.pt"))
    assert run("inspect", subject, "--data", case.data, "--json", structure) == 0
    report = json.loads(structure.read_text())
    with imported(case.path) as file, threads_of_an_engine():
        model, losses = plain_epoch(case, file, lr=0.001)
    assert report["unrun"] is None
    assert {row["name"]: row["shape"] for row in report["parameters"]} == {
        key: list(p.shape) for key, p in model.named_parameters(remove_duplicate=False)
    }
    assert report["totals"]["parameters"] == sum(p.numel() for p in model.parameters())
    validation = ("--validation", case.validation) if case.validation else ()
    options = ("--epochs", 1, "--seed", SEED)
    arguments = ("--data", case.data, *validation, *options)
    assert run("train", subject, *arguments, "--out", weights, "--json", told) == 0
    report = json.loads(told.read_text())
    assert (report["state"], report["steps"]) == ("finished", len(losses))
    learnt = torch.load(weights)
    assert learnt.keys() == model.state_dict().keys()
    assert all(torch.equal(value, learnt[key]) for key, value in model.state_dict().items())
    copy = tmp_path / "w.safetensors"
    assert run("export", subject, "--weights", weights, "--out", copy) == 0
    load_model(model, copy)
    assert all(torch.equal(value, learnt[key]) for key, value in model.state_dict().items())
