"""Modules that a loop calls often are looked into now and then: what is told of their other calls
is what was told when every call was looked into."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from engine.autograd.graph.provenance import Provenance
from engine.autograd.graph.reading import read_graph
from engine.console.namespace import Namespace
from engine.console.output import Output
from engine.handlers.node_detail import LIKE_BEFORE, NOT_LOOKED_INTO
from engine.protocol import (
    GraphSnapshot,
    NodeDetailCommand,
    RunCellCommand,
    StartBackwardCommand,
)
from engine.recording.light import light_recording, repeats
from engine.recording.light.light_recording import LightRecording
from engine.recording.recording import GradientCut
from engine.recording.writes import Making
from engine.server.session import Session
from engine.system.control import Control
from tests.engine.namespaces import run

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm = nn.Linear(6, 8), nn.Linear(8, 8), nn.BatchNorm1d(8)
        self.a.weight.requires_grad_(False)

    def forward(self, x{more}):
        h = self.norm(self.a(x)).relu()
        h = F.dropout(self.b(h))  # a function
        return {result}

torch.manual_seed(0)
net = Net()
x, y, rows = torch.randn(5, 6), torch.randn(5, 8), torch.randn(40, 6)
optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.01)
"""
LOOP = """
for step in range(20):
    optimizer.zero_grad()
    {call}
    loss = F.mse_loss(pred, y)
    loss.backward()
    optimizer.step()
"""
CASES: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "a tensor": ("", "h", "pred = net(x)"),
        "a view": ("", "h.view(-1).view(5, 8)", "pred = net(x)"),
        "a view of what was given": ("", "h, x.t()", "pred, r = net(x)"),
        "no grad": ("", "(h, (h.detach(), {'c': h.sign().bool()}))", "pred, (r, d) = net(x)"),
        "what was given": ("", "(h, x)", "pred, r = net(x)"),
        "a batch": ("", "h", "pred = net(rows[step : step + 5])"),
        "keywords": (", scale=None, flag=True", "h * scale", "pred = net(x, scale=y, flag=False)"),
        "two lines": ("", "h", "pred = net(x) +\\\n        net(x)"),
        # Nothing is written in these.
        "only a view": ("", "h.view(-1).view(5, 8)", "net.norm.eval(); pred = net(x)"),
        "only cut": ("", "h.detach()", "net.norm.eval(); r = net(x); pred = net.b(y) + r"),
        "a number": ("", "h.mean()", "net.norm.eval(); pred = net.norm(net.b(y)) * net(x)"),
    }
)  # fmt: skip


def making(namespace: Namespace, name: str) -> list:
    """The steps that led to a variable, each with the name of its parent."""
    t = namespace.variables.get(name)
    made: Making | None = None if t is None else namespace.writes.making(t)
    steps = []
    while made is not None:
        parent = made.parent()
        steps.append((made.at, made.depth, "" if parent is None else namespace.name_of(parent)))
        made = made.earlier
    return steps


def why(namespace: Namespace, slot: Any) -> Any:
    if not isinstance(slot, GradientCut):
        return slot
    t = slot.tensor()
    return slot.reason, slot.place, None if t is None else namespace.name_of(t)


def told(namespace: Namespace) -> dict[str, Any]:
    """All that is known after a loop."""
    variables = namespace.variables
    graph = read_graph([variables["loss"]], names={})
    provenance = Provenance(namespace.recordings.kept)
    calls = []
    for node in graph.nodes:
        call = provenance.call(node)
        if call is not None:
            assert call.holds(node.sequence)
            tiny = None if call.tiny is None else call.tiny.numbers
            slots = [why(namespace, slot) for slot in call.slots]
            nodes = call.end - call.first
            calls.append((node.name, call.name, call.module, call.place, nodes, slots, tiny))
    r = variables.get("r")
    return {
        "calls": calls,
        "written": [namespace.writes.last_write(t) for t in variables["net"].buffers()],
        "made": [making(namespace, name) for name in ("pred", "r", "x")],
        "cut": None if r is None or r.requires_grad else why(namespace, namespace._cuts.why(r)),
        "values": [t.tolist() for t in variables["net"].state_dict().values()],
    }


def like(namespace: Namespace) -> int:
    """How many nodes of the loss are told from an earlier call."""
    graph = read_graph([namespace.variables["loss"]], names={})
    calls = map(Provenance(namespace.recordings.kept).call, graph.nodes)
    return sum(call is not None and call.is_like for call in calls)


