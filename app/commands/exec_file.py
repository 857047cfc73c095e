"""`tensorlab exec`: runs a Python file in the engine as one cell, and reports its tensors."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import msgspec

from app.commands.conversation import Conversation, EngineEnded
from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from app.commands.paths import require_folder_of, require_utf8
from app.commands.report import write_report
from engine.protocol import (
    CellSnapshot,
    ErrorReport,
    ErrorSnapshot,
    OutputSnapshot,
    RunCellCommand,
    TensorReport,
    TensorsSnapshot,
)


def exec_file(path: Path, out: Path | None) -> None:
    """Run `path`, print its output, and write the report to `out`.

    Raises CommandFailure if the code raised or ended the engine; the report is written in either
    case.
    """
    require_utf8(path)
    if out is not None:
        require_folder_of(out, "--json")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CommandFailure(f"{path}: {error.strerror}.", BAD_ARGUMENTS) from None
    stdout: list[str] = []
    tensors: dict[str, TensorReport] = {}
    try:
        error = _run(importlib.util.decode_source(data), str(path), stdout, tensors)
    except (SyntaxError, UnicodeDecodeError) as undecodable:
        error = _encoding_error(data, undecodable)
    except EngineEnded as end:
        error = ErrorReport(type="EngineExit", message=f"{end.reason.title}. {end.reason.detail}")
    if out is not None:
        report = {
            "ok": error is None,
            "stdout": "".join(stdout),
            "error": error and {"type": error.type, "message": error.message, "line": error.line},
            "tensors": msgspec.to_builtins(tensors),
        }
        write_report(report, out)
    if error is not None:
        place = f"{path}:{error.line}" if error.line else str(path)
        raise CommandFailure(error.traceback.rstrip() or f"{place}: {error.type}: {error.message}")


def _run(
    source: str, name: str, stdout: list[str], tensors: dict[str, TensorReport]
) -> ErrorReport | None:
    """Run the file; return the error that ended it. Fills `stdout` and `tensors` as answers arrive.
    Raises EngineEnded."""
    command = RunCellCommand(source=source, filename=name, all_output=True, report_tensors=True)
    with Conversation("running your code") as engine:
        for snapshot in engine.ask(command):
            if isinstance(snapshot, OutputSnapshot):
                if snapshot.stream == "stdout":
                    stdout.append(snapshot.text)
                print(
                    snapshot.text,
                    end="",
                    flush=True,
                    file=sys.stderr if snapshot.stream == "stderr" else sys.stdout,
                )
            elif isinstance(snapshot, TensorsSnapshot):
                tensors.update(snapshot.tensors)
            elif isinstance(snapshot, CellSnapshot | ErrorSnapshot):
                return snapshot.error
    return None


def _encoding_error(data: bytes, error: SyntaxError | UnicodeDecodeError) -> ErrorReport:
    line = None
    if isinstance(error, UnicodeDecodeError):
        line = data[: error.start].count(b"\n") + 1
    return ErrorReport(type=type(error).__name__, message=str(error), line=line)
