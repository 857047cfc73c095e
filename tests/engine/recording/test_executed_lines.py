"""Lines of the user's code as stops: which ran, what each read and bound, against plain Python."""

from __future__ import annotations

import linecache
import sys
from typing import Any

import numpy as np
import pytest
import torch

from engine.autograd.trace import trace as engine_trace
from engine.handlers.backward import move_backward, start_backward
from engine.handlers.backward_edits import edit_gradient
from engine.handlers.trace import find_root, move_trace, start_trace
from engine.lab import Lab
from engine.protocol import (
    EditGradientCommand,
    MoveBackwardCommand,
    MoveTraceCommand,
    StartBackwardCommand,
    StartTraceCommand,
    TraceRootCommand,
    TraceRootSnapshot,
    TraceSnapshot,
    TraceStepSnapshot,
    Value,
    encode_snapshot,
    join_trace,
)
from engine.recording import executed_lines as lines
from engine.recording import statement_counts as turns
from engine.system.errors import LabError

pytestmark = pytest.mark.skipif(sys.gettrace() is not None, reason="a debugger listens to lines")

GELU = """\
import math

class Gelu(torch.autograd.Function):
    @staticmethod
    def slope(x):
        density = torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        return below(x) + x * density

    @staticmethod
    def forward(ctx, x, times):
        ctx.save_for_backward(x, x * 2)
        ctx.times = times
        y = x
        for turn in range(times):
            y = y * below(x)
        if times > 1:
            note = "more than once"
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        if not ctx.needs_input_grad[0]:
            return None, None
        x, _ = ctx.saved_tensors
        return grad * Gelu.slope(x), None

def below(x):
    return 0.5 * (1 + torch.erf(x / math.sqrt(2)))

x = torch.linspace(-1, 1, 4, requires_grad=True)
y = Gelu.apply(x, 1)
y.sum().backward()
"""


def traced(source: str, lab: Lab | None = None, **command: Any) -> tuple[Lab, TraceSnapshot]:
    lab = lab or Lab(emit=[].append)
    answers = list(start_trace(lab, StartTraceCommand(source=source, **command)))
    for answer in answers:
        assert answer is None or encode_snapshot(answer)
    return lab, join_trace([a for a in answers if isinstance(a, TraceSnapshot)])


def move(lab: Lab, where: Any, target: int = -1) -> TraceStepSnapshot:
    (snapshot,) = move_trace(lab, MoveTraceCommand(move=where, target=target))
    assert isinstance(snapshot, TraceStepSnapshot) and encode_snapshot(snapshot)
    return snapshot


def stops(trace: TraceSnapshot) -> list[int]:
    """The lines of the traced code that are stops, in order."""
    return [
        trace.lines[call.line].line
        for call in trace.calls
        if call.kind == "line" and trace.lines[call.line].file == trace.file
    ]


def at_line(lab: Lab, trace: TraceSnapshot, line: int, turn: int = 1) -> TraceStepSnapshot:
    number = next(
        i
        for i, call in enumerate(trace.calls)
        if call.kind == "line" and trace.lines[call.line].line == line and call.turn == turn
    )
    return move(lab, "to", number)


def numbers(value: Value) -> list[float]:
    assert value.picture is not None
    return np.frombuffer(value.picture.data, "<f4").tolist()


def as_python_ran(source: str) -> list[int]:
    """The line events of plain Python, without the one at which a class's body begins."""
    name, ran = "<oracle>", []
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)

    def listen(frame, event, arg):
        if frame.f_code.co_filename != name:
            return None
        begins_class = frame.f_code.co_name[0].isupper()
        if event == "line" and not (begins_class and frame.f_lineno == frame.f_code.co_firstlineno):
            ran.append(frame.f_lineno)
        return listen

    code = compile(source, name, "exec")
    sys.settrace(listen)
    try:
        exec(code, {"torch": torch})
    except Exception:
        pass
    finally:
        sys.settrace(None)
    return ran


