"""Answers about two subjects, or one before and after."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator

from ...errors import LabError, sendable
from ...lab import Lab
from ...project.document import Model
from ...protocol import (
    CompareSubjectsCommand,
    DifferenceSnapshot,
    KeepBeforeCommand,
    KeptSnapshot,
    OutputDifference,
    Snapshot,
)
from ...subjects.comparing import (
    arguments_in,
    module_differences,
    output_differences,
    weight_differences,
)
from ...subjects.subject import CodeModel
from ..subjects import code_model, first_batch, objective_of, running

MAX_TOLD = 400
"""The most differences of each kind, and the most outputs, that are sent; the rest are counted."""


def keep_before(lab: Lab, command: KeepBeforeCommand) -> Iterator[Snapshot]:
    """Raises LabError if there is no such subject, and if it cannot be copied."""
    subject = code_model(lab, command.subject, command.training)
    try:
        kept = copy.deepcopy(subject.module)
    except Exception as error:  # the user's own attributes may refuse
        raise LabError(
            f"{type(subject.module).__name__} cannot be copied: {error}",
            hint="copy.deepcopy must be able to copy it.",
        ) from error
    lab.subjects.before = CodeModel(f"{subject.title}, before", kept, {})
    yield KeptSnapshot(title=subject.title)


def compare_subjects(lab: Lab, command: CompareSubjectsCommand) -> Iterator[Snapshot]:
    """Raises LabError if there is no such subject, or no copy is kept. An error of the forward is
    told in the answer."""
    after = code_model(lab, command.subject, command.training)
    if command.other is None:
        before = lab.subjects.before
        if before is None:
            raise LabError("No copy is kept.", hint="Keep one first, then change the subject.")
    else:
        before = code_model(lab, command.other, command.training)
    outputs: list[OutputDifference] = []
    unrun = ""
    try:
        outputs = _outputs(lab, command, before, after)
    except LabError as error:
        unrun = f"{error} {error.hint}".strip()
    except Exception as error:  # the user's code may raise anything
        unrun = f"{type(error).__name__}: {error}"
    modules = module_differences(before.module, after.module)
    weights, equal_weights = weight_differences(before.module, after.module)
    yield DifferenceSnapshot(
        before=before.title,
        after=after.title,
        modules=tuple(modules[:MAX_TOLD]),
        module_count=len(modules),
        weights=tuple(weights[:MAX_TOLD]),
        weight_count=len(weights),
        equal_weights=equal_weights,
        outputs=tuple(outputs[:MAX_TOLD]),
        output_count=len(outputs),
        first=next((n for n, row in enumerate(outputs) if row.difference != 0.0), -1),
        unrun=sendable(unrun),
    )


def _outputs(
    lab: Lab, command: CompareSubjectsCommand, before: CodeModel, after: CodeModel
) -> list[OutputDifference]:
    if not command.objective.has_data:
        raise LabError("There is no input to compare outputs for.", hint="Name data under Train.")
    training = command.training
    objective = objective_of(lab, after, command.objective, Model(), training)
    with running(lab, training, objective.generators):
        batch = first_batch(objective.batches(0, 0))
        run = functools.partial(objective.outcome, batch)
        arguments = arguments_in(after.module, run)
        if arguments is None:
            raise LabError(
                f"The step does not call {after.title} itself, only parts of it.",
                hint="Outputs are compared for the arguments of its own forward.",
            )
        return output_differences(before.module, after.module, arguments)
