"""Exports: write the files of a format, then let a fresh process read them and compare."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

from ...exporting.verifying import Verifier
from ...lab import Lab
from ...protocol import ExportCommand, ExportSnapshot, ExportStageSnapshot, Snapshot, WrittenFile
from ...protocol.exporting.formats import CASTING, FORMATS, KEEPING, Format
from ...system.errors import LabError
from .programs import write_and_run
from .results import Work
from .sources import source_of
from .weight_exports import write_and_read

ONNX_PACKAGES = ("onnx", "onnxscript", "onnxruntime")


def export(lab: Lab, command: ExportCommand) -> Iterator[Snapshot]:
    """Write the files and answer with an ExportSnapshot. An object of the user's code takes
    over the weights of `command.weights`; of what the program makes, another one has them.

    Raises LabError if the model cannot be built, `command.weights` does not fit it, the format
    cannot hold it, or the path cannot be written; KeyboardInterrupt if it is cancelled, and then
    leaves what was at the path.
    """
    begun = perf_counter()
    _check_options(command)
    source = source_of(lab, command)
    path = Path(command.path).expanduser().absolute()
    with ExitStack() as stack:
        verifier, converter = (
            stack.enter_context(Verifier()) if wanted else None
            for wanted in (command.verify, command.format == "onnx")
        )
        work = Work(lab, command, source, path, verifier, converter)
        write = write_and_read if FORMATS[command.format].group == "Weights" else write_and_run
        result = work.result
        for words in write(work):
            done, stages = result.done, result.stages
            yield ExportStageSnapshot(words=words, done=done, stages=stages)
            if lab.control.stop.is_set() and not lab.is_training:  # else it is meant for the run
                raise KeyboardInterrupt
            result.done += 1
    files = [file for file in result.files if file.is_file()]
    yield ExportSnapshot(
        path=str(path),
        format=command.format,
        size_bytes=sum(file.stat().st_size for file in files),
        sha256=_digest(path) if path.is_file() else "",
        files=tuple(
            WrittenFile(file.relative_to(path.parent).as_posix(), file.stat().st_size)
            for file in files
        ),
        max_abs_error=result.max_abs_error,
        max_rel_error=result.max_rel_error,
        verified=result.verified,
        batch_sizes=tuple(result.batch_sizes),
        model_ms=result.model_s * 1000,
        export_ms=result.export_s * 1000,
        opset=result.opset,
        differs=result.differs,
        unverified=result.unverified,
        notes=tuple(result.notes),
        keys=result.keys,
        renaming=source.renaming,
        seconds=perf_counter() - begun,
    )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def refusal_of(format: Format) -> LabError | None:
    """Why no subject can have the format here."""
    missing = [name for name in ONNX_PACKAGES if importlib.util.find_spec(name) is None]
    if format == "onnx" and missing:
        return LabError(
            f"ONNX needs packages that are not installed: {', '.join(missing)}.",
            hint=f"pip install {' '.join(missing)}",
        )
    return None


def _check_options(command: ExportCommand) -> None:
    refused = refusal_of(command.format)
    if refused is not None:
        raise refused
    if command.dtype and command.format in KEEPING:
        raise LabError(
            f"{FORMATS[command.format].title} has no dtype to choose. Its numbers are"
            f" {KEEPING[command.format]}.",
            hint=f"A dtype is for {', '.join(CASTING)}.",
        )
    if command.dtype == "bfloat16" and command.format == "onnx" and command.verify:
        raise LabError(
            "ONNX Runtime has no bfloat16 on a CPU, so the file could not be run and verified.",
            hint="Choose float16, or torch.export (.pt2), which has it.",
        )
    if command.opset and command.format != "onnx":
        raise LabError("Only ONNX has an opset.", hint="Leave the opset away.")
