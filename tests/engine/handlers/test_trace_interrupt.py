"""Traced code that does not end, in a real engine: interrupted, and stepped through then."""

from __future__ import annotations

import pytest

from engine.protocol import (
    InterruptSignal,
    MoveTraceCommand,
    StartTraceCommand,
    TraceSnapshot,
    TraceStepSnapshot,
    join_trace,
)
from tests.engine.processes import answers, wait_for_print

pytestmark = pytest.mark.usefixtures("forked_processes")


@pytest.mark.parametrize(
    "loop",
    [
        "while True:\n    x = x * 2 % 7\n",
        "while True:\n    pass\n",
        "net = nn.Linear(2, 2)\nwhile True:\n    net(x).sum().backward()\n",
    ],
)
def test_a_loop_without_end(shared_engine, loop):
    source = f"x = torch.ones(2)\ny = x + 1\nprint('loops', flush=True)\n{loop}"
    command = shared_engine.send(StartTraceCommand(source=source))
    wait_for_print(shared_engine)
    shared_engine.signal(InterruptSignal())
    got = answers(shared_engine, command)
    trace = join_trace([s for s in got if isinstance(s, TraceSnapshot)])
    assert trace.error is not None and trace.error.type == "KeyboardInterrupt"
    assert isinstance(got[-1], TraceStepSnapshot)
    names = [call.name for call in trace.calls if call.kind == "function"]
    assert names[:2] == ["ones", "add"]
    add = next(i for i, call in enumerate(trace.calls) if call.name == "add")
    step = answers(shared_engine, shared_engine.send(MoveTraceCommand(move="to", target=add)))[-1]
    assert isinstance(step, TraceStepSnapshot) and step.outputs[0].text == "[2., 2.]"
    # Nothing of the recorder stays behind: the next trace is whole.
    again = answers(shared_engine, shared_engine.send(StartTraceCommand(source="z = y * 3\n")))
    trace = join_trace([s for s in again if isinstance(s, TraceSnapshot)])
    assert trace.error is None
    assert [(call.kind, call.name, call.turn) for call in trace.calls] == [
        ("line", "", 1),
        ("function", "mul", 1),
        ("op", "aten::mul.Tensor", 1),
    ]
