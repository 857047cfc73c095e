"""What the model predicts for the samples of its data."""

from __future__ import annotations

import math
from typing import Literal

from msgspec import Struct

from ...project.document import Model, TrainingSetup
from ...project.subject import CanvasSubject, Objective, Subject
from ..commands import Command
from ..dataset_messages import SampleImage
from ..snapshots import Snapshot

MAX_MATRIX = 40
"""The most classes for which there is a confusion matrix."""
SAMPLES_SHOWN = 24
MAX_POINTS = 1000


class ReadPredictionsCommand(Command, frozen=True, kw_only=True):
    """Predict the samples of a part of the data with the live weights -> PredictionsSnapshot. The
    run, its random numbers and the model's mode stay as they are.

    `actual` and `predicted` choose the samples of these classes (None: of all). Samples come with
    the largest loss first, from number `first` on.
    """

    handler = "training.pictures.predictions:read_predictions"
    newest_only = True
    model: Model
    training: TrainingSetup
    subject: Subject = CanvasSubject()
    objective: Objective = Objective()
    part: Literal["validation", "training"] = "validation"
    actual: int | None = None
    predicted: int | None = None
    first: int = 0


class PredictedSample(Struct, frozen=True):
    """A sample by its number in its part. `chance` is the probability of the predicted class; None
    for numbers. An image is shown as `image`, other samples as `text`."""

    number: int
    target: str
    predicted: str
    is_right: bool
    loss: float
    chance: float | None
    image: SampleImage | None
    text: str


class Plane(Struct, frozen=True):
    """The predictions over the plane of two features. `classes` has the likeliest class of each of
    side * side points, in rows from top to bottom, and `chances` its probability times 255;
    `points` are samples (x, y, class), the wrong ones in `wrong` by number. The axes go from left
    to right and from bottom to top."""

    left: float
    right: float
    bottom: float
    top: float
    side: int
    classes: bytes
    chances: bytes
    points: tuple[tuple[float, float, int], ...]
    wrong: tuple[int, ...]


class PredictionsSnapshot(Snapshot, frozen=True, kw_only=True):
    """Predictions for `samples` of the part's `total` samples, with the weights after `step` steps
    of the run.

    `loss` is their mean. For classes, `counts[i][j]` says how often class i was predicted as j
    (empty for more than MAX_MATRIX), and `accuracy` is the share that is right; for numbers,
    `pairs` are targets and predictions of the first ones, and `r2` is over all. `shown` are some
    of the `matching` samples. `plane` comes with samples of two features and their classes.
    """

    step: int
    part: Literal["validation", "training"]
    samples: int
    total: int
    loss: float
    classes: tuple[str, ...] = ()
    accuracy: float = math.nan
    counts: tuple[tuple[int, ...], ...] = ()
    pairs: tuple[tuple[float, float], ...] = ()
    r2: float = math.nan
    matching: int = 0
    shown: tuple[PredictedSample, ...] = ()
    plane: Plane | None = None
