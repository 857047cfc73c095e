"""The call that made a node: in which recording, whether it agrees, and its arguments in order."""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
import torch

from engine.autograd import read_graph
from engine.autograd.graph import snapshot
from engine.autograd.graph.provenance import Provenance, _agree, _aligned, _slots
from engine.autograd.graph.reading import Kind, Node
from engine.protocol import MODEL_FILE
from engine.recording.recording import Call, GradientCut

CUT = GradientCut("detach", weakref.ref(torch.ones(1)), ("<cell 1>", 2))
INTEGER = GradientCut("integer", weakref.ref(torch.ones(1)))


def call(name: str, kind: str = "function", nodes: int = 1, **more: Any) -> Call:
    return Call(0, -1, kind, name, "net", None, 100, 100 + nodes, **more)  # type: ignore[arg-type]


def kind(name: str, op: str, is_custom: bool = False) -> Kind:
    return Kind(name, op, False, is_custom, ())


@pytest.mark.parametrize(
    ("made_by", "of", "agrees"),
    [
        (call("aten::nll_loss_forward", "op"), kind("NllLossBackward0", "nll_loss"), True),
        (call("aten::add.Tensor", "op"), kind("AddBackward0", "add"), True),
        (call("aten::add.Tensor", "op"), kind("SubBackward0", "sub"), False),
        (call("aten::_log_softmax", "op"), kind("LogSoftmaxBackward0", "log_softmax"), True),
        (call("linear"), kind("AddmmBackward0", "addmm"), True),
        (call("anything"), kind("SubBackward0", "sub"), True),
        (call("Net", "module"), kind("SubBackward0", "sub"), True),
        (call("Own"), kind("OwnBackward", "Own", is_custom=True), True),
        (call("Other"), kind("OwnBackward", "Own", is_custom=True), False),
        (call("Own", node="OwnBackward"), kind("OwnBackward", "Own", is_custom=True), True),
        (call("mul", node="MulBackward0"), kind("MulBackward0", "mul"), True),
        (call("mul", node="ExpBackward0"), kind("MulBackward0", "mul"), False),
    ],
)
def test_a_call_agrees_with_the_kind_of_node_that_it_makes(
    made_by: Call, of: Kind, agrees: bool
) -> None:
    assert _agree(made_by, of) is agrees


@pytest.mark.parametrize(
    ("made_by", "op", "slots"),
    [
        (call("linear", slots=(CUT, True, True)), "addmm", (True, CUT, True)),
        (call("linear", slots=(CUT, True)), "mm", (CUT, True)),
        (call("linear"), "mm", (True, True)),
        (call("linear", slots=(CUT, True)), "view", ()),
        (call("conv2d", slots=(CUT, True)), "convolution", (CUT, True, False)),
        (call("conv2d", slots=(CUT, True, True)), "convolution", (CUT, True, True)),
        (call("matmul", nodes=3, slots=(CUT, True, True)), "bmm", (CUT, True)),
        (call("matmul", nodes=3, slots=(CUT, True)), "expand", ()),
        (call("mul", slots=(CUT, True)), "mul", (CUT, True)),
        (call("both", nodes=2, slots=(CUT, True)), "mul", ()),
        (call("aten::mul", "op", nodes=2, slots=(CUT, True)), "mul", (CUT, True)),
    ],
)
def test_the_arguments_of_a_call_come_in_the_order_of_the_nodes_inputs(
    made_by: Call, op: str, slots: tuple
) -> None:
    assert tuple(_slots(made_by, op)) == slots


@pytest.mark.parametrize(
    ("slots", "targets", "found"),
    [
        ((True, CUT), [True, False], (True, CUT)),
        ((True, INTEGER, CUT), [True, False], (True, CUT)),
        ((True, INTEGER), [True, False], (True, INTEGER)),
        ((True, False, CUT), [True, False], (True, CUT)),
        ((True, CUT), [False, True], None),
        ((True,), [True, False], None),
    ],
)
def test_arguments_that_a_node_has_no_input_for_are_left_out(
    slots: tuple, targets: list[bool], found: tuple | None
) -> None:
    told = _aligned(slots, targets)
    assert (None if told is None else tuple(told)) == found


class Recorded:
    """A recording that says which call made each of its nodes."""

    def __init__(self, first: int, end: int, name: str) -> None:
        self.span, self.name, self.classes = (first, end), name, {name: "Net"}

    def __len__(self) -> int:
        return 1

    def call_of(self, sequence: int) -> Call | None:
        first, end = self.span
        return call(self.name) if first <= sequence < end else None

    def calls_of(self, sequences: Iterable[int]) -> list[Call | None]:
        return [self.call_of(sequence) for sequence in sequences]

    def chain_of(self, sequence: int) -> list[Call]:
        found = self.call_of(sequence)
        return [] if found is None else [call("around"), found]


def test_the_call_is_found_in_the_recording_that_was_running() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = y.exp()
    graph = read_graph(z)
    nodes: Sequence[Node] = graph.nodes
    exp, mul, leaf = nodes
    recordings: Any = [
        Recorded(mul.sequence, exp.sequence, "first"),
        Recorded(exp.sequence, exp.sequence + 1, "second"),
    ]
    provenance = Provenance(recordings, owner_of=lambda t: "owner")
    names = [found and found.name for found in provenance.calls(nodes)]
    assert names == ["second", "first", None]
    assert [c.name for c in provenance.chain(mul)] == ["around", "first"]
    assert provenance.chain(leaf) == [] and provenance.classes == {"first": "Net", "second": "Net"}
    assert provenance.module(leaf, None) == "owner" and provenance.module(mul, None) == ""
    assert provenance.module(mul, call("x")) == "net"
    shared = Provenance(recordings, shared_below=exp.sequence)
    assert [found and found.name for found in shared.calls(nodes)] == ["second", None, None]
    assert shared.chain(mul) == [] and len(shared.chain(exp)) == 2
    assert Provenance().calls(nodes) == [None] * 3 and Provenance().chain(exp) == []


# -- sources in a snapshot -------------------------------------------------------------------------


def test_sources_that_fit_are_told_cells_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MAX_SOURCES_CHARS", 10)
    texts = {"<cell 1>": "12345", "<cell 2>": "123456", "<cell 3>": "12345", "a.py": "1",
             "<cell 0>": "", MODEL_FILE: "1"}  # fmt: skip
    for name, text in texts.items():
        lines = text.splitlines(keepends=True)
        monkeypatch.setitem(linecache.cache, name, (len(text), None, lines, name))
    assert snapshot._sources(set(texts)) == {"<cell 1>": "12345", "<cell 3>": "12345"}
    texts.pop("<cell 3>")
    assert snapshot._sources(set(texts)) == {"<cell 1>": "12345", "a.py": "1"}


def test_at_most_so_many_classes_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MAX_CLASSES", 1)
    recordings: Any = [Recorded(0, 1, "first"), Recorded(1, 2, "second")]
    assert snapshot._classes(Provenance(recordings)) == {"first": "Net"}
