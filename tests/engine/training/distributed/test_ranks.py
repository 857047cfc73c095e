"""Two real processes that train together, against one process with the same batches."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.compilers import has_compiler
from tests.engine.training.distributed.one_rank import TEMPLATES, train

ROOT = Path(__file__).parents[4]
CASES = [
    *sorted(path.stem for path in TEMPLATES.glob("*.tlab")),
    "mlp*",
    "parts",
    "words",
    "mlp@",
    "mlp^",
]
"""Of a template, "*" stands for options of the step, "@" for LBFGS, "^" for torch.compile in the
ranks."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture(scope="module")
def trained(forked_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the weights of both ranks, for each case."""
    folder = tmp_path_factory.mktemp("ranks")
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    module = "tests.engine.training.distributed.one_rank"
    cases = [name for name in CASES if "^" not in name or has_compiler()]
    with (folder / "told").open("wb") as told:
        ranks = [
            subprocess.Popen(
                [sys.executable, "-m", module, str(folder), *cases],
                env={**os.environ, **place, "RANK": str(rank)}, cwd=ROOT, stderr=told,
            )
            for rank in range(2)
        ]  # fmt: skip
    codes = [rank.wait() for rank in ranks]  # if one fails, the other misses it and fails too
    assert codes == [0, 0], (folder / "told").read_text()
    return folder


@pytest.mark.parametrize("name", CASES)
def test_two_ranks_are_one_process_with_the_same_batches(name: str, trained: Path) -> None:
    if "^" in name and not has_compiler():
        pytest.skip("This machine has no C++ compiler.")
    torch.set_num_threads(1)
    first, second = (torch.load(trained / f"{name}.{rank}.pt") for rank in range(2))
    one = train(name, None)
    assert first.keys() == one.keys()
    for key, expected in one.items():
        torch.testing.assert_close(first[key], second[key], rtol=0, atol=0, equal_nan=True)
        # Of figures, the norm is of large sums; LBFGS divides by small differences.
        close = 1e-5 if key == "figures" or "@" in name else 1e-6
        torch.testing.assert_close(first[key], expected, rtol=close, atol=close, equal_nan=True)
