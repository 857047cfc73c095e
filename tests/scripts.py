"""A script of training run in this process, which it leaves as it was."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
import torch


def run_script(path: Path, *options: str) -> None:
    """Run it as `python PATH OPTIONS`: it sets torch's seed and number of threads."""
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch, torch.random.fork_rng(devices=[]):
        patch.setattr(sys, "argv", [str(path), *options])
        try:
            runpy.run_path(str(path), run_name="__main__")
        finally:
            torch.set_num_threads(threads)
