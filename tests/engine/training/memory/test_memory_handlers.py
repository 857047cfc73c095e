"""The memory of one step as a command: what is sent adds up, errors in words."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from engine.handlers.training.pictures import memory
from engine.handlers.training.pictures.memory import fitting, highest
from engine.project.document import TrainingSetup
from engine.protocol import (
    AllocatorBlock,
    AllocatorSegment,
    MemoryBlock,
    MemoryCurveSnapshot,
    MemoryKind,
    MemoryOp,
    TraceMemoryCommand,
    encode_snapshot,
)
from engine.training.memory.allocator import Piece, Segment
from engine.training.memory.tracking import KINDS, Block
from tests.engine.handlers.test_training_handlers import MLP, Client, assert_equal

SETUP = TrainingSetup(epochs=1, batch_size=64, seed=3)


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.session.close()


def test_the_storages_that_live_are_the_bytes_of_the_curve(client: Client) -> None:
    client.send(TraceMemoryCommand(id=1, model=MLP, training=SETUP))
    found = client.said[-1]
    assert isinstance(found, MemoryCurveSnapshot), found
    assert found.samples == 64 and found.left_out == 0 and found.total == len(found.ops)
    whole = [sum(each) for each in zip(*found.series.values(), strict=True)]
    assert whole.index(max(whole)) == found.peak
    for place, op in enumerate(found.ops):
        living = [b for b in found.blocks if b.born <= op.number and not -1 < b.died <= op.number]
        assert sum(block.size for block in living) == whole[place]
    made = {b.op for b in found.blocks if b.born >= 0}
    assert all(found.ops[place].number == b.born for b in found.blocks if (place := b.op) >= 0)
    assert len(made) > 10
    sources = {op.source for op in found.ops if op.module == "linear1"}
    assert "linear1 = self.linear1(flatten)" in sources


def test_weights_and_random_numbers_are_as_before(client: Client) -> None:
    client.send(TraceMemoryCommand(id=1, model=MLP, training=SETUP))
    weights = client.weights()
    torch.manual_seed(5)
    client.send(TraceMemoryCommand(id=2, model=MLP, training=SETUP))
    drawn = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(3))
    assert_equal(client.weights(), weights)


def test_of_many_operations_each_stretch_keeps_its_highest() -> None:
    whole = [n % 7 + (1000 if n == 4321 else 0) for n in range(10_000)]
    shown = highest(whole, 100)
    assert len(shown) <= 100 and 4321 in shown and (shown[0], shown[-1]) == (0, 9999)
    assert shown == sorted(shown) and highest(whole[:50], 100) == list(range(50))


def test_a_step_with_long_names_is_told_with_fewer_operations() -> None:
    def make(limit: int) -> MemoryCurveSnapshot:
        op = MemoryOp(1, "aten.mm.default", "backward", "m" * 80, "f" * 200, 9, "s" * 80)
        series: dict[MemoryKind, tuple[int, ...]] = {kind: (2**40,) * limit for kind in KINDS}
        block = MemoryBlock("activations", 2**33, 1, 2, 1, "n" * 80)
        return MemoryCurveSnapshot(
            samples=1, device="cuda:0", total=limit, peak=0, ops=(op,) * limit, series=series,
            blocks=(block,) * limit, allocated=(2**40,) * limit,
        )  # fmt: skip

    found = fitting(make)
    assert len(found.ops) == 300 and encode_snapshot(found)
    assert encode_snapshot(make(100))
    asked: list[int] = []

    def small(limit: int) -> MemoryCurveSnapshot:
        asked.append(limit)
        return make(300)

    assert fitting(small) == make(300) and asked == [1500]


def test_the_largest_segments_are_told_as_far_as_their_blocks_fit() -> None:
    """The allocator's, which is on GPUs only."""

    def segment(size: int, *pieces: Piece) -> Segment:
        return Segment(size, size < 100, pieces)

    held = Block(5, 7, 1, None, "gradients", "x" * 90)
    early = Block(5, -1, 3, None, "parameters", "w")
    found: Any = SimpleNamespace(
        segments=[
            segment(300, Piece(1, 8, 5, "held"), Piece(2, 9, 0, "free")),
            segment(50, Piece(3, 8, 5, "held"), Piece(4, 6, 4, "held"), Piece(1, 8, 5, "waiting")),
        ],
        holders={1: held, 3: early},
    )
    first = AllocatorSegment(
        300, False,
        (AllocatorBlock(8, 5, "held", "gradients", "x" * 80, 2), AllocatorBlock(9, 0, "free")),
    )  # fmt: skip
    second = AllocatorSegment(
        50, True,
        (AllocatorBlock(8, 5, "held", "parameters", "w", -1), AllocatorBlock(6, 4, "held"),
         AllocatorBlock(8, 5, "waiting")),
    )  # fmt: skip
    for limit, expected in ((9, (first, second)), (5, (first, second)), (4, (first,)), (1, ())):
        assert memory._segments(found, {7: 2}, limit) == expected


def test_an_operation_and_a_storage_are_told_by_the_ends_of_their_names() -> None:
    ops = [SimpleNamespace(name="aten.mm", phase="forward", place=("m" * 81, "f.py", 3, "s" * 90)),
           SimpleNamespace(name="aten.add", phase="loss", place=(None, "", 0, ""))]  # fmt: skip
    tracker: Any = SimpleNamespace(ops=ops)
    told = memory._op(tracker, 0)
    assert told == MemoryOp(0, "aten.mm", "forward", "m" * 80, "f.py", 3, "s" * 80)
    assert memory._op(tracker, 1).module is None and memory._op(tracker, 1).number == 1
    for died, expected in ((None, -1), (9, 9), (10, -1), (12, -1), (0, 0)):
        block = memory._block(Block(4, 3, 0, died, "other", "n" * 81), {3: 1}, 10)
        assert block == MemoryBlock("other", 4, 3, expected, 1, "n" * 80)
    assert memory._block(Block(4, -1), {3: 1}, 10).op == -1
