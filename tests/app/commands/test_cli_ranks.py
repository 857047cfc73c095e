"""`tensorlab train --nproc-per-node`: several processes as one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import torch

from app import cli
from engine.training.distributed.rank_files import RANKS, signed

ROOT = Path(__file__).parents[3]
MLP = ROOT / "assets" / "templates" / "mlp.tlab"

pytestmark = [pytest.mark.usefixtures("forked_processes"), pytest.mark.timeout(600)]

NET = """
import os, torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(202, 5)
data = x, (x.sum(1) > 0).long()

class Net(nn.Module):
    def __init__(self, fails_in=""):
        super().__init__()
        self.linear, self.fails_in, self.calls = nn.Linear(5, 2), fails_in, 0

    def forward(self, x):
        self.calls += 1
        print("call", self.calls)
        if self.calls > 4 and os.environ.get("RANK") == self.fails_in:
            raise ValueError("bad row")
        return self.linear(x)
"""


def run(*arguments: object) -> int:
    return cli.main([str(argument) for argument in arguments])


def weights(*arguments: object, out: Path) -> dict[str, torch.Tensor]:
    assert run("train", *arguments, "--out", out) == 0
    return torch.load(out)


def test_a_run_of_two_goes_on_with_one_and_the_other_way(tmp_path: Path, capsys) -> None:
    whole = weights(MLP, "--epochs", 2, out=tmp_path / "whole.pt")
    for first, second in ((2, 1), (1, 2)):
        folder = tmp_path / f"run{first}"
        begun = ("--nproc-per-node", first, "--run", folder, "--epochs", 1)
        assert run("train", MLP, *begun) == 0
        assert (folder / "ranks" / "rank-1.log").exists() == (first == 2)
        *_, kept = sorted((folder / "checkpoints").iterdir())
        assert kept.name == "step-00000023.pt"
        on = ("--nproc-per-node", second, "--run", folder, "--resume", "--epochs", 2)
        resumed = weights(*on, out=tmp_path / "resumed.pt")
        for name, expected in whole.items():
            torch.testing.assert_close(resumed[name], expected, rtol=0, atol=1e-6)
    capsys.readouterr()
    assert run("runs", tmp_path, "--json") == 0
    listed = json.loads(capsys.readouterr().out)["runs"]
    assert {(each["state"], each["step"]) for each in listed} == {("finished", 46)}
    validation = [each["epoch"]["validation_loss"] for each in listed]
    assert validation[0] == pytest.approx(validation[1], abs=1e-6)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_raises_ends_the_run_in_words(rank: int, tmp_path: Path, capsys) -> None:
    net = tmp_path / "net.py"
    net.write_text(NET)
    folder = tmp_path / "run"
    of_code = (f'{net}:Net("{rank}")', "--data", "data")
    assert run("train", *of_code, "--run", folder, "--nproc-per-node", 2) == 1
    assert "bad row" in capsys.readouterr().err
    assert "call 5" in (folder / "ranks" / f"rank-{rank}.log").read_text()
    assert run("runs", folder, "--json") == 0
    (listed,) = json.loads(capsys.readouterr().out)["runs"]
    assert listed["state"] == "failed" and "bad row" in listed["error"]


def newest(folder: Path) -> int:
    """The step of the newest checkpoint; 0 without one."""
    found = folder.glob("checkpoints/step-*.pt")
    return max((int(path.stem[5:]) for path in found), default=0)


@contextmanager
def going(
    folder: Path, *arguments: object, after: int = 0
) -> Iterator[tuple[subprocess.Popen, dict[int, psutil.Process]]]:
    """A run of two ranks that has a checkpoint after this step, and its ranks; none of them is
    left."""
    program = subprocess.Popen(
        [sys.executable, "-m", "app", "train", "--run", folder, *map(str, arguments)],
        cwd=ROOT, env=dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    while newest(folder) <= after:
        assert program.poll() is None, program.communicate()[1]
        time.sleep(0.05)
    told = signed(folder / RANKS)
    ranks = {rank: psutil.Process(each.pid) for rank, each in told.items() if each}
    yield program, ranks
    assert program.returncode == 1
    assert sorted(ranks) == [0, 1] and not any(rank.is_running() for rank in ranks.values())


def test_a_killed_rank_is_told_and_the_run_goes_on_until_it_is_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with going(folder, MLP, "--epochs", 400, "--nproc-per-node", 2) as (program, ranks):
        ranks[1].send_signal(signal.SIGKILL)
        told = program.communicate()[1]
    step = newest(folder)
    assert "Rank 1 was ended by SIGKILL." in told and f"--run {folder} --resume" in told
    assert f"step {step:,}." in told
    with going(folder, "--resume", "--epochs", 400, after=step) as (program, _):
        program.terminate()
        told = program.communicate()[1]
    record = json.loads((folder / "run.json").read_text())
    assert record["state"] == "stopped" and newest(folder) > step
    assert f"stopped after {newest(folder):,} of 9,200 steps." in told
