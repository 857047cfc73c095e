"""`tensorlab train` started by torchrun, as the command for several machines does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import torch

from app import cli
from engine.handlers.training.as_rank import digest_of
from engine.models.live import LiveModel
from engine.project import files
from engine.project.subject import FileSubject
from engine.protocol import TrainCommand

ROOT = Path(__file__).parents[3]
MLP = ROOT / "assets" / "templates" / "mlp.tlab"

pytestmark = [pytest.mark.usefixtures("forked_processes"), pytest.mark.timeout(600)]


def run(*arguments: object) -> int:
    return cli.main([str(argument) for argument in arguments])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def torchrun(*arguments: object) -> list[str]:
    """Two machines that are one: an agent for each, with one process. What each has told."""
    place = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{free_port()}"]
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"),
        *(*place, "-m", "--", "tensorlab", "train", *map(str, arguments)),
    ]
    agents = [
        subprocess.Popen(
            command, cwd=ROOT, env=dict(os.environ), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    told = [agent.communicate()[0] for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], told
    return told


def test_two_agents_go_on_with_a_run_as_one_process_would(tmp_path: Path) -> None:
    assert run("train", MLP, "--epochs", 2, "--out", tmp_path / "whole.pt") == 0
    folder = tmp_path / "run"
    assert run("train", MLP, "--epochs", 1, "--run", folder) == 0
    out = tmp_path / "resumed.pt"
    told = torchrun(MLP, "--run", folder, "--resume", "--epochs", 2, "--out", out)
    assert sum("finished after 46 steps" in each for each in told) == 1  # rank 0 tells, no other
    whole, resumed = torch.load(tmp_path / "whole.pt"), torch.load(out)
    for name, expected in whole.items():
        torch.testing.assert_close(resumed[name], expected, rtol=0, atol=1e-6)


def test_the_processes_of_torchrun_are_its_own_affair(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    for name, value in {"TORCHELASTIC_RUN_ID": "none", "RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    assert run("train", MLP, "--nproc-per-node", 2) == 2
    assert "give it to torchrun" in capsys.readouterr().err


def test_ranks_must_train_the_same() -> None:
    project = files.load(MLP)
    module = LiveModel(project.model, 0).module
    command = TrainCommand(model=project.model, training=project.training)
    own = digest_of(command, module)
    setup = msgspec.structs.replace(project.training, device="cuda:0", processes=4)
    assert digest_of(msgspec.structs.replace(command, training=setup), module) == own
    other = msgspec.structs.replace(project.training, batch_size=7)
    assert digest_of(msgspec.structs.replace(command, training=other), module) != own
    subjects = [FileSubject(f"/{place}/net.py", "Net()") for place in ("home", "data")]
    of_code = [msgspec.structs.replace(command, subject=subject) for subject in subjects]
    assert len({digest_of(each, module) for each in of_code}) == 1
