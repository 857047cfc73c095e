"""Checks before training."""

from __future__ import annotations

from collections.abc import Iterator

from ...lab import Lab
from ...protocol import CheckSnapshot, CheckTrainingCommand, Snapshot
from ...training.checks.checking import KINDS, Checking
from ..subjects.find import subject_of
from .at_rest import require_rest


def check_training(lab: Lab, command: CheckTrainingCommand) -> Iterator[Snapshot | None]:
    """Raises LabError while a run goes on, and if the model or its data cannot be trained."""
    require_rest(lab)
    subject = subject_of(lab, command)
    subject.check()
    objective = subject.objective()
    done = 0
    with subject.running(objective.generators):
        checking = Checking(subject.module, objective, command.training)
        for found in checking.run():
            if found is None:
                yield None
                continue
            done += 1
            check, curve = found
            yield CheckSnapshot(check=check, done=done, total=len(KINDS), curve=curve)
