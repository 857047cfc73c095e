"""The memory of one step, operation by operation."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ...project.document import Model, TrainingSetup
from ...project.step_order import Phase
from ...project.subject import CanvasSubject, Objective, Subject
from ..commands import Command
from ..snapshots import Snapshot

MemoryKind = Literal["parameters", "gradients", "optimizer", "activations", "data", "other"]


class TraceMemoryCommand(Command, frozen=True, kw_only=True):
    """Run two steps on copies of the weights, and follow each storage of the second ->
    MemoryCurveSnapshot. The model is as before afterwards. Not while a run goes on;
    one that is paused between two steps is not changed."""

    handler = "training.pictures.memory:trace_memory"
    model: Model
    training: TrainingSetup
    subject: Subject = CanvasSubject()
    objective: Objective = Objective()


class MemoryOp(Struct, frozen=True, array_like=True):
    """An operation that ran in a `phase`, by its number. `module` is the path of the module that
    ran, or whose backward did ("" the whole model, None outside of it); `file` and `line` (from 1)
    are those of the user's code, `source` is the line of the canvas's code; empty where there is
    none."""

    number: int
    name: str
    phase: Phase
    module: str | None
    file: str
    line: int
    source: str


class MemoryBlock(Struct, frozen=True, array_like=True):
    """A storage of `size` bytes, made by the operation number `born` (-1: before the step) and
    freed during number `died` (-1: it lives at the end). `op` is the operation that made it, as a
    place in `ops`, -1 without one; `name` is what holds it, empty if only the graph does."""

    kind: MemoryKind
    size: int
    born: int
    died: int
    op: int
    name: str


class AllocatorBlock(Struct, frozen=True, array_like=True):
    """A block of the allocator of `size` bytes. For one that is "held", `asked` bytes were asked;
    the storage in it has a `kind` and a `name`, and was made by an operation (`op`, a place in
    `ops`), if the step knows it. One that is "waiting" was freed, but another stream uses it."""

    size: int
    asked: int
    state: Literal["held", "waiting", "free"]
    kind: MemoryKind = "other"
    name: str = ""
    op: int = -1


class AllocatorSegment(Struct, frozen=True, array_like=True):
    """Memory of the device that the allocator has of the driver, from its first block to its last;
    a small one has blocks of at most 1 MiB."""

    size: int
    is_small: bool
    blocks: tuple[AllocatorBlock, ...]


class MemoryCurveSnapshot(Snapshot, frozen=True, kw_only=True):
    """A step on a batch of `samples` samples. It has `total` operations, of which `ops` are shown;
    `peak` is the number of the one with the most memory, which is among them. `series` has the
    bytes of each kind after each of these. `blocks` are the largest storages, `left_out` more are
    not told. On CUDA, `allocated` is what the allocator has handed out after each of these,
    `reserved` what it holds; `segments` are its largest at the peak of another such step, of
    `segments_in_all`, with `unused` bytes that are free."""

    samples: int
    device: str
    total: int
    peak: int
    ops: tuple[MemoryOp, ...]
    series: dict[MemoryKind, tuple[int, ...]]
    blocks: tuple[MemoryBlock, ...]
    left_out: int = 0
    allocated: tuple[int, ...] = ()
    reserved: tuple[int, ...] = ()
    segments: tuple[AllocatorSegment, ...] = ()
    segments_in_all: int = 0
    unused: int = 0
