"""What the window asks of a model: a check after every edit, new weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..protocol import CheckModelCommand, InitialiseCommand, Snapshot, WeightsSnapshot
from .check import check
from .live import LiveModel

if TYPE_CHECKING:
    from ..lab import Lab


def check_model(lab: Lab, command: CheckModelCommand) -> Iterator[Snapshot]:
    """Answer with a ModelSnapshot; the live model is left alone."""
    yield check(command.model, command.training)


def initialise(lab: Lab, command: InitialiseCommand) -> Iterator[Snapshot]:
    """Forget all weights and answer with a WeightsSnapshot. Raises LabError as LiveModel does."""
    seed = command.training.seed
    if lab.live is None:
        lab.live = LiveModel(command.model, seed)
    else:
        lab.live.reset(command.model, seed)
    yield WeightsSnapshot(origin=f"initialised with seed {seed}", parameters=lab.live.parameters)
