"""The modules of a script's graphs are told as those of a cell are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import Thread

import pytest
import torch
from torch import nn

from engine.protocol import (
    ContinueTrainingCommand,
    GraphSnapshot,
    HeldSnapshot,
    StartBackwardCommand,
    StepBackwardSignal,
    StepTrainingCommand,
)
from engine.protocol.autograd_snapshots import join_graph
from engine.recording.module_recorder import ModuleRecorder
from tests.engine.attaching import Script, Window

SCRIPT = """
import torch
from torch import nn
import tensorlab as lab

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 8), nn.Tanh())
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.body(x).relu())

def forward(net, x):
    return net(x).square().mean()

def train():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    lab.watch(model, optimizer, wait=True)
    x = torch.randn(4, 5)
    lab.hold()
    for number in range(4):
        loss = forward(model, x)
        optimizer.zero_grad()
        loss.backward()
        other = forward(model, x)
        optimizer.step()
    print(len(torch.nn.modules.module._global_forward_hooks))

train()
"""


Found = list[tuple[str, str, str]]


def nodes(window: Window) -> Found:
    """The operation of each node that is not a leaf, its module, and the line that made it."""
    parts = [window.until(GraphSnapshot)]
    while len(parts) < parts[0].parts:
        parts.append(window.until(GraphSnapshot))
    graph = join_graph(parts)
    assert not any(node.aten for node in graph.nodes)  # they were not recorded
    return [
        (node.name, node.module, node.source.text if node.source else "")
        for node in graph.nodes
        if node.kind != "leaf"
    ]


INSIDE = "return self.head(self.body(x).relu())"
EXPECTED: Found = [
    ("MeanBackward0", "", ""),
    ("PowBackward0", "", ""),
    ("AddmmBackward0", "model.head", INSIDE),
    ("ReluBackward0", "model", "return net(x).square().mean()"),
    ("TBackward0", "model.head", INSIDE),
    ("TanhBackward0", "model.body.1", INSIDE),
    ("AddmmBackward0", "model.body.0", INSIDE),
    ("TBackward0", "model.body.0", INSIDE),
]


def test_the_graph_of_a_variable_and_a_backward_that_is_stepped_have_them(
    script: Callable[..., Script],
) -> None:
    running = script(SCRIPT)
    running.address()
    window = running.attach()
    window.until(HeldSnapshot)
    for _ in range(2):
        window.send(StepTrainingCommand())
        window.until(HeldSnapshot, lambda held: held.at == "step")
    window.send(StartBackwardCommand(root="other"))
    assert sorted(nodes(window)) == sorted(EXPECTED)
    window.send(StepBackwardSignal(on=True))
    window.send(ContinueTrainingCommand())
    window.until(HeldSnapshot, lambda held: held.at == "backward")
    assert sorted(nodes(window)) == sorted(EXPECTED)
    window.close()
    assert running.end() == "0\n"


@pytest.fixture
def never_compiled() -> None:
    """What other tests of this process have compiled is forgotten."""
    torch._dynamo.reset()


@pytest.mark.usefixtures("never_compiled")
def test_what_torch_compiles_is_left_alone() -> None:
    recorder = ModuleRecorder()
    recorder.begin()
    net = nn.Linear(2, 1)
    net(torch.ones(2))
    assert [(call.name, call.module) for call in recorder.recording.calls] == [("Linear", "net")]
    recorder.end()
    compiled = torch.compile(net, backend="eager")
    try:
        recorder.begin()
        compiled(torch.ones(2))
        assert not recorder.recording.calls
    finally:
        torch._dynamo.reset()
    recorder.begin()
    net(torch.ones(2))
    assert recorder.recording.calls
    recorder.end()
    net(torch.ones(2))
    assert len(recorder.recording) == 1


@pytest.mark.usefixtures("never_compiled")
def test_a_module_that_raises_and_one_in_another_thread_leave_no_call_open() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(3, 1))
    recorder = ModuleRecorder(name_of=lambda module: "watched")
    recorder.begin()
    thread = Thread(target=nn.Linear(2, 1), args=(torch.ones(2),))
    thread.start()
    thread.join()
    with pytest.raises(RuntimeError):
        net(torch.ones(2))
    made = nn.Linear(2, 1)(torch.ones(2))
    recorder.end()
    calls = recorder.recording.calls
    assert [call.module for call in calls] == ["net", "net.0", "net.1", "watched"]
    assert all(call.end < sys.maxsize for call in calls) and calls[-1].parent == -1
    node = recorder.recording.call_of(made.grad_fn._sequence_nr())
    assert node is calls[-1]
