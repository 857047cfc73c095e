"""The results of an export, collected while it is written and read back."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ...exporting.verifying import Verifier
from ...lab import Lab
from ...protocol import ExportCommand
from .sources import Source


@dataclass
class Result:
    """The fields of an ExportSnapshot, as they become known. `done` of `stages` are over."""

    stages: int = 1
    done: int = 0
    files: list[Path] = field(default_factory=list)
    keys: tuple[str, ...] = ()
    verified: bool = False
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    batch_sizes: list[int] = field(default_factory=list)
    model_s: float = 0.0
    export_s: float = 0.0
    opset: int = 0
    differs: str = ""
    unverified: str = ""
    notes: list[str] = field(default_factory=list)


@dataclass
class Work:
    """An export that is under way. `verifier` reads what is written, `converter` makes ONNX of a
    program; each is None where it is not needed."""

    lab: Lab
    command: ExportCommand
    source: Source
    path: Path
    verifier: Verifier | None = None
    converter: Verifier | None = None
    result: Result = field(default_factory=Result)
