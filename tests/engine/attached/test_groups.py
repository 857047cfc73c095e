"""Which ranks belong to one run."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from engine.attached.about import _group
from tests.engine.processes import WAIT_S


def group_in(env: dict[str, str]) -> str:
    names = ("WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.delenv(name, raising=False)
            if name in env:
                patch.setenv(name, env[name])
        return _group()


def test_ranks_belong_together_that_meet_at_one_address():
    here = {"WORLD_SIZE": "2", "MASTER_ADDR": "box", "MASTER_PORT": "29500"}
    assert group_in({}) == "" and group_in(here) == "box:29500:"
    assert group_in({**here, "TORCHELASTIC_RUN_ID": "a"}) == "box:29500:a"
    assert group_in({"WORLD_SIZE": "2"}) == str(os.getppid())


def test_the_ranks_of_two_agents_of_torchrun_are_of_one_group(tmp_path: Path):
    """As on two machines: an agent of torchrun's for each."""
    script = tmp_path / "tell.py"
    script.write_text("import json, os\nprint(json.dumps(dict(os.environ)))\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    agents = [
        subprocess.Popen(
            [
                *(
                    sys.executable,
                    "-m",
                    "torch.distributed.run",
                    "--nnodes=2",
                    "--nproc-per-node=1",
                ),
                *(f"--node-rank={node}", "--master-addr=127.0.0.1", f"--master-port={port}"),
                str(script),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for node in range(2)
    ]
    try:
        told = [json.loads(agent.communicate(timeout=WAIT_S)[0]) for agent in agents]
    finally:
        for agent in agents:
            agent.kill()
    assert {env["RANK"] for env in told} == {"0", "1"}
    (group,) = {group_in(env) for env in told}
    assert group.startswith("127.0.0.1:")