CODE = {
    "a loop": "x = 0\nfor i in range(3):\n    if i > 1:\n        x = x + i\n    x = x + 1\n",
    "while and else": (
        "k = 3\nwhile k:\n    k -= 1\n    if k == 1:\n        continue\nelse:\n    z = 1\n"
    ),
    "functions": (
        "def f(x):\n    y = x + 1\n    return g(y)\ndef g(y):\n    return y * 2\nz = f(1)\n"
    ),
    "recursion": "def f(n):\n    if n == 0:\n        return 1\n    return n * f(n - 1)\nz = f(3)\n",
    "nested functions": (
        "def outer():\n    total = 0\n    def inner(k):\n        nonlocal total\n"
        "        total += k\n    for k in (1, 2):\n        inner(k)\n    return total\n"
        "z = outer()\n"
    ),
    "a generator": (
        "def g(n):\n    for i in range(n):\n        got = yield i\n    return 5\n"
        "a = g(3)\nb = next(a)\nc = list(a)\n"
    ),
    "caught": (
        "def f():\n    raise ValueError('no')\ntry:\n    f()\nexcept KeyError:\n    z = 0\n"
        "except ValueError as error:\n    z = str(error)\nfinally:\n    w = 2\nend = 1\n"
    ),
    "not caught": "def f():\n    try:\n        1 / 0\n    finally:\n        w = 2\nf()\nend = 1\n",
    "with": (
        "from contextlib import suppress\nwith suppress(KeyError):\n    x = {}['no']\ny = 1\n"
        "with torch.no_grad() as g:\n    z = torch.ones(2)\n"
    ),
    "match": "for v in (1, [2, 3], 'a'):\n    match v:\n        case [p, q]:\n            s = p\n"
    "        case 1:\n            s = 0\n        case _:\n            s = v\n",
    "a class": "class A:\n    k = 3\n    def f(self):\n        return self.k\nz = A().f()\n",
    "lambda": "f = lambda x: x + 1\nz = f(1)\nw = sorted([2, 1],\n           key=lambda v: -v)\n",
    "torch": "x = torch.ones(2)\nfor i in range(2):\n    x = x * 2\n    k = i\nx.sum()\n",
    "inside an operator": (
        "def seen(cls, func, types, args=(), kwargs=None):\n    name = func.name()\n"
        "    return torch.Tensor.__torch_dispatch__(func, types, args, kwargs)\n"
        "Seen = type('Seen', (torch.Tensor,), {'__torch_dispatch__': classmethod(seen)})\n"
        "x = torch.ones(2).as_subclass(Seen)\ny = x + 1\nend = 1\n"
    ),
}


@pytest.mark.parametrize("source", CODE.values(), ids=CODE)
def test_every_line_that_ran_is_a_stop_in_its_order(source: str) -> None:
    _, trace = traced(source)
    expected = as_python_ran(source)
    if "sorted" in source:  # of a statement over several lines Python tells each line
        expected = [1, 2, 1, 3, 3, 3]
    assert stops(trace) == expected


def test_what_a_line_bound_and_read() -> None:
    lab, trace = traced(
        "k = 3\nx = torch.arange(3.)\nouts = []\nfor i in range(2):\n    outs.append(x * i)\n"
        "x += k\nif k > 2 and outs:\n    a, (b, c) = 1, (2.5, 'text')\ndel c\nt = x[0].item()\n"
        "big = 10 ** 400\nbox = {'w': x, 'n': 1}\nbox['n'] = 2\n"
    )

    def told(line: int, turn: int = 1) -> tuple[dict[str, str], dict[str, str]]:
        step = at_line(lab, trace, line, turn)
        return dict(step.results), dict(step.arguments)

    assert told(1) == ({"k": "3"}, {})
    step = at_line(lab, trace, 2)
    assert [(v.label, numbers(v)) for v in step.outputs] == [("x", [0, 1, 2])]
    assert told(4, 1)[0] == {"i": "0", "goes on at": "line 5"}
    assert told(4, 3)[0] == {"goes on at": "line 6"}
    step = at_line(lab, trace, 5, 2)
    assert [v.label for v in step.outputs] == ["outs[0]", "outs[1]"]
    assert numbers(step.outputs[1]) == [0, 1, 2]
    assert {v.label: numbers(v) for v in step.inputs} == {"outs[0]": [0, 0, 0], "x": [0, 1, 2]}
    assert dict(step.arguments) == {"i": "1", "outs": "[(3,) float32]"}
    assert dict(step.results) == {"outs": "[(3,) float32, (3,) float32]"}
    step = at_line(lab, trace, 6)
    assert numbers(step.inputs[0]) == [0, 1, 2] and numbers(step.outputs[0]) == [3, 4, 5]
    assert told(7)[0] == {"goes on at": "line 8"}
    assert told(8)[0] == {"a": "1", "b": "2.5", "c": "'text'"}
    assert told(9) == ({"c": "deleted"}, {"c": "'text'"})
    assert told(10)[0] == {"t": "3.0"}
    assert told(11)[0] == {"big": "an int of 1,329 bits"}
    step = at_line(lab, trace, 13)
    assert [v.label for v in step.outputs] == ["box['w'] = x"]
    assert dict(step.results) == {"box": "{'w': (3,) float32, 'n': 2}"}
    assert trace.calls[at_line(lab, trace, 8).position].result == "a = 1, b = 2.5, c = 'text'"


