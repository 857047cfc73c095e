"""CUDA's caching allocator in a picture: a snapshot as torch documents it, and what lies in its
blocks. No GPU is needed: what is read is written by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from engine.datasets.load import load_dataset
from engine.handlers.training.pictures import memory
from engine.project.document import TrainingSetup
from engine.training.memory import one_step
from engine.training.memory.allocator import Piece, Segment, read_allocator, segments_in
from engine.training.memory.one_step import OneStep
from engine.training.memory.tracking import Tracker
from engine.training.objectives.objective import CatalogueObjective

MIB = 2**20
FRAME = {"filename": "net.py", "line": 7, "name": "forward"}
LARGE = {
    "device": 0,
    "address": 0x7F00_0000_0000,
    "total_size": 20 * MIB,
    "stream": 0,
    "segment_type": "large",
    "segment_pool_id": (0, 0),
    "allocated_size": 10 * MIB,
    "active_size": 12 * MIB,
    "blocks": [
        {
            "size": 10 * MIB, "requested_size": 10 * MIB - 100, "address": 0x7F00_0000_0000,
            "state": "active_allocated", "frames": [FRAME],
        },
        {
            "size": 2 * MIB, "requested_size": 2 * MIB, "address": 0x7F00_00A0_0000,
            "state": "active_awaiting_free", "frames": [],
        },
        {
            "size": 8 * MIB, "requested_size": 0, "address": 0x7F00_00C0_0000,
            "state": "inactive", "frames": [],
        },
    ],
}  # fmt: skip
SMALL = {
    "device": 0,
    "address": 0x7F10_0000_0000,
    "total_size": 2 * MIB,
    "stream": 0,
    "segment_type": "small",
    "segment_pool_id": (0, 0),
    "allocated_size": 512,
    "active_size": 512,
    "blocks": [  # an earlier torch gives no addresses of blocks
        {"size": 512, "requested_size": 40, "state": "active_allocated", "frames": []},
        {"size": 2 * MIB - 512, "requested_size": 0, "state": "inactive", "frames": []},
    ],
}


def test_segments_and_blocks_are_those_of_the_snapshot() -> None:
    found = segments_in([SMALL, {**LARGE, "device": 1}, LARGE], 0)
    assert found == [
        Segment(
            20 * MIB,
            False,
            (
                Piece(0x7F00_0000_0000, 10 * MIB, 10 * MIB - 100, "held"),
                Piece(0x7F00_00A0_0000, 2 * MIB, 2 * MIB, "waiting"),
                Piece(0x7F00_00C0_0000, 8 * MIB, 8 * MIB, "free"),
            ),
        ),
        Segment(
            2 * MIB,
            True,
            (
                Piece(0x7F10_0000_0000, 512, 40, "held"),
                Piece(0x7F10_0000_0200, 2 * MIB - 512, 2 * MIB - 512, "free"),
            ),
        ),
    ]
    assert [sum(p.size for p in each.pieces) for each in found] == [each.size for each in found]


def test_the_snapshot_is_asked_for_as_every_torch_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch 2.8 knows no `include_traces`."""
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda mempool_id=None: [SMALL, LARGE])
    found = read_allocator(torch.device("cuda", 0))
    assert [segment.size for segment in found] == [20 * MIB, 2 * MIB]


def test_a_cpu_has_none() -> None:
    setup = TrainingSetup(batch_size=8)
    assert load_dataset(setup.data).x_train.shape[1:] == (1, 8, 8)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    step = OneStep(model, CatalogueObjective(model, setup), setup)
    found = memory._sent(step, 1000)
    assert step.pictured is None
    assert (found.segments, found.segments_in_all, found.reserved, found.allocated) == (
        (),
        0,
        (),
        (),
    )


def test_each_block_has_the_storage_that_lies_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The storages of a CPU at the peak, as if the allocator had handed out each of their
    addresses in a segment of its own."""
    setup = TrainingSetup(batch_size=8)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    pictured: list[Tracker] = []
    tracked = one_step._tracked

    def as_on_cuda(*given) -> Tracker:
        first = tracked(*given)
        if pictured or not first.ops:
            return first
        whole = [sum(each) for each in zip(*first.bytes_by_kind().values(), strict=True)]
        peak = whole.index(max(whole))
        monkeypatch.setattr(
            one_step,
            "Tracker",
            lambda *args, **options: Tracker(*args, picture_at=peak, read=lambda _: []),
        )
        pictured.append(tracked(*given))
        return first

    monkeypatch.setattr(one_step, "_tracked", as_on_cuda)
    step = OneStep(model, CatalogueObjective(model, setup), setup)
    (picture,) = pictured
    by_name = {block.name: address for address, block in picture.holders.items() if block.name}
    assert {"1.weight", "1.bias", "3.weight", "3.bias"} <= by_name.keys()
    assert any(name.startswith("exp_avg of 1.weight") for name in by_name)
    living = list(picture.living_at(picture.picture_at))
    # What lives at the peak is what lay at these addresses.
    assert {id(b) for b in picture.holders.values()} == {id(b) for b in living if b.size}
    picture.segments = [
        Segment(2 * block.size, False, (
            Piece(address, block.size, block.size, "held"),
            Piece(address + block.size, block.size, block.size, "free"),
        ))
        for address, block in picture.holders.items()
    ]  # fmt: skip
    step.pictured = picture
    found = memory._sent(step, 1000)
    sizes = {name: p.nbytes for name, p in model.named_parameters()}
    named = {b.name: b for segment in found.segments for b in segment.blocks if b.state == "held"}
    for name, size in sizes.items():
        assert (named[name].size, named[name].kind, named[name].op) == (size, "parameters", -1)
    made = [b for s in found.segments for b in s.blocks if b.op >= 0]
    assert made and all(found.ops[b.op].number <= found.peak for b in made)
    assert found.segments_in_all == len(picture.segments)
    assert found.unused == sum(block.size for block in living)
    few = memory._sent(step, 6)
    assert len(few.segments) == 3 and few.segments_in_all == found.segments_in_all


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_cuda_the_blocks_hold_what_the_allocator_says() -> None:
    setup = TrainingSetup(batch_size=64, device="cuda:0")
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 10))
    step = OneStep(model, CatalogueObjective(model, setup), setup)
    found = memory._sent(step, 1000)
    place = next(i for i, op in enumerate(found.ops) if op.number == found.peak)
    held = sum(b.size for s in found.segments for b in s.blocks if b.state != "free")
    assert sum(s.size for s in found.segments) == found.reserved[place]
    assert held + found.unused == found.reserved[place]
    names = {b.name for s in found.segments for b in s.blocks}
    assert {"1.weight", "3.weight"} <= names
