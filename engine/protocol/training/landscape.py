"""A slice of the loss landscape: the command, and the points as they come."""

from __future__ import annotations

from ...project.document import Model, TrainingSetup
from ...project.subject import CanvasSubject, Objective, Subject
from ..commands import Command
from ..snapshots import Snapshot

MAX_POINTS_ALONG = 101
"""The most points along a direction: a plane of them has ten thousand."""


class LandscapeCommand(Command, frozen=True, kw_only=True):
    """Compute the loss around the live weights -> LandscapeSnapshots, the last with `done` equal to
    the number of points. Weights, gradients, buffers, modes and random numbers are as before
    afterwards. A stop signal ends it. Not while a run goes on; one that is paused between two
    steps is not changed.

    The loss is the mean over the first `batches` of the training part, in eval mode. It is taken at
    `points` multiples from -span to span of one random direction, with `is_plane` of two. Each
    filter of a direction has the norm of the filter of the weights.
    """

    handler = "training.pictures.landscape:read_landscape"
    model: Model
    training: TrainingSetup
    subject: Subject = CanvasSubject()
    objective: Objective = Objective()
    is_plane: bool = False
    points: int = 31
    span: float = 1.0
    batches: int = 4
    seed: int = 0


class LandscapeSnapshot(Snapshot, frozen=True, kw_only=True):
    """`losses` of the points so far, `first` of them left out because an earlier snapshot had them.
    In a plane the first direction changes from row to row, the second within a row. `along` are the
    multiples of each direction. `samples` is how many the loss is a mean of."""

    along: tuple[float, ...]
    is_plane: bool
    first: int
    losses: tuple[float, ...]
    total: int
    samples: int = 0
