"""`tensorlab export`: a subject as a file, which a fresh process reads back and compares."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from app.commands.conversation import Conversation, EngineEnded, failure
from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from app.commands.paths import format_of, require_folder_of, require_utf8
from app.commands.report import number, write_report
from app.commands.target import Target, run_code, show_output
from engine.project import files
from engine.protocol import (
    ErrorSnapshot,
    ExportCommand,
    ExportSnapshot,
    ExportStageSnapshot,
)
from engine.protocol.exporting.formats import FORMATS, Dtype, Format

BY_SUFFIX: tuple[Format, ...] = ("pt", "safetensors", "py", "onnx", "pt2", "zip")
"""The formats that the suffix of a file names."""


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """`format` None: by the suffix of `out`. `weights` None: those beside the project, without
    these the initial ones. `opset` 0: torch's own."""

    out: Path
    format: Format | None = None
    weights: Path | None = None
    dtype: Dtype = ""
    opset: int = 0


def export(target: Target, options: ExportOptions, json_out: str | None) -> None:
    """Write a subject in a format, and report. Raises CommandFailure, also if what was read back
    differs."""
    path, project, weights = target.path, target.project, options.weights
    if weights is not None and not weights.is_file():
        raise CommandFailure(f"--weights {weights}: there is no such file.", BAD_ARGUMENTS)
    format_ = options.format or format_of(options.out, BY_SUFFIX)
    require_folder_of(options.out, is_folder=FORMATS[format_].is_folder)
    has_own = not target.is_code and format_ != "py" and files.weights_file(path).is_file()
    if weights is None and has_own:
        weights = files.weights_file(path)
    if weights is not None:
        require_utf8(weights, "--weights")
    command = ExportCommand(
        model=project.model,
        training=project.training,
        format=format_,
        path=str(options.out.absolute()),
        weights=str(weights.absolute()) if weights else "",
        subject=target.subject,
        objective=target.objective,
        dtype=options.dtype,
        opset=options.opset,
    )
    try:
        with Conversation("exporting") as engine:
            run_code(engine, target)
            report = exported(engine, command, weights or path)
    except EngineEnded as end:
        raise CommandFailure(f"{path}: {end}") from None
    if json_out is None:
        print(export_words(report))
    else:
        write_report(report, json_out)
    if not report["verified"]:
        raise CommandFailure(f"{options.out}: {_why_not(report)}")


def exported(engine: Conversation, command: ExportCommand, place: Path) -> dict:
    """The report on an export. Raises CommandFailure and EngineEnded."""
    for snapshot in engine.ask(command):
        show_output(snapshot)
        if isinstance(snapshot, ErrorSnapshot):
            if engine.interrupted:
                break
            raise failure(place, snapshot)
        if isinstance(snapshot, ExportStageSnapshot) and sys.stderr.isatty():
            print(f"{snapshot.words} …", file=sys.stderr)
        if isinstance(snapshot, ExportSnapshot):
            return _report(snapshot)
    raise CommandFailure(f"{place}: the export was stopped.")


def _report(snapshot: ExportSnapshot) -> dict:
    return {
        "path": snapshot.path,
        "format": snapshot.format,
        "files": {file.name: file.size_bytes for file in snapshot.files},
        "size_bytes": snapshot.size_bytes,
        "sha256": snapshot.sha256 or None,
        "verified": snapshot.verified,
        "max_abs_error": number(snapshot.max_abs_error),
        "max_rel_error": number(snapshot.max_rel_error),
        "batch_sizes": list(snapshot.batch_sizes),
        "seconds": snapshot.seconds,
        "model_ms": snapshot.model_ms,
        "export_ms": snapshot.export_ms,
        "opset": snapshot.opset or None,
        "differs": snapshot.differs or None,
        "unverified": snapshot.unverified or None,
        "notes": list(snapshot.notes),
        "keys": list(snapshot.keys),
        "renaming": snapshot.renaming or None,
    }


def _why_not(report: dict) -> str:
    if report["differs"]:
        return f"what was read back differs in {report['differs']}."
    return f"not verified. {report['unverified']}"


def export_words(report: dict) -> str:
    """The report in a few lines."""
    checksum = f", SHA-256 {report['sha256']}" if report["sha256"] else ""
    lines = [f"wrote {report['path']}: {report['size_bytes']:,} bytes{checksum}"]
    compared = f"largest difference {report['max_abs_error']}"
    if report["batch_sizes"]:
        sizes = ", ".join(map(str, report["batch_sizes"]))
        compared += (
            f", relative {report['max_rel_error']}; batch sizes {sizes};"
            f" {report['export_ms']:.3g} ms a call, the model {report['model_ms']:.3g} ms"
        )
    lines.append(f"loaded back and compared: {compared}")
    lines += [*report["notes"], *filter(None, [report["renaming"]])]
    return "\n".join(lines)
