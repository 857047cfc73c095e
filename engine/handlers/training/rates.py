"""The learning rate over a run, before it is trained."""

from __future__ import annotations

from collections.abc import Iterator

from ...lab import Lab
from ...protocol import PreviewRatesCommand, RatesSnapshot, Snapshot
from ...system.errors import LabError
from ...training.optimization.preview import rates_of
from ..subjects.find import subject_of


def preview_rates(lab: Lab, command: PreviewRatesCommand) -> Iterator[Snapshot]:
    """Raises LabError if the schedule cannot be made, or its rates are not known before."""
    setup = command.training
    batches = subject_of(lab, command).data().batches_per_epoch
    if batches is None:
        raise LabError("The data does not say how many batches it has.")
    steps, rates = zip(*rates_of(setup, batches), strict=True)
    total = setup.epochs * -(-batches // setup.accumulate)
    yield RatesSnapshot(steps=steps, rates=rates, total_steps=total)
