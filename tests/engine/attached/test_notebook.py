"""The kernel of a notebook: a window looks at it between its cells, and holds it inside one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from engine.attached.notebooks import notebook_name
from engine.connecting.dialing import dial
from engine.connecting.places import listening
from engine.protocol import (
    ContinueTrainingCommand,
    GraphSnapshot,
    HeldSnapshot,
    LoggedPoints,
    LoopSnapshot,
    PauseSignal,
    ReadVariablesCommand,
    StartBackwardCommand,
    VariablesSnapshot,
)
from engine.system.program import version
from tests.engine.attaching import ROOT, Window
from tests.engine.processes import WAIT_S

MODEL = """
import torch
from torch import nn
import tensorlab as lab
torch.manual_seed(0)
net = nn.Linear(3, 1)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
lab.watch(net, sgd)
loss = net(torch.ones(2, 3)).sum()
"""
LOOP = """
for step in range({}):
    sgd.zero_grad()
    net(torch.ones(2, 3)).square().sum().backward()
    sgd.step()
"""


@pytest.fixture
def kernel(
    sockets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[BlockingKernelClient]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("JPY_SESSION_NAME", "/home/me/deep.ipynb")  # as a Jupyter server does
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(WAIT_S)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    manager.cleanup_resources()


def run(kernel: BlockingKernelClient, source: str) -> str:
    """What the cell prints; it must end well."""
    printed: list[str] = []
    answer = kernel.execute_interactive(
        source,
        timeout=WAIT_S,
        output_hook=lambda message: printed.append(message["content"].get("text", "")),
    )
    assert answer["content"]["status"] == "ok", answer["content"]
    return "".join(printed)


@pytest.mark.parametrize(
    ("variables", "is_kernel", "name"),
    [
        ({"__vsc_ipynb_file__": "/home/me/code.ipynb"}, True, "code.ipynb"),
        ({"__session__": "deep.ipynb"}, True, "deep.ipynb"),
        ({"__session__": "", "__vsc_ipynb_file__": 7}, True, "notebook"),
        ({}, True, "notebook"),
        ({}, False, ""),
    ],
)
def test_a_notebook_has_the_name_of_its_file(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, object], is_kernel: bool, name: str
) -> None:
    shell = SimpleNamespace(user_ns=variables, kernel=object() if is_kernel else None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert notebook_name() == name


def test_between_cells_all_is_answered_and_a_loop_in_a_cell_is_held(
    kernel: BlockingKernelClient,
) -> None:
    assert "tensorlab attach" in run(kernel, MODEL)
    there = listening()
    assert [each.about.name for each in there] == ["deep.ipynb"]
    window = Window(dial(str(there[0].about.pid), version()))
    window.send(ReadVariablesCommand())
    names = {variable.name for variable in window.until(VariablesSnapshot).variables}
    assert {"net", "sgd", "loss"} <= names
    # This one does more than read: it waits for the end of a cell, and none runs.
    window.send(StartBackwardCommand(root="loss"))
    names = [node.name for node in window.until(GraphSnapshot).nodes]
    assert "SumBackward0" in names

    window.send(PauseSignal())
    kernel.execute(LOOP.format(5) + "lab.log(score=7)\nprint(net.weight.tolist())")
    held = window.until(HeldSnapshot, lambda held: held.at)
    assert held.source.splitlines()[held.line - 1].strip() == "sgd.step()"
    window.send(ContinueTrainingCommand())
    assert window.until(LoopSnapshot, lambda loop: loop.state == "running").step >= 1
    printed = ""
    while not printed:
        message = kernel.get_iopub_msg(timeout=WAIT_S)
        printed = message["content"].get("text", "")
    # Nothing steps after it: it is told at the end of the cell.
    told = window.until(LoopSnapshot, lambda loop: "score" in loop.logged)
    assert told.logged["score"] == LoggedPoints((5,), (7.0,))
    window.close()

    alone = MODEL.replace("lab.watch(net, sgd)", "") + LOOP.format(5)
    assert printed == run(kernel, f"{alone}print(net.weight.tolist())")
