"""The user's Python files that a run needs."""

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
from ...protocol import SweepCommand, TrainCommand
from ...runs.record import CodeFile

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


def files_that_ran(lab: Lab, wanted: Wanted) -> Iterator[CodeFile]:
    """The files needed, as they have run in this engine, and what they import."""
    for name in files_needed(wanted):
        file = lab.subjects.files.get(Path(name).absolute())
        if file is not None:
            yield CodeFile(str(file.path), file.digest)
            for imported, digest in file.imports.items():
                yield CodeFile(str(imported), digest)