def test_a_custom_function_forward_and_backward() -> None:
    lab, trace = traced(GELU)
    assert trace.error is None
    forward = [11, 12, 13, 14, 15, 29, 14, 16, 18]
    backward = [23, 25, 26, 6, 7, 29]
    assert stops(trace)[-len(forward) - len(backward) - 1 :] == [*forward, 33, *backward]
    x = torch.linspace(-1, 1, 4)
    saves = at_line(lab, trace, 11)
    assert [v.label for v in saves.outputs] == ["ctx.saved_tensors[0] = x", "ctx.saved_tensors[1]"]
    assert numbers(saves.outputs[1]) == (x * 2).tolist()
    assert dict(at_line(lab, trace, 12).results) == {"ctx.times": "1"}
    assert dict(at_line(lab, trace, 16).results) == {"goes on at": "line 18"}
    assert at_line(lab, trace, 6).arguments == ()  # what a module holds is no data of the line
    branch = at_line(lab, trace, 23)
    assert dict(branch.arguments) == {"ctx.needs_input_grad": "(True, False)"}
    unpacks = at_line(lab, trace, 25)
    assert {v.label for v in unpacks.outputs} == {"x", "_"} and unpacks.inputs == ()
    gives = at_line(lab, trace, 26)
    assert dict(gives.results) == {"return": "((4,) float32, None)"}
    (gradient,) = (v for v in gives.outputs if v.label.startswith("return[0]"))
    plain = x.clone().requires_grad_()
    torch.nn.functional.gelu(plain).sum().backward()
    assert plain.grad is not None
    np.testing.assert_allclose(numbers(gradient), plain.grad.tolist(), rtol=1e-5)


def test_lines_are_stepped_forth_and_back_over_and_out() -> None:
    lab, trace = traced(GELU)
    there = []
    for _ in stops(trace):
        step = move(lab, "line")
        assert trace.calls[step.position].kind == "line"
        there.append(step)
    for expected in reversed(there):
        assert move(lab, "to", expected.position) == expected
        before = move(lab, "back_line")
    assert before.position == -1
    apply = at_line(lab, trace, 32).position
    after = move(lab, "over")
    assert trace.lines[trace.calls[after.position].line].line == 33
    move(lab, "to", apply)
    inside = move(lab, "step")  # the Function, then its first line
    assert trace.calls[inside.position].name == "Gelu"
    first = move(lab, "step")
    assert trace.lines[trace.calls[first.position].line].line == 11
    assert trace.calls[first.position].parent == inside.position
    out = move(lab, "out")
    assert out.position == after.position
    erf = next(i for i, call in enumerate(trace.calls) if call.name == "erf")
    move(lab, "to", erf)
    back = move(lab, "back_line")
    assert trace.lines[trace.calls[back.position].line].line == 29


def test_what_raises_is_marked_and_what_returns_is_told() -> None:
    lab, trace = traced(CODE["caught"])
    assert at_line(lab, trace, 2).error == at_line(lab, trace, 4).error == "ValueError: no"
    assert dict(at_line(lab, trace, 8).results) == {"z": "'no'", "error": "deleted"}
    assert not at_line(lab, trace, 11).error and trace.error is None
    lab, trace = traced(CODE["not caught"])
    assert trace.error is not None and trace.error.type == "ZeroDivisionError"
    assert dict(at_line(lab, trace, 5).results) == {"w": "2"}  # and nothing is returned
    lab, trace = traced(CODE["a generator"])
    assert dict(at_line(lab, trace, 3).results) == {"yield": "0"}
    assert dict(at_line(lab, trace, 4).results) == {"return": "5"}
    assert not at_line(lab, trace, 2, 4).error


