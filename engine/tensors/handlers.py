"""Answers about the console."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ..errors import error_report, sendable
from ..lab import Lab
from ..output import Output
from ..protocol import (
    MAX_SNAPSHOT_BYTES,
    CellSnapshot,
    OutputSnapshot,
    RunCellCommand,
    Snapshot,
    TensorReport,
    TensorsSnapshot,
)
from .namespace import Namespace
from .report import report_tensors


def run_cell(lab: Lab, command: RunCellCommand) -> Iterator[Snapshot]:
    if lab.namespace is None:
        lab.namespace = Namespace()
    output = Output(lambda stream, text: lab.emit(OutputSnapshot(stream=stream, text=text)))
    error, name = lab.namespace.run(command.source, command.filename, output, lab.control)
    report = None
    if error is not None:
        report = error_report(error, lambda filename: filename == name)
        if isinstance(error, KeyboardInterrupt):
            report = msgspec.structs.replace(report, hint="The code was stopped while it ran.")
    yield from _in_parts(report_tensors(lab.namespace.tensors()))
    yield CellSnapshot(ok=error is None, error=report)


def _in_parts(reports: dict[str, TensorReport]) -> Iterator[TensorsSnapshot]:
    part: dict[str, TensorReport] = {}
    part_bytes = 0
    for name, report in reports.items():
        size_bytes = len(msgspec.msgpack.encode((sendable(name), report)))
        if part and part_bytes + size_bytes > MAX_SNAPSHOT_BYTES // 2:
            yield TensorsSnapshot(tensors=part)
            part, part_bytes = {}, 0
        part[sendable(name)] = report
        part_bytes += size_bytes
    if part:
        yield TensorsSnapshot(tensors=part)
