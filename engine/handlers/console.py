"""Answers about the console."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import msgspec

from ..console.completion import complete
from ..console.namespace import Namespace
from ..console.output import Output
from ..console.tensor_report import report_tensors
from ..console.variables import list_variables
from ..errors import error_report, sendable
from ..lab import Lab
from ..protocol import (
    MAX_SNAPSHOT_BYTES,
    CellSnapshot,
    CompleteCommand,
    CompletionsSnapshot,
    ErrorReport,
    FailedOperands,
    NewNamespaceCommand,
    OutputSnapshot,
    ReadVariablesCommand,
    RunCellCommand,
    Snapshot,
    TensorReport,
    TensorsSnapshot,
    VariablesSnapshot,
)
from ..recording.modes import WATCHING
from ..tensors.error_help import explain_error
from ..tensors.failures import raised_operands


def run_cell(lab: Lab, command: RunCellCommand) -> Iterator[Snapshot]:
    namespace = lab.console.namespace
    output = Output(lambda stream, text: lab.emit(OutputSnapshot(stream=stream, text=text)))
    error, name = namespace.run(command.source, command.filename, output, lab.control)
    report = cell_error(error, name)
    yield from namespace_snapshots(namespace)
    yield CellSnapshot(ok=error is None, error=report)


def cell_error(error: BaseException | None, cell: str) -> ErrorReport | None:
    """The exception that ended a cell, in words. `cell` is the name that its frames carry."""
    if error is None:
        return None
    report = error_report(error, lambda filename: filename == cell)
    if isinstance(error, KeyboardInterrupt):
        return msgspec.structs.replace(report, hint="The code was stopped while it ran.")
    return msgspec.structs.replace(
        report, hint=report.hint or explain_error(error), operands=_operands(error, cell)
    )


def namespace_snapshots(namespace: Namespace) -> Iterator[Snapshot]:
    """The tensors and variables that a cell has left."""
    yield from _in_parts(report_tensors(namespace.tensors()))
    yield list_variables(namespace)


def _operands(error: BaseException, cell: str) -> FailedOperands | None:
    try:
        return raised_operands(error, lambda filename: filename == cell, WATCHING)
    except Exception:  # tensors of the user's own classes may raise; report the error anyway
        logging.getLogger(__name__).exception("The operands of an error could not be read.")
        return None


def begin_namespace(lab: Lab, command: NewNamespaceCommand) -> Iterator[VariablesSnapshot]:
    lab.console.begin_namespace()
    lab.values.statistics = None  # it may still be counting a tensor of the old namespace
    yield list_variables(lab.console.namespace)


def read_variables(lab: Lab, command: ReadVariablesCommand) -> Iterator[VariablesSnapshot]:
    yield list_variables(lab.console.namespace)


def complete_source(lab: Lab, command: CompleteCommand) -> Iterator[CompletionsSnapshot]:
    yield complete(command.source, command.cursor, lab.console.namespace.variables)


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
