"""Answers about two subjects, or one before and after."""

from __future__ import annotations

from collections.abc import Iterator

from ...lab import Lab
from ...protocol import (
    CompareSubjectsCommand,
    DifferenceSnapshot,
    ErrorReport,
    KeepBeforeCommand,
    KeptSnapshot,
    OutputDifference,
    Snapshot,
)
from ...restoring.module_kept import ModuleState
from ...subjects.comparing import (
    Kept,
    arguments_in,
    module_differences,
    output_differences,
    weight_differences,
)
from ...system.errors import LabError
from ..subjects.find import find_subject, subject_of
from ..subjects.subject import Subject
from .reading import unrun_report

MAX_TOLD = 400
"""The most differences of each kind, and the most outputs, that are sent; the rest are counted."""


def keep_before(lab: Lab, command: KeepBeforeCommand) -> Iterator[Snapshot]:
    """Raises LabError if there is no such subject."""
    subject = subject_of(lab, command)
    lab.subjects.before = f"{subject.title}, before", ModuleState(subject.module)
    yield KeptSnapshot(title=subject.title)


def compare_subjects(lab: Lab, command: CompareSubjectsCommand) -> Iterator[Snapshot]:
    """Raises LabError if there is no such subject, or no copy is kept. An error of the forward is
    told in the answer."""
    after = subject_of(lab, command)
    title, before = _before(lab, command)
    outputs: list[OutputDifference] = []
    unrun: ErrorReport | None = None
    try:
        outputs = _outputs(before, after)
    except Exception as error:  # the user's code may raise anything
        unrun = unrun_report(error)
    modules = module_differences(before, after.module)
    weights, equal_weights = weight_differences(before, after.module)
    yield DifferenceSnapshot(
        before=title,
        after=after.title,
        modules=tuple(modules[:MAX_TOLD]),
        module_count=len(modules),
        weights=tuple(weights[:MAX_TOLD]),
        weight_count=len(weights),
        equal_weights=equal_weights,
        outputs=tuple(outputs[:MAX_TOLD]),
        output_count=len(outputs),
        first=next((n for n, row in enumerate(outputs) if row.difference != 0.0), -1),
        unrun=unrun,
    )


def _before(lab: Lab, command: CompareSubjectsCommand) -> tuple[str, Kept]:
    if command.other is not None:
        other = find_subject(lab, command.other, command.model, command.training)
        return other.title, other.module
    if lab.subjects.before is None:
        raise LabError("No copy is kept.", hint="Keep one first, then change the subject.")
    return lab.subjects.before


def _outputs(before: Kept, after: Subject) -> list[OutputDifference]:
    if not after.has_data:
        raise LabError("There is no input to compare outputs for.", hint="Name data under Train.")
    with after.on_first_batch() as (_, run):
        arguments = arguments_in(after.module, run)
        if arguments is None:
            raise LabError(
                f"The step does not call {after.title} itself, only parts of it.",
                hint="Outputs are compared for the arguments of its own forward.",
            )
        return output_differences(before, after.module, arguments)
