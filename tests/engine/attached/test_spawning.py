"""`watch(spawn=True)`: a real window comes, and steers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil

from engine.protocol import LoopSnapshot
from tests.engine.attaching import Script

SCRIPT = """
import os
import sys
from pathlib import Path
import torch
import tensorlab as lab

folder = sys.argv[1]
for name in ("HOME", *(f"XDG_{kind}_HOME" for kind in ("CONFIG", "CACHE", "DATA", "STATE"))):
    os.environ[name] = folder
os.environ["DISPLAY"] = ":0"
os.environ["QT_QPA_PLATFORM"] = "offscreen"
net = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
lab.watch(net, optimizer, spawn=True, wait=True)
print("a window is here", file=sys.stderr, flush=True)
while not Path(folder, "end").exists():
    net(torch.ones(2)).sum().backward()
    optimizer.step()
print("ended")
"""


def test_a_window_is_opened_and_steers(script: Callable[..., Script], tmp_path: Path) -> None:
    running = script(SCRIPT, str(tmp_path))
    running.address()
    assert running.process.stderr is not None
    assert "a window is here\n" in running.process.stderr
    (window,) = (
        child
        for child in psutil.Process(running.process.pid).children()
        if "attach" in child.cmdline()
    )
    family = [window, *window.children(recursive=True)]
    try:
        second = running.attach()
        assert second.welcome.role == "watch"  # as the first one steers
        second.until(LoopSnapshot, lambda loop: loop.step)
    finally:
        for process in family:
            process.kill()
    (tmp_path / "end").touch()
    second.to_end()
    assert running.end() == "ended\n"
