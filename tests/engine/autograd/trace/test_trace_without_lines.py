"""A trace of a recording without lines, as a batch has: moves by places, values and marks."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from engine.autograd.trace.roots import root_over
from engine.autograd.trace.texts import MAX_TEXT
from engine.autograd.trace.trace import MAX_SOURCE, Trace
from engine.protocol import TraceCall, TraceStepSnapshot, join_trace
from engine.recording.argument_values import Keeper
from engine.recording.recorder import Recorder
from engine.recording.statement_counts import StatementCounts
from engine.system.errors import LabError


def traced(run: Callable[[], Any], *, max_bytes: int = 1 << 20, **options: Any) -> Trace:
    keeper = Keeper(max_bytes)
    with Recorder(files=lambda file: file == __file__, keeper=keeper) as recorder:
        run()
    return Trace(recorder.recording, **options)


def calls_of(trace: Trace) -> tuple[TraceCall, ...]:
    return join_trace(trace.snapshots()).calls


def number_of(trace: Trace, name: str) -> int:
    return next(i for i, call in enumerate(trace.recording.calls) if call.name == name)


def at(trace: Trace, name: str) -> TraceStepSnapshot:
    trace.go("to", number_of(trace, name))
    return trace.step_snapshot()


def positions(trace: Trace, move: Any) -> Iterator[int]:
    """The positions to which a move leads, until it leads no further."""
    before = None
    while before != trace.position:
        before = trace.position
        trace.go(move)
        if trace.position != before:
            yield trace.position


def three_lines() -> None:
    x = torch.arange(2.0)
    y = x.exp() + x.sin()
    y.sum()


def test_places_are_stepped_where_there_are_no_lines() -> None:
    """Each position is that of the first call of a place."""
    trace = traced(three_lines)
    functions = {c.name: c.index for c in trace.recording.calls if c.kind == "function"}
    last = len(trace.recording.calls) - 1
    firsts = [functions[name] for name in ("arange", "exp", "sum")]
    assert list(positions(trace, "line")) == [*firsts, last]
    assert list(positions(trace, "back_line")) == [firsts[1], firsts[0], -1]
    trace.go("to", functions["add"])
    trace.go("back_line")
    assert trace.position == firsts[0]
    trace.go("to", functions["add"])
    trace.go("line")
    assert trace.position == firsts[2]


def test_no_move_leads_out_of_the_trace() -> None:
    trace = traced(three_lines)
    calls = trace.recording.calls
    last = len(calls) - 1
    outermost = [call.index for call in calls if call.parent == -1]
    assert list(positions(trace, "step")) == list(range(last + 1))
    assert list(positions(trace, "back")) == [*range(last - 1, -1, -1), -1]
    assert list(positions(trace, "over")) == [*outermost, last]
    for start in (-1, outermost[1]):  # nothing is around: out leads to the end
        trace.go("to", start)
        trace.go("out")
        assert trace.position == last
    trace.go("to", outermost[1] + 1)
    trace.go("out")
    assert trace.position == outermost[2]
    for target in (-2, last + 1):
        with pytest.raises(LabError, match=f"no call {target} ") as refusal:
            trace.go("to", target)
        assert refusal.value.hint == f"The trace has {last + 1} calls."
        assert trace.position == outermost[2]
    trace.go("to", last)
    assert trace.position == last


def test_a_trace_without_calls_stays_at_its_start() -> None:
    trace = traced(lambda: None)
    for move in ("step", "over", "out", "line", "back_line", "back", "end", "start"):
        trace.go(move)
        assert trace.position == -1 and trace.step_snapshot() == TraceStepSnapshot(position=-1)


def test_arguments_have_the_names_of_their_parameters_or_are_counted() -> None:
    net = nn.Flatten()
    a, b = torch.ones(2, 3), torch.zeros(2, 3)

    def run() -> None:
        F.softmax(a, 1)  # a Python function: it has parameters
        torch.cat([a, b], 1)  # written in C++: they have no names
        torch.sum(a, dim=0)
        net(a)

    trace = traced(run)

    def told(name: str) -> tuple[list[str], dict[str, str]]:
        step = at(trace, name)
        return [value.label for value in step.inputs], dict(step.arguments)

    labels, others = told("softmax")
    assert labels == ["input"] and others["dim"] == "1"
    assert told("cat") == (["input 1[0]", "input 1[1]"], {"input 2": "1"})
    assert told("aten::cat") == (["tensors[0]", "tensors[1]"], {"dim": "1"})
    assert told("sum") == (["input"], {"dim": "0"})
    assert told("Flatten") == (["input"], {})


def test_a_result_is_told_in_short() -> None:
    def run() -> None:
        x = torch.ones(8, requires_grad=True)
        torch.split(x.detach(), 4)
        torch.chunk(x.detach(), 3)
        torch.tensor_split(x.detach(), 5)
        loss = x.sum()
        loss.item()
        loss.backward()

    calls = {call.name: call.result for call in calls_of(traced(run))}
    assert calls["ones"] == "(8,) float32"
    assert calls["split"] == "(4,) float32, (4,) float32"
    assert calls["chunk"] == "(3,) float32, (3,) float32, (2,) float32"
    assert calls["tensor_split"] == "(2,) float32, (2,) float32, (2,) float32, 2 more"
    assert calls["item"] == "8.0"
    assert calls["backward"] == ""


@pytest.mark.parametrize(("line", "told"), [
    ("a, b, c = 1, 2, 3", "a = 1, b = 2, c = 3"),
    ("a, b, c, d, e = 1, 2, 3, 4, 5", "a = 1, b = 2, c = 3, 2 more"),
    ("x = torch.ones(2, 3)", "x (2, 3) float32"),
    ("x = [torch.ones(2), 1]", "x (2,) float32"),
    ("x = {'w': torch.ones(2)}", "x (2,) float32"),
    ("x = [1, 2]", "x = [1, 2]"),
    (f"s = {'a' * (MAX_TEXT - 2)!r}", f"s = '{'a' * (MAX_TEXT - 2)}'"),
    (f"s = {'a' * (MAX_TEXT - 1)!r}", f"s = '{'a' * (MAX_TEXT - 2)}…"),
    ("return", "return None"),
    ("return 3", "return 3"),
    ("return torch.ones(2), torch.ones(3)", "return (2,) float32, (3,) float32"),
    ("yield", "yield None"),
])  # fmt: skip
def test_what_a_line_did_is_told_in_short(line: str, told: str) -> None:
    file = "<a line that is told>"
    source = f"def f():\n    {line}\n"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"torch": torch}
    exec(compile(source, file, "exec"), scope)
    counts = StatementCounts()
    with Recorder(counts=counts, files=lambda f: f == file) as recorder:
        result = scope["f"]()
        if line.startswith("yield"):
            next(result)
    trace = Trace(recorder.recording)
    assert [call.result for call in calls_of(trace) if call.kind == "line"] == [told]


def test_a_value_that_was_not_kept_is_noted_and_not_shown() -> None:
    trace = traced(lambda: torch.ones(4).exp().sum(), max_bytes=20)
    kept, missing = at(trace, "ones"), at(trace, "exp")
    assert len(kept.outputs) == 1 and kept.note == ""
    why = "not kept: the values of this recording take more than 0 MiB"
    assert [value.label for value in missing.inputs] == ["input"] and missing.outputs == ()
    assert missing.note == f"result: {why}"
    assert at(trace, "sum").note == f"input: {why}"
    assert trace.origin == -1


def test_a_tensor_has_its_own_name_beside_that_of_the_parameter() -> None:
    x = torch.ones(2)
    names = {id(x): "x"}
    trace = traced(lambda: (x * 2).exp(), name_of=lambda t: names.get(id(t), ""))
    assert at(trace, "mul").inputs[0].label == "input 1 = x"
    assert at(trace, "exp").inputs[0].label == "input"
    y = torch.ones(2)
    trace = traced(lambda: y.exp(), name_of=lambda t: "input")
    assert at(trace, "exp").inputs[0].label == "input"  # not twice


def test_the_first_node_of_a_call_is_the_one_that_the_window_knows() -> None:
    x = torch.ones(2, requires_grad=True)

    def run() -> None:
        (x * 2).exp()
        with torch.no_grad():
            x.sin()

    trace = traced(run, node_of=lambda sequence: sequence + 1_000)
    exp = at(trace, "exp")
    number = trace.recording.calls[exp.position].first
    assert (exp.first_node, exp.nodes, exp.grad_enabled) == (number + 1_000, 1, True)
    sin = at(trace, "sin")
    assert (sin.first_node, sin.nodes, sin.grad_enabled) == (-1, 0, False)


def test_notes_are_sentences_and_only_lines_need_the_sources_of_files() -> None:
    trace = traced(three_lines)
    trace.recording.notes += ["the first calls are missing.", "so are others"]
    whole = join_trace(trace.snapshots())
    assert whole.note == "The first calls are missing. So are others."
    assert whole.sources == {}


@pytest.mark.parametrize("length", [0, 50, MAX_SOURCE, MAX_SOURCE + 1])
def test_the_sources_of_other_files_come_with_the_lines_unless_they_are_long(length: int) -> None:
    head = "def f(x):\n    return x.exp()\n"
    named = {"<head>": head, "<other>": head + "#" * (length - len(head) - 1) + "\n" * bool(length)}
    scopes = []
    for file, text in named.items():
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        scope: dict[str, Any] = {}
        exec(compile(head, file, "exec"), scope)
        scopes.append(scope)
    if not length:
        linecache.cache["<other>"] = (0, None, [], "<other>")
    counts = StatementCounts()
    with Recorder(counts=counts, files=lambda f: f in named) as recorder:
        for scope in scopes:
            scope["f"](torch.ones(2))
    sources = join_trace(Trace(recorder.recording, file="<head>").snapshots()).sources
    assert sources == ({"<other>": named["<other>"]} if 0 < length <= MAX_SOURCE else {})


# -- NaN and inf


def of_ops(trace: Trace) -> dict[str, str]:
    marks = zip(trace.recording.calls, trace.marks, strict=True)
    return {call.name: mark for call, mark in marks if call.kind == "op" and mark}


@pytest.mark.parametrize(("make", "marks"), [
    (lambda: torch.tensor([0.0, 1.0]).log(), {"aten::log": "made_inf"}),
    (lambda: torch.tensor([0.0, -1.0]).log(), {"aten::log": "made_nan"}),  # NaN comes first
    (lambda: torch.tensor([0.0, 1j]).reciprocal(), {"aten::reciprocal": "made_nan"}),
    (lambda: torch.ones(2) * math.inf, {"aten::mul.Tensor": "passed_on"}),
    (lambda: F.hardtanh(torch.ones(2), -math.inf, 1.0), {}),
    (lambda: torch.ones(1).expand(0).exp(), {}),
    (lambda: torch.tensor([1, 0]).sign(), {}),
])  # fmt: skip
def test_marks_of_operators(make: Callable[[], Any], marks: dict[str, str]) -> None:
    assert of_ops(traced(make)) == marks


def test_memory_that_was_never_set_is_no_one_s_mistake() -> None:
    """torch fills it with NaN where algorithms must be deterministic."""
    torch.use_deterministic_algorithms(True)
    try:
        trace = traced(lambda: torch.empty(2) + 1)
    finally:
        torch.use_deterministic_algorithms(False)
    assert of_ops(trace) == {"aten::add.Tensor": "passed_on"} and trace.origin == -1


def test_what_is_around_the_call_that_made_nan_made_it_too() -> None:
    class Log(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.log()

    net = nn.Sequential(Log(), nn.ReLU(), Log())
    trace = traced(lambda: net(torch.tensor([-1.0])))
    marks = list(zip((call.name for call in trace.recording.calls), trace.marks, strict=True))
    assert [name for name, mark in marks if mark == "made_nan"] == [
        "Sequential", "Log", "log", "aten::log"
    ]  # fmt: skip
    assert trace.recording.calls[trace.origin].name == "aten::log"
    assert [mark for name, mark in marks if name == "Log"] == ["made_nan", "passed_on"]


# -- the graph of a call


def test_of_several_roots_the_scalar_then_the_oldest_then_the_shortest_name_is_taken() -> None:
    x = torch.ones(3, requires_grad=True)
    made: dict[str, torch.Tensor] = {"x": x, "data": torch.ones(())}

    def run() -> None:
        made["vector"] = x.exp()
        made["late"] = made["vector"].mean()
        made["later"] = made["vector"].sum()
        made["beside"] = x.sin().sum()

    trace = traced(run)
    exp, sin = (trace.recording.calls[number_of(trace, name)] for name in ("exp", "sin"))
    assert root_over(exp, made) == "late"
    assert root_over(sin, made) == "beside"
    del made["late"]
    assert root_over(exp, {**made, "l": made["later"]}) == "l"
    assert root_over(exp, {"vector": made["vector"]}) == "vector"
    assert root_over(exp, {"x": x, "beside": made["beside"]}) == ""
    with torch.no_grad():
        nothing = traced(lambda: x.exp())
    assert root_over(nothing.recording.calls[0], made) == ""


def test_a_root_is_found_above_a_node_that_two_ways_lead_to() -> None:
    x = torch.ones((), requires_grad=True)
    held: list[torch.Tensor] = []

    def run() -> None:
        y = x.exp()
        for _ in range(20):  # a million ways, if each were walked
            y = y * y
        held.append(y)

    trace = traced(run)
    exp = trace.recording.calls[number_of(trace, "exp")]
    assert root_over(exp, {"y": held[0]}) == "y"
