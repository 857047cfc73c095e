"""The way from a state of a run to one of its steps."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..project.document import TrainingSetup
from .checkpoints.checkpoint_files import Checkpoint
from .checkpoints.past import Change
from .objectives.objective import Objective


class Way(msgspec.Struct, frozen=True):
    """The steps from the state `start` to `step` are repeated, with the `changes` of the set-up
    that were made between them. At `step` `arrived` is called, and from there on the run has
    `setup` and `objective`."""

    start: Checkpoint
    step: int
    setup: TrainingSetup
    objective: Objective
    arrived: Callable[[], None]
    changes: tuple[Change, ...] = ()
