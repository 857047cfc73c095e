"""Answers about the console."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ..console.completion import complete
from ..console.elsewhere.handing import take
from ..console.tensor_report import report_tensors
from ..console.variables import ANSWER_S, list_variables
from ..lab import Lab
from ..lab.holding import shown_and_held
from ..operations.failures import raised_operands
from ..project.cells import source_title
from ..protocol import (
    MAX_SNAPSHOT_BYTES,
    CellSnapshot,
    CompleteCommand,
    CompletionsSnapshot,
    EnterFolderCommand,
    ErrorReport,
    ExampleSnapshot,
    FailedOperands,
    NewNamespaceCommand,
    ReadVariablesCommand,
    RecordCommand,
    RunCellCommand,
    RunExampleCommand,
    RunHeldCommand,
    Snapshot,
    TakeConsoleCommand,
    TensorReport,
    TensorsSnapshot,
    VariablesSnapshot,
)
from ..recording.light.pauses import UNSEEN
from ..recording.modes import WATCHING
from ..system.control import Control
from ..system.errors import LabError, error_report, sendable
from ..tensors.error_help import explain_error

EXAMPLE = "<example>"
"""The name of an example's code in tracebacks, and beside its graph."""


def take_console(lab: Lab, command: TakeConsoleCommand) -> Iterator[Snapshot]:
    """Raises LabError if the values cannot be made in this process."""
    try:
        data = Path(command.path).read_bytes()
    except OSError as error:
        raise LabError(f"{command.path} cannot be read: {error.strerror}.") from error
    take(lab.console.namespace, data, lab.output(), lab.control)
    yield from ()


def run_cell(lab: Lab, command: RunCellCommand) -> Iterator[Snapshot]:
    namespace = lab.console.namespace
    output = lab.output(command.all_output)
    cell = namespace.next_name(command.filename, command.source)
    title = source_title(cell)
    if command.model is not None and command.training is not None:
        lab.canvas.show(command.model, command.training)
    with shown_and_held(lab, namespace, title, output) as holder, lab.canvas.watched():
        error, name = namespace.run(command.source, command.filename, output, lab.control)
        new_weights = lab.canvas.new_weights()
    report = cell_error(error, name, lab.control)
    last = holder.loop.last(error, report)
    if last is not None:
        yield last
    if command.report_tensors:
        yield from _in_parts(report_tensors(namespace.tensors()))
    yield list_variables(namespace, lab.control)
    if new_weights is not None:
        yield new_weights
    yield CellSnapshot(ok=error is None, error=report, file=sendable(name))


def run_held(lab: Lab, command: RunHeldCommand) -> Iterator[Snapshot]:
    """Raises LabError if no code is held."""
    held = lab.console.held
    if held is None:
        raise LabError("The code goes on: nothing is held.", hint="Run this as a cell.")
    code, output = held
    error, name = code.run(command.source, output, lab.control)
    output.flush()
    yield list_variables(code.namespace, lab.control)
    yield CellSnapshot(ok=error is None, error=cell_error(error, name, lab.control))


def run_example(lab: Lab, command: RunExampleCommand) -> Iterator[Snapshot]:
    namespace = lab.console.begin_example(command.tab)
    error, name = namespace.run(command.source, EXAMPLE, lab.output(), lab.control)
    yield ExampleSnapshot(
        variables=list_variables(namespace, lab.control).variables,
        error=cell_error(error, name, lab.control),
    )


def cell_error(error: BaseException | None, cell: str, control: Control) -> ErrorReport | None:
    """The exception that ended a cell, in words. `cell` is the name that its frames carry."""
    if error is None:
        return None
    try:
        with control.time_limit(ANSWER_S):  # its __str__ may be the user's own
            report = error_report(error, lambda filename: filename == cell)
    except (TimeoutError, KeyboardInterrupt):
        silent = Exception("its message took too long").with_traceback(error.__traceback__)
        report = error_report(silent, lambda filename: filename == cell)
        report = msgspec.structs.replace(report, type=type(error).__name__)
    if isinstance(error, KeyboardInterrupt):
        return msgspec.structs.replace(report, hint="The code was stopped while it ran.")
    return msgspec.structs.replace(
        report, hint=report.hint or explain_error(error), operands=_operands(error, cell)
    )


def _operands(error: BaseException, cell: str) -> FailedOperands | None:
    try:
        return raised_operands(error, lambda filename: filename == cell, {*WATCHING, UNSEEN})
    except Exception:  # tensors of the user's own classes may raise; report the error anyway
        logging.getLogger(__name__).exception("The operands of an error could not be read.")
        return None


def enter_folder(lab: Lab, command: EnterFolderCommand) -> Iterator[Snapshot]:
    lab.console.namespace.folder.enter(command.folder)
    return iter(())


def begin_namespace(lab: Lab, command: NewNamespaceCommand) -> Iterator[VariablesSnapshot]:
    lab.console.begin_namespace()
    lab.values.statistics = None  # it may still be counting a tensor of the old namespace
    yield list_variables(lab.console.namespace)


def set_recording(lab: Lab, command: RecordCommand) -> Iterator[Snapshot]:
    lab.console.namespace.records = command.on
    return iter(())


def read_variables(lab: Lab, command: ReadVariablesCommand) -> Iterator[VariablesSnapshot]:
    yield list_variables(lab.console.namespace, lab.control)


def complete_source(lab: Lab, command: CompleteCommand) -> Iterator[CompletionsSnapshot]:
    try:
        with lab.control.time_limit(ANSWER_S):
            found = complete(command.source, command.cursor, lab.console.namespace.variables)
    except TimeoutError as error:
        raise LabError("The object takes too long to name its attributes.") from error
    yield found


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
