"""What the README says holds."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
SAYS = {"lab.watch": ("Tensor Lab: tensorlab attach",), "BackwardStepper": ("PowBackward0", "27.")}
"""What a block that has this in it prints."""


def test_there_is_a_block_of_each_kind():
    assert [sum(word in block for block in BLOCKS) for word in SAYS] == [1, 1]
    assert len(BLOCKS) == len(SAYS)


@pytest.mark.parametrize("block", BLOCKS)
def test_its_python_runs(forked_processes, block, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", block],
        capture_output=True,
        text=True,
        cwd=README.parent,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    said = next(words for word, words in SAYS.items() if word in block)
    assert all(words in done.stdout + done.stderr for words in said)
