"""The calls of modules that are noted for code which is only looked at now and then."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from threading import Thread

import pytest
import torch
from torch import nn

from engine.recording import module_recorder
from engine.recording.module_recorder import ModuleRecorder

X = torch.ones(2, 2)


@pytest.fixture
def net() -> Iterator[nn.Sequential]:
    torch._dynamo.reset()  # what other tests of this process have compiled is forgotten
    yield nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.Tanh()), nn.Linear(2, 1))


def told(recorder: ModuleRecorder) -> list[tuple[str, str, int]]:
    return [(call.name, call.module, call.parent) for call in recorder.recording.calls]


def test_calls_nest_and_hold_their_nodes(net: nn.Sequential) -> None:
    recorder = ModuleRecorder()
    net(X)
    recorder.begin()
    y = net(X)
    recorder.end()
    net(X)
    assert told(recorder) == [
        ("Sequential", "net", -1), ("Sequential", "net.0", 0), ("Linear", "net.0.0", 1),
        ("Tanh", "net.0.1", 1), ("Linear", "net.1", 0),
    ]  # fmt: skip
    calls = recorder.recording.calls
    last = y.grad_fn
    assert last is not None
    tanh = last.next_functions[1][0]
    assert recorder.recording.call_of(last._sequence_nr()) is calls[4]
    assert recorder.recording.call_of(tanh._sequence_nr()) is calls[3]
    assert [(call.kind, call.place is not None) for call in calls] == [("module", True)] * 5
    assert calls[0].end == calls[4].end == last._sequence_nr() + 1
    assert recorder.recording.end == sys.maxsize


def test_to_begin_again_forgets_and_hooks_once(net: nn.Sequential) -> None:
    recorder = ModuleRecorder()
    for _ in range(3):
        recorder.begin()
        net[1](X)
    assert len(recorder.recording) == 1
    recorder.end()
    recorder.begin()
    assert not recorder.recording.calls
    net[1](X)
    assert len(recorder.recording) == 1
    recorder.end()


def test_nothing_is_noted_while_it_is_told_not_to_nor_of_other_threads(net: nn.Sequential) -> None:
    is_forbidden = True
    recorder = ModuleRecorder(unless=lambda: is_forbidden)
    recorder.begin()
    net(X)
    is_forbidden = False
    thread = Thread(target=net, args=(X,))
    thread.start()
    thread.join()
    assert not recorder.recording.calls
    net[1](X)
    recorder.end()
    assert len(recorder.recording) == 1


def test_a_module_is_named_as_the_outermost_code_names_it(net: nn.Sequential) -> None:
    class Around:
        def __init__(self, part: nn.Module) -> None:
            self.part = part

        def run(self, inner: nn.Module) -> None:
            inner(X)

    recorder = ModuleRecorder(name_of=lambda module: "by " + type(module).__name__)
    recorder.begin()
    layer = net[1]
    Around(layer).run(layer)
    Around(layer).run(nn.Tanh())
    nn.Linear(2, 1)(X)
    recorder.end()
    assert [call.module for call in recorder.recording.calls] == ["layer", "inner", "by Linear"]


def test_no_more_calls_are_noted_than_there_is_room_for(
    net: nn.Sequential, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module_recorder, "MAX_CALLS", 3)
    recorder = ModuleRecorder()
    recorder.begin()
    net(X)
    recorder.end()
    assert [name for name, _, _ in told(recorder)] == ["Sequential", "Sequential", "Linear"]
    assert all(call.end < sys.maxsize for call in recorder.recording.calls)
