"""Runs exported scripts: here in a module of their own, or in a process that knows torch only."""

from __future__ import annotations

import contextlib
import io
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.lab import Lab
from engine.protocol import ExportBackwardCommand
from engine.session import handler_of

_APART = """\
import runpy, sys
for name in ("tensorlab", "engine", "app", "widgets", "PySide6"):
    sys.modules[name] = None
import torch
found = runpy.run_path(sys.argv[1], run_name="__main__")
torch.save({text: eval(text, found) for text in sys.argv[3:]}, sys.argv[2])
"""


def exported(lab: Lab, path: Path | None = None) -> Any:
    """The BackwardScriptSnapshot."""
    command = ExportBackwardCommand(path="" if path is None else str(path))
    (answer,) = handler_of(ExportBackwardCommand)(lab, command)
    return answer


def run_here(text: str, path: Path | None = None) -> dict[str, Any]:
    """The script's variables after it has run, from random numbers that are not the lab's."""
    namespace: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    numpys, pythons = np.random.get_state(), random.getstate()
    try:
        said = contextlib.redirect_stdout(io.StringIO())
        with torch.random.fork_rng(devices=[]), torch.enable_grad(), said:
            torch.manual_seed(987_654_321)
            np.random.seed(4321)
            random.seed(4321)
            exec(compile(text, "backward.py", "exec"), namespace)
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(dtype)
        np.random.set_state(numpys)
        random.setstate(pythons)
    return namespace


def run_apart(script: Path, *expressions: str) -> Mapping[str, Any]:
    """What the expressions are after the script has run in a fresh process in its folder, where
    nothing of this program can be imported."""
    found = script.parent / "found.pt"
    command = [sys.executable, "-c", _APART, script.name, found.name, *expressions]
    done = subprocess.run(
        command, cwd=script.parent, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return torch.load(found, weights_only=False)


def same(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    """Whether two gradients are the same to the bit, NaNs included."""
    if a is None or b is None:
        return a is b
    if a.layout != b.layout or a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.layout == torch.sparse_coo:
        return same(a.coalesce().indices(), b.coalesce().indices()) and same(
            a.coalesce().values(), b.coalesce().values()
        )
    a, b = a.detach().contiguous().reshape(-1), b.detach().contiguous().reshape(-1)
    return torch.equal(a.view(torch.uint8), b.view(torch.uint8)) if a.numel() else True
