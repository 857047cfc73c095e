"""Answers that lead to a subject: a Python file that runs, what is shown, the usual step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torch import nn

from ...lab import Lab
from ...lab.holding import seen_and_held
from ...protocol import (
    FileSnapshot,
    RunFileCommand,
    ShowSubjectCommand,
    Snapshot,
    WriteStepCommand,
)
from ...subjects.python_file import objects_in
from ..subjects.find import subject_of


def run_file(lab: Lab, command: RunFileCommand) -> Iterator[Snapshot]:
    """Raises as `python_file.run_file` does."""
    path, output = Path(command.path).expanduser(), lab.output()
    with seen_and_held(lab, path, output) as around:
        file = lab.subjects.run_file(path, output, lab.control, around)
    yield FileSnapshot(
        path=str(path.absolute()),
        digest=file.digest,
        objects=objects_in(file),
        imports={str(path): digest for path, digest in file.imports.items()},
    )


def show_subject(lab: Lab, command: ShowSubjectCommand) -> Iterator[Snapshot]:
    """Nothing is looked up before `lab.subject` is."""

    def module() -> nn.Module:
        with lab.canvas.sheltered():
            return subject_of(lab, command).take()

    lab.subjects.shown = module
    yield from ()


def write_usual_step(lab: Lab, command: WriteStepCommand) -> Iterator[Snapshot]:
    """Raises LabError if there is no such subject or data, or no usual task fits."""
    yield subject_of(lab, command).usual_step()
