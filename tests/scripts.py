"""A script of training run in this process, which it leaves as it was."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
import torch


def run_script(path: Path, *options: str) -> None:
    """Run it as `python PATH OPTIONS`: it sets torch's seed, number of threads and modes."""
    threads = torch.get_num_threads()
    cudnn = torch.backends.cudnn
    modes = torch.are_deterministic_algorithms_enabled(), cudnn.deterministic, cudnn.benchmark
    with pytest.MonkeyPatch.context() as patch, torch.random.fork_rng(devices=[]):
        patch.setattr(sys, "argv", [str(path), *options])
        try:
            runpy.run_path(str(path), run_name="__main__")
        finally:
            torch.set_num_threads(threads)
            torch.use_deterministic_algorithms(modes[0])
            cudnn.deterministic, cudnn.benchmark = modes[1:]