def test_what_is_no_error_is_not_told_as_one_and_what_raises_returns_nothing() -> None:
    lab, trace = traced(
        "class Two:\n    left = 2\n    def __iter__(self):\n        return self\n"
        "    def __next__(self):\n        if not self.left:\n            raise StopIteration\n"
        "        self.left -= 1\n        return self.left\n"
        "for n in Two():\n    k = n\n"
        "def f():\n    return 1 / 0\ntry:\n    f()\nexcept ZeroDivisionError:\n    k = 5\n"
    )
    assert trace.error is None
    assert not at_line(lab, trace, 10, 3).error  # the loop is over
    assert at_line(lab, trace, 7).error.startswith("StopIteration")
    raised = at_line(lab, trace, 13)
    assert raised.error.startswith("ZeroDivisionError") and raised.results == ()


HOSTILE = """\
calls = []
class Sly:
    def __init__(self):
        self.own = torch.ones(2)
    @property
    def grown(self):
        calls.append("grown")
        return 1
    def __repr__(self):
        calls.append("repr")
        return "Sly"
    def __iter__(self):
        calls.append("iter")
        return iter(())
    def __len__(self):
        calls.append("len")
        return 0
    def __eq__(self, other):
        calls.append("eq")
        return True
    __hash__ = None
    def __getattr__(self, name):
        calls.append(name)
        return 0
class Items(list):
    def __iter__(self):
        calls.append("items")
        return iter(())
    def __len__(self):
        calls.append("length")
        return 7
s = Sly()
t = s
items = Items([s, 1])
items.append(2)
n = 0 if s is None else 1
s.other = 3
r = s.own
seen = list(calls)
"""


def test_looking_runs_no_code_of_the_users() -> None:
    lab, trace = traced(HOSTILE)
    assert trace.error is None and lab.console.namespace is not None
    assert lab.console.namespace.variables["seen"] == []
    calls = list(lab.console.namespace.variables["calls"])
    for _ in trace.calls:
        move(lab, "step")
    assert lab.console.namespace.variables["calls"] == calls
    places = {text: number for number, text in enumerate(HOSTILE.splitlines(), 1)}
    assert dict(at_line(lab, trace, places["s.other = 3"]).results) == {"s.other": "3"}
    (own,) = at_line(lab, trace, places["r = s.own"]).inputs
    assert own.label.startswith("s.own")
    grown = at_line(lab, trace, places["items.append(2)"])
    assert dict(grown.results) == {"items": "[Sly, 1, 2]"}


RANDOM = """\
torch.manual_seed(3)
x = torch.randn(4, requires_grad=True)
y = torch.zeros(4)
for i in range(3):
    h = torch.dropout(x, 0.5, True)
    y += h.detach()
    parts = [h * k for k in range(2)]
y[0] = 5
def f(v):
    w = v.exp()
    return w
loss = f(x).sum() + sum(p.sum() for p in parts)
loss.backward()
after = torch.rand(3)
"""


def test_results_versions_and_randomness_are_those_of_plain_python() -> None:
    lab, trace = traced(RANDOM)
    assert trace.error is None and lab.console.namespace is not None
    here = torch.get_rng_state()
    plain: dict[str, Any] = {"torch": torch}
    exec(RANDOM, plain)
    assert torch.equal(torch.get_rng_state(), here)
    for name in ("x", "y", "h", "loss", "after"):
        ours, theirs = lab.console.namespace.variables[name], plain[name]
        assert torch.equal(ours, theirs) and ours._version == theirs._version
    assert torch.equal(lab.console.namespace.variables["x"].grad, plain["x"].grad)


def test_a_loop_of_many_turns_is_recorded_where_torch_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (turns, lines, engine_trace):
        monkeypatch.setattr(module, "MAX_TURNS", 10)
    source = (
        "k = 0\nx = torch.ones(1)\nfor i in range(1000):\n    k += i\n    if i % 400 == 300:\n"
        "        x = x * 2\n    elif i == 500:\n        for j in range(20):\n"
        "            x = x + 1\ny = x - 1\n"
    )
    lab, trace = traced(source)
    assert len(trace.calls) < 150 and trace.note == lines.TURNS_NOTE
    assert lab.console.namespace is not None
    assert lab.console.namespace.variables["k"] == sum(range(1000))
    added = [c for c in trace.calls if c.kind == "line" and trace.lines[c.line].line == 9]
    assert [call.turn for call in added] == list(range(1, 21))  # torch runs in each of them
    functions = [c for c in trace.calls if c.name == "add" and c.kind == "function"]
    assert all(trace.calls[call.parent].kind == "line" for call in functions)
    late = at_line(lab, trace, 9, 20)
    assert late.outputs == () and "the first 10 times" in late.note
    assert numbers(at_line(lab, trace, 10).outputs[0]) == [(1 * 2 + 20) * 2 - 1]
    late_function = move(lab, "to", trace.calls.index(functions[-1]))
    assert late_function.outputs  # the functions keep their values


