"""The trace: what ran is found in it as it ran, with the values of that moment."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from engine.handlers import trace as trace_handlers
from engine.handlers.backward import move_backward, start_backward
from engine.handlers.models import start_forward
from engine.handlers.trace import move_trace, start_trace
from engine.lab import Lab
from engine.models.forward import ForwardPass
from engine.models.live import LiveModel
from engine.project.document import Block, Model, Wire
from engine.project.files import load
from engine.protocol import (
    ExampleSnapshot,
    MoveBackwardCommand,
    MoveTraceCommand,
    OutputSnapshot,
    RunCellCommand,
    Snapshot,
    StartBackwardCommand,
    StartForwardCommand,
    StartTraceCommand,
    TraceSnapshot,
    TraceStepSnapshot,
    VariablesSnapshot,
    encode_snapshot,
    join_trace,
)
from engine.recording.recorder import Recorder
from engine.server.session import handler_of
from engine.system.errors import LabError

TEMPLATES = sorted((Path(__file__).parents[4] / "assets" / "templates").glob("*.tlab"))


def ask(answers: Iterable[Snapshot | None]) -> list[Any]:
    found = [snapshot for snapshot in answers if snapshot is not None]
    for snapshot in found:
        assert encode_snapshot(snapshot)
    return found


def traced(source: str, lab: Lab | None = None) -> tuple[Lab, TraceSnapshot]:
    lab = lab or Lab(emit=lambda snapshot: None)
    answers = ask(start_trace(lab, StartTraceCommand(source=source)))
    assert answers[-1] == TraceStepSnapshot(position=-1)
    return lab, join_trace([a for a in answers if isinstance(a, TraceSnapshot)])


def move(lab: Lab, where: Any, target: int = -1) -> TraceStepSnapshot:
    (snapshot,) = ask(move_trace(lab, MoveTraceCommand(move=where, target=target)))
    return snapshot


LOOP = """\
def f(x):
    for turn in range(3):
        if x.sum() > 3:
            x = x - 10
        else:
            x = x * 2
    return x
