"""The way from a state of a run to one of its steps."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..project.document import TrainingSetup
from .checkpoints.checkpoint_files import Checkpoint
from .checkpoints.past import Change
from .objectives.objective import Objective


class Way(msgspec.Struct, frozen=True):
    """From a state that was kept to a step, by repetition. From there on the run has the set-up and
    the objective; `arrived` is called there. `changes` are those on the way."""

    start: Checkpoint
    step: int
    setup: TrainingSetup
    objective: Objective
    arrived: Callable[[], None]
    changes: tuple[Change, ...] = ()