def test_deep_recursion_ends_as_it_does_in_plain_python() -> None:
    source = (
        "def f(n):\n    return f(n + 1)\ntry:\n    f(0)\nexcept RecursionError:\n    z = 1\n"
        "y = torch.ones(2) * 2\n"
    )
    lab, trace = traced(source + "k = 3\nw = y + k\n")
    assert trace.error is None and sys.gettrace() is None
    # Where the stack is full Python stops telling of lines, and goes on when torch has run.
    assert trace.note == lines.CUT_NOTE
    assert stops(trace)[:3] == [1, 3, 4] and stops(trace)[-3:] == [7, 8, 9]
    after = trace.calls[[c.kind for c in trace.calls].index("function") :]
    around = {trace.lines[trace.calls[c.parent].line].line for c in after if c.kind == "function"}
    assert around == {7, 9} and trace.calls[trace.calls.index(after[0]) - 1].parent == -1
    assert numbers(at_line(lab, trace, 9).outputs[0]) == [5, 5]
    source = (
        "def f(n):\n    return f(n + 1)\ndef g():\n    try:\n        return f(0)\n"
        "    except RecursionError:\n        return 1\nz = g() + torch.ones(2)\n"
    )
    _, trace = traced(source)
    ones = next(call for call in trace.calls if call.name == "ones")
    assert trace.lines[trace.calls[ones.parent].line].line == 8
    deep = "def f(n):\n    return 0 if n == 0 else f(n - 1)\nz = f(600)\n"
    _, trace = traced(deep)
    assert trace.error is None and stops(trace).count(2) == 601


SORTS = """\
import numpy as np
array = np.arange(3)
shared = torch.from_numpy(array)
number = np.float32(3)
mixed = {1: array, 'k': [shared, (shared, 2)]}
both = other = {1, 2}
far = range(10**30)
ragged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
sparse = torch.eye(2).to_sparse()
nowhere = torch.ones(2, device='meta')
wide = torch.ones(1).expand(10**6)
def square(x):
    y = x * x
    return y.sum()
slope = torch.func.grad(square)(torch.ones(3))
doubled = torch.vmap(lambda q: q * 2)(torch.ones(4, 2))
"""


def test_values_of_all_sorts_are_told() -> None:
    lab, trace = traced(SORTS)
    assert trace.error is None
    seen = [move(lab, "step") for _ in trace.calls]
    told = {name: text for step in seen for name, text in step.results}
    assert told["array"] == "array (3,) int64" and told["number"] == "float32(3.0)"
    assert told["mixed"] == "{1: array (3,) int64, 'k': [(3,) int64, ((3,) int64, 2)]}"
    assert told["both"] == told["other"] == "set of 2"
    labels = {value.label for step in seen for value in step.outputs}
    assert {"sparse", "wide", "slope", "doubled", "mixed['k'][0] = shared"} <= labels
    inside = next(s for s in seen if s.source is not None and s.source.text == "y = x * x")
    assert "inside a transform of torch.func" in inside.note


def test_a_tensor_expanded_without_end_is_not_copied_to_be_looked_at() -> None:
    _, trace = traced("wide = torch.tensor([float('nan')]).expand(2**50)\n")
    assert trace.error is None
    assert [c.mark for c in trace.calls if c.name.startswith("aten::expand")] == ["passed_on"]


def test_a_function_typed_before_has_its_own_source() -> None:
    lab, _ = traced("def f(x):\n    k = 2\n    return x * k\n")
    lab, trace = traced("y = f(torch.ones(2))\n", lab)
    inner = [c for c in trace.calls if c.kind == "line" and trace.lines[c.line].file != trace.file]
    assert [trace.lines[c.line].text for c in inner] == ["k = 2", "return x * k"]
    assert trace.sources == {"<cell 1>": "def f(x):\n    k = 2\n    return x * k\n"}
    assert [call.module for call in inner] == ["", ""]


