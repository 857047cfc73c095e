"""The user's Python files that a run needs: for other processes, and kept in the run's folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...lab import Lab
from ...project.document import Project, TrainingSetup
from ...project.subject import (
    Objective,
    Subject,
    expressions_used,
    files_of,
    split_reference,
    takes_setup_data,
)
from ...protocol import RunFileCommand, SweepCommand, TrainCommand
from ...runs.code import Ran

Wanted = TrainCommand | SweepCommand | Project
"""Each has the subject, the objective and the set-up of a run."""


def files_needed(wanted: Wanted) -> list[str]:
    """The files that have to run before a run can begin or go on."""
    texts = expressions_of(wanted)
    named = [reference[0] for text in texts if (reference := split_reference(text))]
    return list(dict.fromkeys([*files_of(wanted.subject, wanted.objective), *named]))


def expressions_of(wanted: Wanted) -> list[str]:
    """The expressions of the user's code that data and batches are had by."""
    of_code = expressions_used(wanted.subject, wanted.objective)
    given = wanted.training.data.loading.given.values()
    of_console = data_of_console(wanted.subject, wanted.objective, wanted.training)
    return [*of_console, *of_code, *given]


def data_of_console(subject: Subject, objective: Objective, setup: TrainingSetup) -> list[str]:
    """The expression of the set-up's data, if that is of the console and used."""
    data = setup.data
    is_used = data.kind == "console" and takes_setup_data(subject, objective)
    return [data.path] if is_used and data.path else []


def run_again(lab: Lab, wanted: Wanted) -> Iterator[RunFileCommand]:
    """The commands for the files that another process has to run: the same copies of files that are
    gone."""
    for name in files_needed(wanted):
        path = Path(name).absolute()
        file = lab.subjects.files.get(path)
        if file is None or file.path == path:
            yield RunFileCommand(path=name)
        else:
            yield RunFileCommand(path=name, copy=str(file.path), digest=file.digest)


def files_that_ran(lab: Lab, wanted: Wanted) -> Iterator[Ran]:
    """The files needed, as they have run in this engine, and what they import."""
    for name in files_needed(wanted):
        path = Path(name).absolute()
        file = lab.subjects.files.get(path)
        if file is not None and file.path == path:
            yield Ran(path, file.root, file.digest)
            for imported, digest in file.imports.items():
                yield Ran(imported, file.root, digest, imported=True)
