"""Checks before training."""

from __future__ import annotations

from collections.abc import Iterator

from ...lab import Lab
from ...models.check import require_runnable
from ...project.subject import CanvasSubject
from ...protocol import CheckSnapshot, CheckTrainingCommand, Snapshot
from ...training.checks.checking import KINDS, Checking
from ..subjects import find_subject, objective_of, running
from .at_rest import require_rest


def check_training(lab: Lab, command: CheckTrainingCommand) -> Iterator[Snapshot | None]:
    """Raises LabError while a run goes on, and if the model or its data cannot be trained."""
    require_rest(lab)
    if isinstance(command.subject, CanvasSubject):
        require_runnable(command.model, command.training)
    subject = find_subject(lab, command.subject, command.model, command.training)
    objective = objective_of(lab, subject, command.objective, command.model, command.training)
    done = 0
    with running(lab, command.training, objective.generators):
        checking = Checking(subject.module, objective, command.training)
        for found in checking.run():
            if found is None:
                yield None
                continue
            done += 1
            check, curve = found
            yield CheckSnapshot(check=check, done=done, total=len(KINDS), curve=curve)