def test_lines_around_modules_are_not_among_the_callers_of_a_node() -> None:
    lab, trace = traced(
        "class Net(nn.Module):\n    def forward(self, x):\n        h = x * 2\n"
        "        return h.exp()\nnet = Net()\ny = net(torch.ones(2, requires_grad=True))\n"
    )
    assert stops(trace) == [1, 2, 5, 6, 3, 4]
    assert lab.console.namespace is not None
    recording = lab.console.namespace.recordings.kept[0]
    chain = recording.chain_of(lab.console.namespace.variables["y"].grad_fn._sequence_nr())
    assert [call.kind for call in chain] == ["module", "function", "op"]
    line = next(c for c in trace.calls if c.kind == "line" and trace.lines[c.line].line == 4)
    assert (line.module, line.nodes) == ("net", 1)


def test_where_a_debugger_listens_there_are_no_lines_and_places_are_stepped(request) -> None:
    request.addfinalizer(lambda: sys.settrace(None))
    sys.settrace(lambda frame, event, arg: None)
    lab, trace = traced("x = torch.ones(2)\ny = x * 2 + 1\nz = y * 2\n")
    assert all(call.kind != "line" for call in trace.calls)
    for line in (1, 2, 3):
        step = move(lab, "line")
        assert step.source is not None and step.source.line == line
    before = move(lab, "back_line")
    assert before.source is not None and before.source.line == 2
    assert trace.calls[before.position].name == "mul"


# -- the graph of a call


def root_of(lab: Lab, position: int) -> TraceRootSnapshot:
    (found,) = find_root(lab, TraceRootCommand(position=position))
    assert isinstance(found, TraceRootSnapshot) and encode_snapshot(found)
    return found


def test_the_graph_of_a_call_is_that_of_the_number_computed_from_it() -> None:
    lab, trace = traced(
        "w = torch.ones(3, requires_grad=True)\nh = w.exp()\nother = (w * 3).sum()\n"
        "loss = h.square().sum()\nlater = loss * 2\nw.log()\nn = torch.ones(3) * 2\n"
    )

    def call(name: str) -> int:
        return next(i for i, c in enumerate(trace.calls) if c.name == name and c.kind == "function")

    assert root_of(lab, call("exp")).root == "loss"
    assert root_of(lab, call("mul")).root == "other"
    lost = root_of(lab, call("log"))
    assert lost.root == "" and lost.note.startswith("No variable")
    plain = next(i for i, c in enumerate(trace.calls) if c.kind == "line" and c.turn == 1)
    assert root_of(lab, plain).root == ""
    lab, trace = traced("a = torch.ones(3, requires_grad=True).exp()\n")
    exp = next(i for i, c in enumerate(trace.calls) if c.name == "exp")
    assert root_of(lab, exp).root == "a"
    with pytest.raises(LabError, match="no call 99"):
        root_of(lab, 99)


# -- the rule of a node, stepped into


def begun(source: str, root: str) -> tuple[Lab, list[Any]]:
    """A lab in which the code has run, and a backward pass from `root` to its end."""
    lab, _ = traced(source)
    list(start_backward(lab, StartBackwardCommand(root=root)))
    list(move_backward(lab, MoveBackwardCommand(move="end")))
    return lab, lab.backward.under_way.stepper.graph.nodes


def test_a_python_backward_is_stepped_into_with_the_gradient_that_came() -> None:
    lab, nodes = begun(GELU.removesuffix("y.sum().backward()\n") + "loss = (y * y).sum()\n", "loss")
    node = next(n for n in nodes if n.is_custom)
    assert lab.console.namespace is not None
    x = lab.console.namespace.variables["x"]
    before, version = x.grad.clone(), x._version
    lab, trace = traced("", lab, node=node.id)
    assert trace.rule == "y = Gelu" and trace.error is None and trace.source == ""
    assert (
        list(trace.sources) == ["<cell 1>"] and "once_differentiable" in trace.sources["<cell 1>"]
    )
    stops = [trace.lines[c.line].line for c in trace.calls if c.kind == "line"]
    assert stops == [23, 25, 26, 6, 7, 29]
    assert lab.trace.current.position == 0 and move(lab, "line").position > 0
    gives = at_line(lab, trace, 26)
    plain = x.detach().clone().requires_grad_()
    y = torch.nn.functional.gelu(plain)
    (expected,) = torch.autograd.grad((y * y).sum(), plain)
    (given,) = (v for v in gives.inputs if v.label.startswith("grad"))
    assert given.label == "grad = g"
    np.testing.assert_allclose(numbers(given), (2 * y).tolist(), rtol=1e-5)
    (gradient,) = (v for v in gives.outputs if v.label.startswith("return[0]"))
    np.testing.assert_allclose(numbers(gradient), expected.tolist(), rtol=1e-5)
    assert torch.equal(x.grad, before) and x._version == version


