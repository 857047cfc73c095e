"""Answers with the index of a file, and with how two files differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import msgspec
from msgspec.structs import replace

from ..artifacts.comparing import compare, rows_in
from ..artifacts.contents.artifact import Artifact, Entry
from ..artifacts.contents.shared_memory import Memory, memory_of
from ..artifacts.opening import open_artifact
from ..lab import Lab
from ..protocol import (
    MAX_SNAPSHOT_BYTES,
    ArtifactDifference,
    ArtifactDifferenceSnapshot,
    ArtifactEntry,
    ArtifactSnapshot,
    ArtifactTotals,
    CompareArtifactsCommand,
    OpenArtifactCommand,
    ProgramGraph,
    ProgramModule,
    ProgramNode,
    Snapshot,
)
from ..system.errors import LabError, sendable

MAX_READ_S = 30.0
"""The longest reading of a file's index, without its numbers. A call of C, such as parsing JSON or
the code of a TorchScript program, is not interrupted; the readers bound its input, so that it takes
seconds."""
_PART_BYTES = MAX_SNAPSHOT_BYTES // 2
_METADATA_CHARS = 50_000
_MAX_ENDS = 200
"""The most inputs and outputs of a program that are sent."""
_TELL_EVERY_S = 0.2
_INEXACT = "bytes between its elements were taken for its own to see what shares them"
_Row = ArtifactEntry | ProgramModule | ProgramNode


def open_file(lab: Lab, command: OpenArtifactCommand) -> Iterator[Snapshot]:
    """Raises LabError for a file that cannot be read, or that asks for code to be run."""
    with reading(lab, command.path):
        artifact = lab.artifacts.open(command.path)
        memory = memory_of(artifact.entries)
    graph = artifact.graph
    rows: list[_Row] = [_entry(entry, memory.get(entry.key)) for entry in artifact.entries]
    if graph is not None:
        rows += [*graph.modules, *graph.nodes]
    whole = ArtifactSnapshot(
        path=command.path,
        kind=artifact.kind,
        title=artifact.title,
        size_bytes=artifact.size_bytes,
        metadata=_metadata(artifact),
        totals=_totals(artifact, memory),
        graph=None if graph is None else replace(_frame(graph), modules=(), nodes=()),
        note=artifact.note,
    )
    left = len(rows)
    for part in _parts(rows):
        left -= len(part)
        yield _with_rows(whole, part, left)


@contextmanager
def reading(lab: Lab, path: str) -> Iterator[None]:
    """In this context the index of a file is read; a stop ends it, and so does MAX_READ_S: LabError
    then."""
    try:
        with lab.control.time_limit(MAX_READ_S):
            yield
    except TimeoutError:
        raise LabError(
            f"{Path(path).name} was not read in {MAX_READ_S:g} s.",
            hint="Its index is too large, or the disk too slow. Nothing of it was loaded.",
        ) from None


def compare_files(lab: Lab, command: CompareArtifactsCommand) -> Iterator[Snapshot | None]:
    """Raises LabError for a file that cannot be read."""
    with reading(lab, command.path):
        first = open_artifact(Path(command.path))
    with reading(lab, command.other):
        second = open_artifact(Path(command.other))
    total = rows_in(first, second)
    whole = ArtifactDifferenceSnapshot(path=command.path, other=command.other, total=total)
    rows: list[ArtifactDifference] = []
    told_at = perf_counter()
    for row in compare(first, second):
        if row is not None:
            rows.append(row)
        yield None  # a stop may end it here
        if perf_counter() > told_at + _TELL_EVERY_S:
            told_at = perf_counter()
            yield replace(whole, done=len(rows), left=total)
    left = len(rows)
    for part in _parts(rows):
        left -= len(part)
        yield replace(whole, rows=tuple(part), done=total, left=left)


def _parts(rows: list) -> Iterator[list]:
    """The rows in parts that can be sent; one empty part if there is none."""
    part, size = [], 0
    for row in rows:
        row_bytes = len(msgspec.msgpack.encode(row))
        if row_bytes > _PART_BYTES // 2 and isinstance(row, ProgramNode):
            row, row_bytes = _slim(row), _PART_BYTES // 2
        if part and size + row_bytes > _PART_BYTES:
            yield part
            part, size = [], 0
        part.append(row)
        size += row_bytes
    yield part


def _slim(node: ProgramNode) -> ProgramNode:
    """The node with its first 50 inputs, 20 outputs and 5 attributes: with more it might not fit
    into a snapshot."""
    outputs = tuple(replace(value, shape=None) for value in node.outputs[:20])
    told = (("inputs", f"{len(node.inputs):,}, of which the first are told"),)
    return replace(
        node, inputs=node.inputs[:50], outputs=outputs, attributes=told + node.attributes[:5]
    )


def _frame(graph: ProgramGraph) -> ProgramGraph:
    return replace(graph, inputs=graph.inputs[:_MAX_ENDS], outputs=graph.outputs[:_MAX_ENDS])


def _with_rows(whole: ArtifactSnapshot, rows: list[_Row], left: int) -> ArtifactSnapshot:
    graph = whole.graph
    if graph is not None:
        graph = replace(
            graph,
            modules=tuple(row for row in rows if isinstance(row, ProgramModule)),
            nodes=tuple(row for row in rows if isinstance(row, ProgramNode)),
        )
    entries = tuple(row for row in rows if isinstance(row, ArtifactEntry))
    return replace(whole, entries=entries, graph=graph, left=left)


def _entry(entry: Entry, memory: Memory | None) -> ArtifactEntry:
    note = entry.note
    if memory is not None and not memory.is_exact:
        note = f"{note}; {_INEXACT}" if note else _INEXACT
    return ArtifactEntry(
        entry.key,
        entry.kind,
        entry.shape,
        entry.dtype,
        entry.size_bytes,
        entry.offset,
        entry.file,
        memory.shares if memory else "",
        entry.role,
        sendable(entry.text),
        note,
        entry.place is not None,
        entry.value,
        memory.added_bytes if memory else 0,
    )


def _metadata(artifact: Artifact) -> tuple[tuple[str, str], ...]:
    told, left = [], _METADATA_CHARS
    for name, text in artifact.metadata.items():
        left -= len(name) + len(text)
        if left < 0:
            told.append(("…", f"{len(artifact.metadata) - len(told):,} more"))
            break
        told.append((sendable(name), sendable(text)))
    return tuple(told)


def _totals(artifact: Artifact, memory: Mapping[str, Memory]) -> ArtifactTotals:
    return ArtifactTotals(
        tensors=len(memory),
        elements=sum(each.added_elements for each in memory.values()),
        tensor_bytes=sum(each.added_bytes for each in memory.values()),
        values=len(artifact.entries) - len(memory),
        nodes=len(artifact.graph.nodes) if artifact.graph else 0,
    )
