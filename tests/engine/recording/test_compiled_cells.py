"""What torch.compile makes of a cell's functions computes what it computes in plain Python, bit for
bit, and the steps in it are seen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.protocol import CellSnapshot, LoopSnapshot, RunCellCommand, Snapshot
from engine.recording.light import pauses
from engine.server.session import Session

BEGIN = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
x, y = torch.randn(8, 4), torch.randn(8, 1)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
compiled = lambda f: torch.compile(f, backend="eager")
"""
LOOPS = {
    "a step that clears first": """
@compiled
def step():
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss
losses = [step().detach() for i in range(3)]
""",
    "a step that clears last": """
@compiled
def step():
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss
losses = [step().detach() for i in range(3)]
""",
    "the optimizer's step, and its schedule": """
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=3)
optimizer.param_groups[0]["lr"] = torch.tensor(0.01)
@compiled
def update():
    optimizer.step()
    schedule.step()
losses = []
for i in range(3):
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    update()
    losses.append(loss.detach())
""",
    "the method itself": """
update = compiled(optimizer.step)
losses = []
for i in range(3):
    loss = net(x).square().mean()
    net.zero_grad()
    loss.backward()
    update()
    losses.append(loss.detach())
""",
}
BREAK = """
@compiled
def f():
    print(end="")
    return x.sin().cos()
"""


@pytest.fixture(autouse=True)
def never_compiled() -> Iterator[None]:
    """What other tests of this process have compiled is forgotten."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def run(source: str) -> tuple[dict[str, Any], list[Snapshot]]:
    said: list[Snapshot] = []
    session = Session(said.append)
    session.handle(RunCellCommand(id=1, source=source))
    assert isinstance(said[-1], CellSnapshot)
    assert said[-1].error is None, said[-1].error
    return session.lab.console.namespace.variables, said


@pytest.mark.filterwarnings("ignore")  # of torch's compiler, about its own code
@pytest.mark.parametrize("name", LOOPS)
def test_a_compiled_step_is_that_of_plain_python_and_is_seen(name: str) -> None:
    plain: dict[str, Any] = {}
    exec(BEGIN + LOOPS[name], plain)
    torch._dynamo.reset()
    ours, said = run(BEGIN + LOOPS[name])
    for a, b in zip(plain["losses"], ours["losses"], strict=True):
        assert torch.equal(a, b)
    for a, b in zip(plain["net"].parameters(), ours["net"].parameters(), strict=True):
        assert torch.equal(a, b)
    assert [each for each in said if isinstance(each, LoopSnapshot)][-1].step == 3


def test_functions_one_after_the_other_where_the_program_is_split() -> None:
    """torch took a compiled frame of the mode for one function also for the next one."""
    variables, _ = run(BEGIN + BREAK + "z = f()")
    assert torch.equal(variables["z"], variables["x"].sin().cos())


def test_a_trace_of_torch_has_the_labels_of_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pauses, "_traced", [])
    trace = tmp_path / "trace.json"
    run(f"""{BEGIN}
observer = torch.profiler.ExecutionTraceObserver().register_callback({str(trace)!r})
observer.start()
net(x).sum().backward()
optimizer.step()
observer.stop()
observer.unregister_callback()
""")
    names = {node["name"] for node in json.loads(trace.read_text())["nodes"]}
    assert "Optimizer.step#Adam.step" in names


def test_a_label_of_the_users_own_is_recorded() -> None:
    variables, _ = run("""
with torch.profiler.record_function("Optimizer.mine") as label:
    pass
""")
    assert variables["label"].record is not None
    assert variables["label"].run_callbacks_on_exit