def test_the_rule_of_an_op_is_stepped_op_by_op_and_a_leaf_has_none() -> None:
    lab, nodes = begun("w = torch.ones(2, requires_grad=True)\nz = (w * w).exp().sum()\n", "z")
    exp = next(n for n in nodes if n.name == "ExpBackward0")
    lab, trace = traced("", lab, node=exp.id)
    # torch detaches what a node has saved of its own result when it unpacks it.
    assert [call.name for call in trace.calls] == ["aten::detach", "aten::mul.Tensor"]
    assert numbers(move(lab, "to", 1).outputs[0]) == pytest.approx([np.e, np.e], rel=1e-6)
    with pytest.raises(LabError, match="inside a leaf"):
        traced("", lab, node=next(n for n in nodes if n.is_leaf).id)


def test_a_rule_that_raises_is_traced_to_where_it_does() -> None:
    source = GELU.removesuffix("y.sum().backward()\n")
    lab, nodes = begun(source + "loss = y.sum()\n", "loss")
    node = next(n for n in nodes if n.is_custom)
    assert lab.console.namespace is not None
    lab.console.namespace.variables["below"] = None
    lab, trace = traced("", lab, node=node.id)
    assert trace.error is not None and trace.error.type == "TypeError"
    marked = [trace.lines[c.line].line for c in trace.calls if c.mark == "error"]
    assert marked == [26, 7]


def test_a_rule_that_has_not_run_cannot_be_stepped_into() -> None:
    lab, _ = traced("w = torch.ones(2, requires_grad=True)\nz = w.exp().sum()\n")
    with pytest.raises(LabError):
        traced("", lab, node=0)
    list(start_backward(lab, StartBackwardCommand(root="z")))
    with pytest.raises(LabError):
        traced("", lab, node=0)


def test_while_the_real_engine_is_held_no_rule_runs_a_second_time() -> None:
    lab, _ = traced("w = torch.ones(2, requires_grad=True)\nz = w.exp().sum()\n")
    list(start_backward(lab, StartBackwardCommand(root="z", real_engine=True)))
    try:
        list(move_backward(lab, MoveBackwardCommand(move="step")))
        with pytest.raises(LabError, match="real engine is paused"):
            traced("", lab, node=lab.backward.under_way.stepper.graph.nodes[0].id)
    finally:
        lab.backward.close()


def test_a_rule_is_traced_with_the_gradient_as_it_was_edited() -> None:
    source = GELU.removesuffix("y.sum().backward()\n") + "loss = y.sum()\n"
    lab, _ = traced(source)
    list(start_backward(lab, StartBackwardCommand(root="loss")))
    node = next(n for n in lab.backward.under_way.stepper.graph.nodes if n.is_custom)
    list(move_backward(lab, MoveBackwardCommand(move="step")))
    list(edit_gradient(lab, EditGradientCommand(node=node.id, expression="g * 10")))
    list(move_backward(lab, MoveBackwardCommand(move="end")))
    lab, trace = traced("", lab, node=node.id)
    (given,) = (v for v in at_line(lab, trace, 26).inputs if v.label.startswith("grad"))
    assert numbers(given) == [10.0] * 4


def test_functions_that_run_too_often_are_left_unwatched_and_run_on(monkeypatch) -> None:
    monkeypatch.setattr(lines, "MAX_TURNS", 3)
    monkeypatch.setattr(turns, "MAX_TURNS", 3)
    lab, trace = traced(
        "def f(n):\n    if n > 6:\n        raise ValueError\n    return n + 1\n"
        "total = 0\nfor i in range(7):\n    total += f(i)\n"
        "try:\n    f(9)\nexcept ValueError:\n    total += 100\n"
    )
    assert trace.error is None
    assert lab.console.namespace.variables["total"] == sum(range(1, 8)) + 100
