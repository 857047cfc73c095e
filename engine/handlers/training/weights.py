"""Which of the weights that a run has had its model has now."""

from __future__ import annotations

from collections.abc import Iterator

from ...lab import Lab
from ...protocol import ChooseWeightsCommand, Snapshot, WeightsSnapshot
from ...system.errors import LabError
from ...training.run import TrainingRun


def choose_weights(lab: Lab, command: ChooseWeightsCommand) -> Iterator[Snapshot]:
    """Raises LabError without a run that has ended, or without such weights."""
    run = lab.run
    if not isinstance(run, TrainingRun) or lab.is_training:
        raise LabError("No run has ended whose weights could be loaded.", hint="Train first.")
    origin = run.weights.choose(command.which)
    count = sum(parameter.numel() for parameter in run.loop.model.parameters())
    yield WeightsSnapshot(origin=origin, parameters=count, learnt=True)