y = f(torch.tensor([1.0, 1.0], requires_grad=True))
"""


def test_loops_and_ifs_are_seen_as_they_ran() -> None:
    _, trace = traced(LOOP)
    functions = [call for call in trace.calls if call.kind == "function"]
    told = [(call.name, trace.lines[call.line].line) for call in functions]
    assert told == [
        ("tensor", 8),
        *[("sum", 3), ("gt", 3), ("__bool__", 3), ("mul", 6)],
        *[("sum", 3), ("gt", 3), ("__bool__", 3), ("sub", 4)],
        *[("sum", 3), ("gt", 3), ("__bool__", 3), ("mul", 6)],
    ]
    assert trace.lines[functions[8].line].text == "x = x - 10"
    assert trace.source == LOOP and trace.file == "<cell 1>" and trace.error is None


def test_every_value_is_that_of_its_moment() -> None:
    lab, trace = traced("x = torch.arange(4.)\ny = x[1:3]\ny *= 10\nx += 1\n")
    seen = {}
    for _ in trace.calls:
        step = move(lab, "step")
        call = trace.calls[step.position]
        if call.kind == "op":
            seen[call.name] = step
    pairs = {
        "aten::slice.Tensor": ([0, 1, 2, 3], [1, 2]),
        "aten::mul_.Tensor": ([1, 2], [10, 20]),
        "aten::add_.Tensor": ([0, 10, 20, 3], [1, 11, 21, 4]),
    }
    for name, (before, after) in pairs.items():
        step = seen[name]
        for value, expected in ((step.inputs[0], before), (step.outputs[0], after)):
            assert value.picture is not None
            assert np.frombuffer(value.picture.data, "<f4").tolist() == expected
    written = seen["aten::mul_.Tensor"]
    assert written.inputs[0].label == "self = y" and written.outputs[0].label == "result = y"
    assert ("other", "10") in written.arguments
    assert written.source is not None and written.source.text == "y *= 10"
    names = [c.name for c in trace.calls if c.writes]
    assert names == ["mul_", "aten::mul_.Tensor", "add_", "aten::add_.Tensor"]
    assert move(lab, "step").position == len(trace.calls) - 1


NET = """\
net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 1)))
y = net(torch.ones(1, 2))
z = y.sum()
"""


def test_moving_over_out_and_into_modules() -> None:
    lab, trace = traced(NET)
    calls = trace.calls
    root = next(i for i, call in enumerate(calls) if call.name == "Sequential")
    assert calls[root].module == "net" and trace.modules["net.1"] == "Sequential"
    assert move(lab, "to", root).position == root
    assert move(lab, "step").position == root + 1
    first = calls[root + 1]
    assert (first.kind, first.name, first.module) == ("module", "Linear", "net.0")
    after = move(lab, "over")
    assert calls[after.position].module == "net.1" and calls[after.position].parent == root
    inside = move(lab, "step")
    assert calls[inside.position].module == "net.1.0"
    out = move(lab, "out")
    assert trace.lines[calls[out.position].line].text == "z = y.sum()"
    assert calls[out.position].kind == "line" and calls[out.position].parent == -1
    assert move(lab, "back").position == out.position - 1
    assert move(lab, "start").position == -1
    assert move(lab, "line").source == trace.lines[0]
    assert move(lab, "line").source == trace.lines[1]
    assert move(lab, "end").position == len(calls) - 1
    with pytest.raises(LabError, match="no call 9999"):
        move(lab, "to", 9999)
    for i, call in enumerate(calls):
        assert call.parent < i


def test_an_exception_ends_the_trace_where_it_came() -> None:
    lab, trace = traced("x = torch.ones(2)\ny = x * 2\nz = y @ torch.ones(3)\nw = 1\n")
    assert trace.error is not None and trace.error.line == 3
    failed = [call for call in trace.calls if call.mark == "error"]
    assert failed[-1].name == "aten::dot" and trace.lines[failed[-1].line].line == 3
    assert [call.kind for call in failed] == ["line", "function", "op"]
    step = move(lab, "to", trace.calls.index(failed[1]))
    assert "inconsistent" in step.error and len(step.inputs) == 2
    assert lab.console.namespace is not None and "w" not in lab.console.namespace.variables
    assert move(lab, "start").position == -1
    assert move(lab, "step").outputs[0].label == "x"


def test_an_interrupt_ends_the_trace_too() -> None:
    _, trace = traced("x = torch.ones(2)\ny = x * 2\nraise KeyboardInterrupt\n")
    assert trace.error is not None and trace.error.type == "KeyboardInterrupt"
    assert [call.name for call in trace.calls if call.kind == "function"] == ["ones", "mul"]


def test_the_call_that_made_nan_is_told_from_those_that_passed_it_on() -> None:
    lab, trace = traced(
        "x = torch.tensor([-1.0, 4.0])\nmask = torch.full((2,), float('-inf'))\n"
        "z = (x + mask) * 0.0\nu = x.sqrt()\nw = u + 1\nv = (x - x) / 0 \n"
    )
    marks = {call.name: call.mark for call in trace.calls if call.kind == "op" and call.mark != ""}
    assert marks == {
        "aten::full": "passed_on",  # minus infinity was asked for
        "aten::add.Tensor": "passed_on",
        "aten::mul.Tensor": "passed_on",
        "aten::sqrt": "made_nan",
        "aten::div.Tensor": "made_nan",
    }
    assert trace.calls[trace.origin].name == "aten::sqrt"
    assert trace.calls[trace.calls[trace.origin].parent].mark == "made_nan"
    assert move(lab, "origin").position == trace.origin
    lab, trace = traced("a = torch.ones(2) * 1e38 * 1e38")
    assert trace.calls[trace.origin].mark == "made_inf"
    lab, _ = traced("a = torch.ones(2)")
    with pytest.raises(LabError, match="No call made"):
        move(lab, "origin")


def test_a_long_trace_comes_in_parts_and_says_what_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trace_handlers, "Recorder", partial(Recorder, max_calls=8_000))
    lab = Lab(emit=lambda snapshot: None)
    source = "x = torch.ones(2)\nfor i in range(5_000):\n    x = x + 1\n"
    answers = ask(start_trace(lab, StartTraceCommand(source=source)))
    parts = [a for a in answers if isinstance(a, TraceSnapshot)]
    assert len(parts) > 1 and [p.part for p in parts] == list(range(len(parts)))
    trace = join_trace(parts)
    assert len(trace.calls) == 8_000 and "first 8,000 calls" in trace.note
    assert (
        lab.console.namespace is not None
        and lab.console.namespace.variables["x"].tolist() == [5_001] * 2
    )


def test_what_the_code_prints_and_leaves_is_told() -> None:
    told: list[Snapshot] = []
    lab = Lab(emit=told.append)
    answers = ask(start_trace(lab, StartTraceCommand(source="print('hello')\nx = torch.ones(3)")))
    assert any(isinstance(s, OutputSnapshot) and "hello" in s.text for s in told)
    (variables,) = [a for a in answers if isinstance(a, VariablesSnapshot)]
    assert [v.name for v in variables.variables] == ["x"]
    assert lab.console.namespace is not None
    again = ask(start_trace(lab, StartTraceCommand(source="y = x * 2")))
    calls = join_trace([a for a in again if isinstance(a, TraceSnapshot)]).calls
    assert [call.name for call in calls if call.kind == "function"] == ["mul"]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_the_batch_of_every_template_can_be_traced(path: Path) -> None:
    lab, project = Lab(emit=lambda snapshot: None), load(path)
    list(start_forward(lab, StartForwardCommand(model=project.model, training=project.training)))
    forward = lab.models.require_forward()
    buffers = {n: b.clone() for n, b in forward.state.named_buffers()}
    rng = torch.get_rng_state()
    lab, trace = traced("", lab)
    outermost = [call for call in trace.calls if call.parent == -1]
    paths = [forward.path_of(b) for b in forward.order]
    assert [c.module for c in outermost] == [p for p in paths if p in {c.module for c in outermost}]
    blocks = {b.name for b in project.model.blocks if b.kind not in ("Input", "Output")}
    assert blocks <= {c.module for c in outermost}
    assert all(call.kind == "module" for call in outermost)
    assert all(call.line >= 0 for call in trace.calls if call.module in blocks - {"loss"})
    last = move(lab, "to", trace.calls.index(outermost[-1]))
    loss = forward.plain().item()
    assert last.outputs[0].summary.mean == loss
    assert forward.position == 0 and torch.equal(torch.get_rng_state(), rng)
    assert all(torch.equal(b, buffers[n]) for n, b in forward.state.named_buffers())


def test_the_names_of_parameters_are_on_the_arguments() -> None:
    lab = Lab(emit=lambda snapshot: None)
    blocks = (
        Block("i", "Input", "x", {"shape": (4,)}),
        Block("l", "nn.Linear", "linear1", {"in_features": 4, "out_features": 3}),
        Block("o", "Output", "output"),
    )
    wires = (Wire("i", "x", "l", "input"), Wire("l", "output", "o", "x"))
    live = LiveModel(Model(blocks=blocks, wires=wires), seed=0)
    loss = nn.functional.cross_entropy
    lab.models.forward = ForwardPass(live, torch.ones(2, 4), torch.tensor([0, 1]), loss, seed=0)
    _, trace = traced("", lab)
    linear = next(i for i, c in enumerate(trace.calls) if c.name == "linear")
    labels = [value.label for value in move(lab, "to", linear).inputs]
    assert [label.partition(" = ")[2] for label in labels] == [
        "x",
        "linear1.weight",
        "linear1.bias",
    ]


def test_without_anything_to_trace_the_way_is_told() -> None:
    lab = Lab(emit=lambda snapshot: None)
    with pytest.raises(LabError, match="no batch"):
        ask(start_trace(lab, StartTraceCommand()))
    with pytest.raises(LabError, match="Nothing has been traced"):
        move(lab, "step")


def test_an_old_trace_lets_go_of_its_values() -> None:
    lab, _ = traced("x = torch.ones(1000)\ny = x * 2")
    old = lab.trace.current.recording
    traced("z = 1", lab)
    assert all(call.result is None and call.args == () for call in old.calls)


TWO_INPUTS = """\
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a * 2, b * 3
    @staticmethod
    def backward(ctx, one, two):
        return one * 2, two * 3
