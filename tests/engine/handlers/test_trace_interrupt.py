"""Traced code that does not end, in a real engine: interrupted, and stepped through then."""

from __future__ import annotations

import pytest

from engine.process import EngineProcess
from engine.protocol import (
    DoneSnapshot,
    InterruptSignal,
    MoveTraceCommand,
    OutputSnapshot,
    Snapshot,
    StartTraceCommand,
    TraceSnapshot,
    TraceStepSnapshot,
    join_trace,
)

WAIT_S = 120.0


@pytest.fixture(scope="module")
def engine():
    engine = EngineProcess()
    engine.start()
    yield engine
    engine.close()


def receive(engine: EngineProcess) -> Snapshot:
    snapshot = engine.receive(WAIT_S)
    assert snapshot is not None, "the engine did not answer"
    return snapshot


def answers(engine: EngineProcess, command_id: int) -> list[Snapshot]:
    found = []
    while True:
        snapshot = receive(engine)
        if snapshot.reply_to == command_id:
            if isinstance(snapshot, DoneSnapshot):
                return found
            found.append(snapshot)


@pytest.mark.parametrize(
    "loop",
    [
        "while True:\n    x = x * 2 % 7\n",
        "while True:\n    pass\n",
        "net = nn.Linear(2, 2)\nwhile True:\n    net(x).sum().backward()\n",
    ],
)
def test_a_loop_without_end(engine, loop):
    source = f"x = torch.ones(2)\ny = x + 1\nprint('loops', flush=True)\n{loop}"
    command = engine.send(StartTraceCommand(source=source))
    while not isinstance(receive(engine), OutputSnapshot):
        pass
    engine.signal(InterruptSignal())
    got = answers(engine, command)
    trace = join_trace([s for s in got if isinstance(s, TraceSnapshot)])
    assert trace.error is not None and trace.error.type == "KeyboardInterrupt"
    assert isinstance(got[-1], TraceStepSnapshot)
    names = [call.name for call in trace.calls if call.kind == "function"]
    assert names[:2] == ["ones", "add"]
    add = next(i for i, call in enumerate(trace.calls) if call.name == "add")
    step = answers(engine, engine.send(MoveTraceCommand(move="to", target=add)))[-1]
    assert isinstance(step, TraceStepSnapshot) and step.outputs[0].text == "[2., 2.]"
    # Nothing of the recorder stays behind: the next trace is whole.
    again = answers(engine, engine.send(StartTraceCommand(source="z = y * 3\n")))
    trace = join_trace([s for s in again if isinstance(s, TraceSnapshot)])
    assert trace.error is None
    assert [(call.kind, call.name, call.turn) for call in trace.calls] == [
        ("line", "", 1),
        ("function", "mul", 1),
        ("op", "aten::mul.Tensor", 1),
    ]