def recording(namespace: Namespace) -> LightRecording:
    found = namespace.recordings.kept[-1]
    assert isinstance(found, LightRecording)
    return found


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_told_that_is_not_so(monkeypatch, case: str) -> None:
    more, result, call = CASES[case]
    source = NET.format(more=more, result=result) + LOOP.format(call=call)
    repeating, whole = Namespace(), Namespace()
    run(repeating, source)
    assert recording(repeating).repeats and like(repeating) >= (case != "only cut") * 6
    monkeypatch.setattr(repeats, "WHOLE_CALLS", 1_000)
    run(whole, source)
    assert not recording(whole).repeats and like(whole) == 0
    assert told(repeating) == told(whole)
    plain = {"torch": torch, "nn": nn, "F": F, "__name__": "__main__"}
    exec(source, plain)
    assert told(whole)["values"] == [t.tolist() for t in plain["net"].state_dict().values()]


SMALL = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.h = nn.Linear(8, 8), torch.zeros(8)
    def forward(self, x):
        {forward}
net = Net()
x = torch.randn(5, 8)
{before}
for step in range(20):
    loss = {call}.square().mean()
    {after}
"""


@pytest.mark.parametrize(
    ("forward", "before", "call", "after"),
    [
        ("return self.layer(x) * x.sum().sin().add(self.layer.bias.sum())", "", "net(x)", ""),
        ("self.h = self.layer(x).detach(); return self.layer(x)", "", "net(x)", ""),
        ("x.add_(1); return self.layer(x)", "", "net(x)", ""),
        ("return slice(None), self.layer(x)", "", "net(x)[1]", ""),
        ("return self.layer(x)", "net.register_forward_hook(print)", "net(x)", ""),
        ("return self.layer(x)", "class T(torch.Tensor): pass\nx = x.as_subclass(T)", "net(x)", ""),
        (
            "optimizer.step(); return self.layer(x)",
            "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)",
            "net(x)",
            "",
        ),
    ],
    ids=["small", "keeps", "writes", "object", "hook", "class", "steps"],
)
def test_a_module_of_which_something_would_be_lost_is_always_looked_into(
    forward: str, before: str, call: str, after: str
) -> None:
    namespace = Namespace()
    source = SMALL.format(forward=forward, before=before, call=call, after=after)
    run(namespace, source)
    assert not recording(namespace).repeats


def test_of_a_call_that_made_other_nodes_only_its_module_is_told(monkeypatch) -> None:
    monkeypatch.setattr(repeats, "EVERY", 16)
    namespace = Namespace()
    source = SMALL.format(
        forward="h = self.layer(x)\n        return h.exp() if x[0, 0] > 9 else h",
        before="",
        call="net(x)",
        after="if step == 18: x[0, 0] = 10",
    )
    run(namespace, source)
    graph = read_graph([namespace.variables["loss"]], names={})
    calls = [Provenance(namespace.recordings.kept).call(node) for node in graph.nodes]
    inside = [c for c in calls if c is not None and c.name not in ("square", "mean")]
    assert [(c.kind, c.name, c.module) for c in inside] == [("module", "Net", "net")] * 3
    assert all(c.place == ("<cell 1>", 13) for c in inside)
    count = len(recording(namespace).repeats)
    run(namespace, "for step in range(8): loss = net(x).square().mean()")
    assert like(namespace) == 0 and not recording(namespace).repeats
    assert count == 20 - repeats.WHOLE_CALLS - 1  # the 16th is looked into


def test_of_a_node_of_another_kind_nothing_is_told() -> None:
    namespace = Namespace()
    source = SMALL.format(
        forward="h = self.layer(x)\n        return h.exp() if x[0, 0] > 9 else h.sin()",
        before="",
        call="net(x)",
        after="if step == 18: x[0, 0] = 10",
    )
    run(namespace, source)
    graph = read_graph([namespace.variables["loss"]], names={})
    found = {n.name: Provenance(namespace.recordings.kept).call(n) for n in graph.nodes}
    assert found["ExpBackward0"] is None
    assert found["AddmmBackward0"] is not None and found["AddmmBackward0"].is_like


def test_a_call_with_other_shapes_or_modes_is_looked_into(monkeypatch) -> None:
    monkeypatch.setattr(repeats, "EVERY", 16)
    source = "net(x[:4]); net.eval(); net(x)\nwith torch.no_grad(): net(x)"
    namespace = Namespace()
    run(namespace, SMALL.format(forward="return self.layer(x)", before="", call="net(x)", after=""))
    before = len(recording(namespace).repeats)
    namespace = Namespace()
    cell = SMALL.format(forward="return self.layer(x)", before="", call="net(x)", after="")
    run(namespace, cell + source)
    assert len(recording(namespace).repeats) == before == 11


def test_the_newest_calls_are_remembered(monkeypatch) -> None:
    monkeypatch.setattr(light_recording, "MAX_REPEATS", 5)
    namespace = Namespace()
    run(namespace, SMALL.format(forward="return self.layer(x)", before="", call="net(x)", after=""))
    assert len(recording(namespace).repeats) == 5 and like(namespace) > 0


def test_an_error_inside_is_raised_once_and_recording_goes_on() -> None:
    namespace = Namespace()
    source = SMALL.format(
        forward="seen.append(1)\n        return self.layer(x if len(seen) < 15 else x[:, :5])",
        before="seen = []",
        call="net(x)",
        after="",
    )
    error, _ = namespace.run(source, "<cell>", Output(lambda told: None), Control())
    assert isinstance(error, RuntimeError) and error.__context__ is None
    assert len(namespace.variables["seen"]) == 15
    assert torch._C._len_torch_function_stack() == 0
    assert recording(namespace).repeats[-1].end < 2**62
    run(namespace, "z = x.requires_grad_().exp()")
    assert recording(namespace).calls[-1].name == "exp"


def test_a_module_of_the_users_that_raises_inside_is_not_run_again() -> None:
    namespace = Namespace()
    begin = (
        "seen = []\nclass Part(nn.Module):\n    def forward(self, x):\n"
        "        seen.append(1)\n        if len(seen) == 15: raise ValueError('15')\n"
        "        return x * 2\npart = Part()"
    )
    source = SMALL.format(
        forward="return self.layer(part(x))", before=begin, call="net(x)", after=""
    )
    error, _ = namespace.run(source, "<cell>", Output(lambda told: None), Control())
    assert isinstance(error, ValueError) and len(namespace.variables["seen"]) == 15
    assert recording(namespace).repeats and torch._C._len_torch_function_stack() == 0


def test_nothing_is_guessed_of_what_runs_in_the_middle_of_a_call() -> None:
    """Code that is held may run anything."""
    namespace = Namespace()
    namespace.variables["hold"] = lambda: namespace.recordings.running.break_off()  # pyright: ignore
    source = SMALL.format(
        forward="h = self.layer(x)\n        hold()\n        return h.sin()",
        before="",
        call="net(x)",
        after="",
    )
    run(namespace, source)
    graph = read_graph([namespace.variables["loss"]], names={})
    found = {n.name: Provenance(namespace.recordings.kept).call(n) for n in graph.nodes}
    sin, linear = found["SinBackward0"], found["AddmmBackward0"]
    assert sin is not None and (sin.kind, sin.name) == ("module", "Net")
    assert linear is not None and (linear.kind, linear.name, linear.is_like) == (
        "function", "linear", True
    )  # fmt: skip


@pytest.mark.parametrize("steps", [38, 39])
def test_the_node_says_that_its_call_was_not_looked_into(steps: int) -> None:
    said: list = []
    session = Session(said.append)
    source = SMALL.format(
        forward="h = self.layer(x)\n        return h.exp() if x[0, 0] > 9 else h",
        before="optimizer = torch.optim.SGD(net.parameters(), lr=0.1)",
        call="net(x)",
        after=f"""
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    if step == {steps}: x[0, 0] = 10""",
    ).replace("range(20)", "range(40)")
    session.handle(RunCellCommand(source=source))
    session.handle(StartBackwardCommand(root="loss"))
    graph = next(s for s in said if isinstance(s, GraphSnapshot))
    notes = []
    for node in graph.nodes:
        session.handle(NodeDetailCommand(node=node.id))
        notes.append((node.name, said[-1].note))
    found = dict(notes)
    assert found["AddmmBackward0"] == (NOT_LOOKED_INTO if steps == 38 else LIKE_BEFORE)
    assert not found["MeanBackward0"] and not found["AccumulateGrad"]
    assert {node.module for node in graph.nodes if node.name == "AddmmBackward0"} == {
        "net" if steps == 38 else "net.layer"
    }
