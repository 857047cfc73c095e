"""Answers with the memory of one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ....lab import Lab
from ....protocol import (
    AllocatorBlock,
    AllocatorSegment,
    MemoryBlock,
    MemoryCurveSnapshot,
    MemoryOp,
    OversizeSnapshot,
    TraceMemoryCommand,
    encode_snapshot,
)
from ....system.errors import sendable
from ....training.memory.allocator import Piece
from ....training.memory.one_step import OneStep
from ....training.memory.tracking import Block, Tracker
from ...subjects.find import subject_of
from ..at_rest import require_rest

MAX_NAME_CHARS = 80
LIMITS = (1500, 700, 300, 100)
"""The most operations, and the most storages, that are sent: the first of these numbers with which
the snapshot is small enough."""


def trace_memory(lab: Lab, command: TraceMemoryCommand) -> Iterator[MemoryCurveSnapshot]:
    """Raises LabError while a run goes on, and if the model or its data cannot be trained."""
    require_rest(lab)
    setup = command.training
    subject = subject_of(lab, command)
    subject.check()
    objective = subject.objective()
    with subject.running(objective.generators):
        step = OneStep(subject.module, objective, setup)
    yield fitting(lambda limit: _sent(step, limit))


def fitting(make: Callable[[int], MemoryCurveSnapshot]) -> MemoryCurveSnapshot:
    """The snapshot that `make` gives for the first of LIMITS with which it can be sent."""
    for limit in LIMITS[:-1]:
        found = make(limit)
        try:
            encode_snapshot(found)
        except OversizeSnapshot:
            continue
        return found
    return make(LIMITS[-1])


def _sent(step: OneStep, limit: int) -> MemoryCurveSnapshot:
    tracker = step.tracker
    series = tracker.bytes_by_kind()
    whole = [sum(each) for each in zip(*series.values(), strict=True)]
    shown = highest(whole, limit)
    place = {number: i for i, number in enumerate(shown)}
    largest = sorted(tracker.blocks, key=lambda block: -block.size)
    told = [block for block in largest if block.size][:limit]
    pictured = step.pictured
    segments = [] if pictured is None else pictured.segments
    return MemoryCurveSnapshot(
        samples=step.samples,
        device=str(tracker.device),
        total=len(tracker.ops),
        peak=step.peak,
        ops=tuple(_op(tracker, number) for number in shown),
        series={kind: tuple(of[number] for number in shown) for kind, of in series.items()},
        blocks=tuple(_block(block, place, len(whole)) for block in told),
        left_out=sum(block.size > 0 for block in largest) - len(told),
        allocated=tuple(tracker.allocated[number] for number in shown if tracker.allocated),
        reserved=tuple(tracker.reserved[number] for number in shown if tracker.reserved),
        segments=() if pictured is None else _segments(pictured, place, limit),
        segments_in_all=len(segments),
        unused=sum(p.size for each in segments for p in each.pieces if p.state == "free"),
    )


def _segments(pictured: Tracker, place: dict[int, int], limit: int) -> tuple[AllocatorSegment, ...]:
    """The largest segments, with as many blocks in all as `limit`."""
    told: list[AllocatorSegment] = []
    for segment in pictured.segments:
        limit -= len(segment.pieces)
        if limit < 0:
            break
        pieces = tuple(_piece(piece, pictured.holders, place) for piece in segment.pieces)
        told.append(AllocatorSegment(segment.size, segment.is_small, pieces))
    return tuple(told)


def _piece(piece: Piece, holders: dict[int, Block], place: dict[int, int]) -> AllocatorBlock:
    block = holders.get(piece.address) if piece.state == "held" else None
    if block is None:
        return AllocatorBlock(piece.size, piece.asked, piece.state)
    name = sendable(block.name)[-MAX_NAME_CHARS:]
    return AllocatorBlock(
        piece.size, piece.asked, piece.state, block.kind, name, place.get(block.born, -1)
    )


def highest(whole: list[int], limit: int) -> list[int]:
    """At most `limit` places, in their order: the lowest and the highest of each of some equal
    stretches, and both ends."""
    if len(whole) <= limit:
        return list(range(len(whole)))
    stretches = (limit - 2) // 2
    kept = {0, len(whole) - 1}
    for i in range(stretches):
        stretch = range(i * len(whole) // stretches, (i + 1) * len(whole) // stretches)
        kept.add(min(stretch, key=lambda place: whole[place]))
        kept.add(max(stretch, key=lambda place: whole[place]))
    return sorted(kept)


def _op(tracker: Tracker, number: int) -> MemoryOp:
    op = tracker.ops[number]
    module, file, line, source = op.place
    short = None if module is None else sendable(module)[-MAX_NAME_CHARS:]
    return MemoryOp(
        number, op.name, op.phase, short, sendable(file), line, sendable(source[:MAX_NAME_CHARS])
    )


def _block(block: Block, place: dict[int, int], total: int) -> MemoryBlock:
    died = -1 if block.died is None or block.died >= total else block.died
    name = sendable(block.name)[-MAX_NAME_CHARS:]
    return MemoryBlock(block.kind, block.size, block.born, died, place.get(block.born, -1), name)
