"""The memory of one step, as the set-up runs it."""

from __future__ import annotations

from msgspec import Struct

from ...project.document import Model, TrainingSetup
from ...project.subject import CanvasSubject, Objective, Subject
from ..commands import Command
from ..snapshots import Snapshot


class MeasureStepCommand(Command, frozen=True, kw_only=True):
    """Run forward and backward of the first batch, with and without the modules of the set-up that
    compute their activations again -> StepMemorySnapshot. The model is as before afterwards. Not
    while a run goes on; one that is paused between two steps is not changed."""

    handler = "training.execution:measure_step"
    model: Model
    training: TrainingSetup
    subject: Subject = CanvasSubject()
    objective: Objective = Objective()


class StepBytes(Struct, frozen=True):
    """`kept` from forward for backward, and the `peak` of both, gradients among it."""

    kept: int
    peak: int


class StepMemorySnapshot(Snapshot, frozen=True, kw_only=True):
    """The memory of a step on a batch of `samples` samples: measured without computing activations
    again, predicted from that, and measured with computing them again."""

    samples: int
    without: StepBytes
    predicted: StepBytes
    measured: StepBytes