x = torch.tensor([1.0, 2.0], requires_grad=True)
a, b = Twice.apply(x, x * 1)
loss = (a + b).sum()
"""


def stepped(source: str) -> Lab:
    """A console whose pass from `loss` has run to its end."""
    lab = Lab(emit=lambda snapshot: None)
    ask(handler_of(RunCellCommand)(lab, RunCellCommand(source=source)))
    ask(start_backward(lab, StartBackwardCommand(root="loss")))
    ask(move_backward(lab, MoveBackwardCommand(move="end")))
    return lab


def node_named(lab: Lab, name: str) -> int:
    nodes = lab.backward.require().stepper.graph.nodes
    return next(node.id for node in nodes if node.name.startswith(name))


def test_a_rule_is_traced_with_the_names_of_its_gradients() -> None:
    lab = stepped("x = torch.tensor([1.0, 2.0], requires_grad=True)\nloss = (x * x).exp().sum()\n")
    node = node_named(lab, "Exp")
    before = lab.console.namespace.variables["x"].grad.clone()
    answers = ask(start_trace(lab, StartTraceCommand(node=node)))
    trace = join_trace([a for a in answers if isinstance(a, TraceSnapshot)])
    assert [type(a) for a in answers[-2:]] == [TraceSnapshot, TraceStepSnapshot]
    assert not any(isinstance(a, VariablesSnapshot) for a in answers)
    assert trace.error is None and trace.rule == "ExpBackward0"
    assert answers[-1].position == 0  # it stands at the first call
    labels = [
        value.label.rpartition(" = ")[2]
        for number in range(len(trace.calls))
        for value in move(lab, "to", number).inputs
    ]
    assert "g" in labels
    assert torch.equal(lab.console.namespace.variables["x"].grad, before)


def test_of_several_incoming_gradients_each_has_its_number() -> None:
    lab = stepped(TWO_INPUTS)
    answers = ask(start_trace(lab, StartTraceCommand(node=node_named(lab, "Twice"))))
    trace = join_trace([a for a in answers if isinstance(a, TraceSnapshot)])
    muls = [i for i, c in enumerate(trace.calls) if c.kind == "function" and c.name == "mul"]
    labels = [move(lab, "to", number).inputs[0].label.partition(" = ")[2] for number in muls]
    assert labels == ["g0", "g1"]


def test_a_rule_that_fails_is_traced_up_to_there() -> None:
    lab = stepped(TWO_INPUTS)
    source = "def backward(ctx, one, two):\n    one + 1\n    return 1 / 0\n"
    ask(
        handler_of(RunCellCommand)(lab, RunCellCommand(source=source + "Twice.backward = backward"))
    )
    answers = ask(start_trace(lab, StartTraceCommand(node=node_named(lab, "Twice"))))
    trace = join_trace([a for a in answers if isinstance(a, TraceSnapshot)])
    assert trace.error is not None and trace.error.type == "ZeroDivisionError"
    assert "add" in [call.name for call in trace.calls]


def test_what_has_no_rule_to_run_is_refused() -> None:
    lab = stepped(TWO_INPUTS)
    with pytest.raises(LabError, match="Nothing runs inside a leaf") as refused:
        ask(start_trace(lab, StartTraceCommand(node=node_named(lab, "Accumulate"))))
    assert refused.value.hint == "Choose a node that computes."
    ask(start_backward(lab, StartBackwardCommand(root="loss", real_engine=True)))
    node = node_named(lab, "Sum")
    ask(move_backward(lab, MoveBackwardCommand(move="to", target=node)))
    with pytest.raises(LabError, match="cannot run a node a second time"):
        ask(start_trace(lab, StartTraceCommand(node=node)))
    ask(move_backward(lab, MoveBackwardCommand(move="end")))


def test_a_node_of_the_traced_batch_is_that_of_the_pass_that_is_shown() -> None:
    def run(ranges: dict[str, tuple[int, int]], order: tuple[str, ...] = ("a", "b")) -> Any:
        return SimpleNamespace(order=order, sequence_ranges=ranges)

    traced_run = run({"a": (10, 12), "b": (12, 15)})
    same = trace_handlers._same_node
    shown = run({"a": (40, 42), "b": (42, 45)})
    assert [same(n, traced_run, shown) for n in (9, 10, 11, 12, 14, 15)] == [-1, 40, 41, 42, 44, -1]
    assert same(10, traced_run, None) == -1
    assert same(10, traced_run, run({"a": (40, 42)}, ("a",))) == -1
    assert same(12, traced_run, run({"a": (40, 42)})) == -1  # it has not run that far
    assert same(12, traced_run, run({"a": (40, 42), "b": (42, 44)})) == -1


def test_code_of_an_example_is_traced_in_a_namespace_of_its_own() -> None:
    lab = Lab(emit=lambda snapshot: None)
    ask(handler_of(RunCellCommand)(lab, RunCellCommand(source="x = 1")))
    command = StartTraceCommand(source="y = torch.ones(2)\n1 / 0", example=True)
    (told, *_) = ask(start_trace(lab, command))
    assert isinstance(told, ExampleSnapshot) and [v.name for v in told.variables] == ["y"]
    assert told.error is not None and told.error.type == "ZeroDivisionError"
    assert "y" not in lab.console.namespace.variables
    (told, *_) = ask(start_trace(lab, StartTraceCommand(source="z = 2")))
    assert isinstance(told, VariablesSnapshot) and [v.name for v in told.variables] == ["x", "z"]


def test_the_code_of_a_traced_example_is_not_taken_for_a_cell() -> None:
    lab = Lab(emit=lambda snapshot: None)
    cell = "x = torch.ones(2, requires_grad=True)\ny = x.exp()"
    ask(handler_of(RunCellCommand)(lab, RunCellCommand(source=cell)))
    ask(start_trace(lab, StartTraceCommand(source="a = 1\nb = torch.ones(a)", example=True)))
    (graph, _) = ask(start_backward(lab, StartBackwardCommand(root="y.sum()")))
    assert graph.sources["<cell 1>"] == cell
    assert {node.source.text for node in graph.nodes if node.op == "exp"} == {"y = x.exp()"}
