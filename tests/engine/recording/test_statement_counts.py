"""The turns of loops: how often a statement had begun when a call of it ran."""

from __future__ import annotations

import sys

import pytest

from engine.handlers.trace import start_trace
from engine.lab import Lab
from engine.protocol import StartTraceCommand, TraceSnapshot, join_trace

pytestmark = pytest.mark.skipif(sys.gettrace() is not None, reason="a debugger listens to lines")


def turns(source: str) -> list[tuple[int, int]]:
    """(line, turn) of each torch function, in order."""
    lab = Lab(emit=lambda snapshot: None)
    answers = list(start_trace(lab, StartTraceCommand(source=source)))
    trace = join_trace([a for a in answers if isinstance(a, TraceSnapshot)])
    assert trace.error is None
    return [
        (trace.lines[call.line].line, call.turn) for call in trace.calls if call.kind == "function"
    ]


def test_a_loop_counts_its_turns() -> None:
    source = "x = torch.ones(2)\nfor i in range(3):\n    x = x * 2 + 1\n"
    loop = [(3, turn) for turn in (1, 1, 2, 2, 3, 3)]
    assert turns(source) == [(1, 1), *loop]


def test_a_loop_on_one_line() -> None:
    assert turns("x = torch.ones(2)\nfor i in range(3): x = x * 2\n") == [
        (1, 1), (2, 1), (2, 2), (2, 3),
    ]  # fmt: skip


def test_a_while_loop_and_its_branches() -> None:
    source = (
        "x = torch.ones(())\n"
        "while x < 5:\n"
        "    if x > 2:\n        x = x + 1\n"
        "    else:\n        x = x * 2\n"
    )
    told = turns(source)
    # x: 1, 2, 4, 5. Each comparison is two calls: `<` and the bool of it.
    assert [turn for line, turn in told if line == 2] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert [turn for line, turn in told if line == 3] == [1, 1, 2, 2, 3, 3]
    assert [turn for line, turn in told if line == 6] == [1, 2]
    assert [turn for line, turn in told if line == 4] == [1]


def test_a_statement_over_several_lines_runs_once() -> None:
    source = "x = torch.ones(2)\ny = (x * 2 +\n     x * 3 -\n     x * 4)\n"
    told = turns(source)
    assert len(told) == 6 and {turn for _, turn in told} == {1}


def test_functions_count_apart_from_their_callers() -> None:
    source = (
        "def f(x, n):\n"
        "    return x if n == 0 else f(x * 2, n - 1)\n"
        "x = f(torch.ones(2), 2) + f(torch.ones(2), 1)\n"
    )
    assert turns(source) == [(3, 1), (2, 1), (2, 2), (3, 1), (2, 4), (3, 1)]


def test_comprehensions_and_generators() -> None:
    source = "x = torch.ones(2)\nys = [x * i for i in range(3)]\n"
    assert turns(source) == [(1, 1), (2, 1), (2, 2), (2, 3)]
    source = (
        "def powers(x):\n    while True:\n        x = x * 2\n        yield x\n"
        "g = powers(torch.ones(2))\ny = next(g) + next(g)\n"
    )
    assert turns(source) == [(5, 1), (3, 1), (3, 2), (6, 1)]


def test_modules_and_what_runs_inside_them_are_of_one_turn() -> None:
    source = "net = nn.Linear(2, 2)\nx = torch.ones(1, 2)\nfor _ in range(2):\n    x = net(x)\n"
    assert turns(source)[-2:] == [(4, 1), (4, 2)]


def test_a_debugger_that_listens_is_left_alone(request) -> None:
    def debugger(frame, event, arg):
        return None

    request.addfinalizer(lambda: sys.settrace(None))
    sys.settrace(debugger)
    assert turns("x = torch.ones(2)\n") == [(1, 0)]
    assert sys.gettrace() is debugger


def test_a_custom_functions_backward_is_traced_at_its_own_lines() -> None:
    source = (
        "class Double(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n"
        "    @staticmethod\n    def backward(ctx, g):\n"
        "        half = g * 1\n        return half * 2\n"
        "Double.apply(torch.ones(2, requires_grad=True)).sum().backward()\n"
    )
    lab = Lab(emit=lambda snapshot: None)
    answers = list(start_trace(lab, StartTraceCommand(source=source)))
    trace = join_trace([a for a in answers if isinstance(a, TraceSnapshot)])
    multiplied = [trace.lines[c.line].line for c in trace.calls if c.name == "aten::mul.Tensor"]
    assert multiplied == [4, 7, 8]
