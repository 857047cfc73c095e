"""The learning rate over a run, before it is trained."""

from __future__ import annotations

from collections.abc import Iterator

from ...datasets.load import load_dataset
from ...errors import LabError
from ...lab import Lab
from ...project.subject import CanvasSubject
from ...protocol import PreviewRatesCommand, RatesSnapshot, Snapshot
from ...training.optimization.preview import rates_of
from ..subjects import find_subject, objective_of


def preview_rates(lab: Lab, command: PreviewRatesCommand) -> Iterator[Snapshot]:
    """Raises LabError if the schedule cannot be made, or its rates are not known before."""
    setup = command.training
    if isinstance(command.subject, CanvasSubject) and not setup.data.loading.given:
        batches = load_dataset(setup.data).batches(setup.batch_size)
    else:
        subject = find_subject(lab, command.subject, command.model, setup)
        objective = objective_of(lab, subject, command.objective, command.model, setup)
        batches = objective.batches_per_epoch
    if batches is None:
        raise LabError("The data does not say how many batches it has.")
    steps, rates = zip(*rates_of(setup, batches), strict=True)
    total = setup.epochs * -(-batches // setup.accumulate)
    yield RatesSnapshot(steps=steps, rates=rates, total_steps=total)
