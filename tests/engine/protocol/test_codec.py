"""Messages survive the trip, and bytes that are not a message are refused in words."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.project.document import Block, HoldWhen, Model, TrainingSetup, Wire
from engine.protocol import (
    COMMANDS,
    MAX_SNAPSHOT_BYTES,
    SNAPSHOTS,
    AnySignal,
    CellSnapshot,
    CheckModelCommand,
    ErrorReport,
    ErrorSnapshot,
    HelloCommand,
    HoldWhenSignal,
    NotAMessage,
    OutputSnapshot,
    OversizeSnapshot,
    SourceLine,
    StepBackwardSignal,
    StepColumns,
    TraceCall,
    TraceSnapshot,
    TrainingSnapshot,
    ValueSnapshot,
    decode_command,
    decode_message,
    decode_snapshot,
    decode_snapshot_or_error,
    encode_command,
    encode_snapshot,
    encode_snapshot_or_error,
    join_graph,
)
from engine.protocol.trace_snapshots import join_trace
from tests.widgets.backward.autograd_snapshots import GRAPH

floats = st.lists(st.floats(allow_nan=True, allow_infinity=True, width=64)).map(tuple)
texts = st.text(st.characters(exclude_categories=("Cs",)))


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def training_snapshot(losses: tuple[float, ...]) -> TrainingSnapshot:
    return TrainingSnapshot(
        run="r", state="running", step=1, total_steps=2, epoch=1, epochs=1, steps_per_second=1.0,
        remaining_s=None, steps=StepColumns(loss=losses), epoch_rows=(), device="cpu",
    )  # fmt: skip


@given(floats)
def test_every_float_survives_nan_and_infinities_too(losses):
    back = decode_snapshot(encode_snapshot(training_snapshot(losses)))
    assert isinstance(back, TrainingSnapshot)
    assert len(back.steps.loss) == len(losses)
    assert all(b is not None and same(b, a) for b, a in zip(back.steps.loss, losses, strict=True))


@given(
    texts, texts, st.integers(0, 2**40), st.floats(allow_nan=False), st.tuples(st.integers(1, 9))
)
def test_a_command_comes_back_equal(name, value, id_, x, ints):
    block = Block(id=name, kind="nn.Linear", name=name, params={"a": value, "b": ints}, x=x)
    wire = Wire(source=name, source_port="y", target=name, target_port="x")
    command = CheckModelCommand(
        id=id_, model=Model(blocks=(block,), wires=(wire,)), training=TrainingSetup()
    )
    assert decode_command(encode_command(command)) == command
    assert decode_message(encode_command(command)) == command


FILLED = {
    StepBackwardSignal: StepBackwardSignal(on=True),
    HoldWhenSignal: HoldWhenSignal(when=HoldWhen(not_finite=True, gradient_norm=0.5)),
}


@pytest.mark.parametrize("signal", AnySignal.__args__)
def test_signals_come_back(signal):
    sent = FILLED.get(signal) or signal()
    assert decode_message(encode_command(sent)) == sent


def test_no_two_messages_share_a_name():
    names = [t.__name__ for t in (*COMMANDS, *AnySignal.__args__)]
    assert len(names) == len(set(names))
    snapshots = [t.__name__ for t in SNAPSHOTS]
    assert len(snapshots) == len(set(snapshots))


@given(st.binary())
def test_bytes_that_are_no_message_are_refused(data):
    with pytest.raises(msgspec.DecodeError):
        decode_message(data)


def test_a_message_of_the_wrong_shape_names_the_field():
    with pytest.raises(msgspec.ValidationError, match="revision"):
        decode_message(msgspec.msgpack.encode({"type": "HelloCommand", "revision": "one"}))
    with pytest.raises(msgspec.ValidationError, match="NoCommand"):
        decode_message(msgspec.msgpack.encode({"type": "NoCommand"}))


def test_a_snapshot_that_is_too_large_is_told():
    large = OutputSnapshot(stream="stdout", text="x" * MAX_SNAPSHOT_BYTES, reply_to=4, revision=2)
    with pytest.raises(OversizeSnapshot, match="OutputSnapshot"):
        encode_snapshot(large)
    told = decode_snapshot(encode_snapshot_or_error(large))
    assert isinstance(told, ErrorSnapshot)
    assert (told.reply_to, told.revision, told.command) == (4, 2, "OutputSnapshot")


def test_a_snapshot_of_just_the_largest_size_is_sent():
    def of(length: int) -> OutputSnapshot:
        return OutputSnapshot(stream="stdout", text="x" * length)

    some = 2**17
    largest = some + MAX_SNAPSHOT_BYTES - len(encode_snapshot(of(some)))
    assert len(encode_snapshot(of(largest))) == MAX_SNAPSHOT_BYTES
    with pytest.raises(OversizeSnapshot):
        encode_snapshot(of(largest + 1))


def test_a_graph_in_parts_is_one_graph_again():
    parts = [
        msgspec.structs.replace(
            GRAPH,
            nodes=GRAPH.nodes[at : at + 2],
            edges=GRAPH.edges[at : at + 2],
            plan=GRAPH.plan[at : at + 2],
            rules=dict(list(GRAPH.rules.items())[at // 2 : at // 2 + 1]),
            modules={str(at): "Linear"},
            part=at // 2,
            parts=3,
        )
        for at in (0, 2, 4)
    ]
    modules = {"0": "Linear", "2": "Linear", "4": "Linear"}
    assert join_graph(parts) == msgspec.structs.replace(GRAPH, modules=modules)


def test_a_trace_in_parts_is_one_trace_again():
    calls = tuple(TraceCall(-1, "op", f"aten::{i}", "", 0, "", 0) for i in range(5))
    lines = tuple(SourceLine("<cell 1>", i, f"x{i}") for i in range(3))
    whole = TraceSnapshot(calls=calls, lines=lines, modules={"a": "A", "b": "B"}, source="x")
    first = msgspec.structs.replace(
        whole, calls=calls[:3], lines=lines[:1], modules={"a": "A"}, part=0, parts=2
    )
    rest = TraceSnapshot(calls=calls[3:], lines=lines[1:], modules={"b": "B"}, part=1, parts=2)
    assert join_trace([first, rest]) == whole


@pytest.mark.parametrize(
    "snapshot",
    [
        ValueSnapshot(of="activation", key="x", values=(object(),)),  # pyright: ignore
        OutputSnapshot(stream="stdout", text="\ud800"),
        CellSnapshot(ok=False, error=ErrorReport(type="E", message="m", line=2**70)),
    ],
    ids=["no plain data", "lone surrogate", "too large a number"],
)
def test_a_snapshot_that_cannot_be_encoded_becomes_an_error(snapshot):
    told = decode_snapshot(encode_snapshot_or_error(snapshot))
    assert isinstance(told, ErrorSnapshot)
    assert told.command == type(snapshot).__name__


def test_a_plain_snapshot_passes_as_it_is():
    snapshot = OutputSnapshot(stream="stdout", text="ü", reply_to=1)
    assert encode_snapshot_or_error(snapshot) == encode_snapshot(snapshot)
    assert decode_command(encode_command(HelloCommand(id=3))).id == 3


def test_a_dict_as_a_key_is_no_message():
    with pytest.raises(NotAMessage):
        decode_snapshot_or_error(b"\x81\x80\x01")
