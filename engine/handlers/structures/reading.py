"""Answers about the structure of a subject: its modules, parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...lab import Lab
from ...protocol import (
    MAX_SNAPSHOT_BYTES,
    ErrorReport,
    InitPreviewSnapshot,
    ModuleRow,
    PreviewInitCommand,
    ReadStructureCommand,
    Snapshot,
    StructureSnapshot,
    WatchCommand,
    WatchedSnapshot,
    WeightRow,
)
from ...recording.compiled import own_path
from ...subjects.calls import calls_in
from ...subjects.initial_values import preview
from ...subjects.structure import bare_tensors, module_rows, totals, unregistered, weight_rows
from ...system.errors import LabError, error_report, sendable
from ...system.user_files import is_user_file
from ...tensors.error_help import explain_error
from ...training.objectives.usual_steps import described
from ..subjects.find import subject_of


def read_structure(lab: Lab, command: ReadStructureCommand) -> Iterator[Snapshot]:
    """Raises LabError if there is no such subject, and what its code raises. Data that cannot be
    had, and a step that fails, are told in the answer."""
    subject = subject_of(lab, command)
    module, batch, calls, unrun = subject.module, "", {}, None
    if subject.has_data:
        try:
            with subject.on_first_batch() as (first, run):
                batch = described(first)
                calls = calls_in(module, run)
        except Exception as error:  # the user's code may raise anything
            unrun = unrun_report(error)
    optimizers = subject.optimizers()
    watching = lab.subjects.watching
    whole = StructureSnapshot(
        title=subject.title,
        totals=totals(module),
        batch=batch,
        unrun=unrun,
        made=subject.made,
        optimizers=tuple(map(sendable, optimizers)),
        unregistered=unregistered(module),
        bare=bare_tensors(module),
        watched=watching.paths if watching.subject == command.subject else (),
    )
    yield from structure_in_parts(
        whole, module_rows(module, calls), weight_rows(module, optimizers)
    )


def unrun_report(error: Exception) -> ErrorReport:
    """Why a step did not run, with the line of the user's code and a hint."""
    report = error_report(error, is_user_file)
    return msgspec.structs.replace(report, hint=report.hint or explain_error(error))


def watch(lab: Lab, command: WatchCommand) -> Iterator[Snapshot]:
    """Raises LabError if there is no such subject or module, and for too many modules."""
    watching = lab.subjects.watching
    watching.watch(command.subject, subject_of(lab, command).module, command.paths)
    yield WatchedSnapshot(paths=watching.paths)


def preview_init(lab: Lab, command: PreviewInitCommand) -> Iterator[Snapshot]:
    """Raises LabError if there is no such subject, function or tensor, and for arguments that are
    not constants."""
    module = subject_of(lab, command).module
    tensors = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    tensors = {own_path(name): tensor for name, tensor in tensors.items()}
    if missing := [name for name in command.names if name not in tensors]:
        raise LabError(f"There is no parameter or buffer `{missing[0]}`.", hint="Choose another.")
    chosen = {name: tensors[name] for name in command.names}
    yield InitPreviewSnapshot(rows=tuple(preview(command.function, command.arguments, chosen)))


def structure_in_parts(
    whole: StructureSnapshot, modules: list[ModuleRow], weights: list[WeightRow]
) -> Iterator[StructureSnapshot]:
    """The structure in snapshots that can be sent; the last has `left` 0."""
    rows: list[ModuleRow | WeightRow] = [*modules, *weights]
    part: list[ModuleRow | WeightRow] = []
    size, left = 0, len(rows)
    for row in rows:
        row_bytes = len(msgspec.msgpack.encode(row))
        if part and size + row_bytes > MAX_SNAPSHOT_BYTES // 2:
            left -= len(part)
            yield _with_rows(whole, part, left)
            part, size = [], 0
        part.append(row)
        size += row_bytes
    yield _with_rows(whole, part, 0)


def _with_rows(
    whole: StructureSnapshot, rows: list[ModuleRow | WeightRow], left: int
) -> StructureSnapshot:
    return msgspec.structs.replace(
        whole,
        modules=tuple(row for row in rows if isinstance(row, ModuleRow)),
        weights=tuple(row for row in rows if isinstance(row, WeightRow)),
        left=left,
    )
