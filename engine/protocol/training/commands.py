"""Commands about a run of Train."""

from __future__ import annotations

from typing import Literal

from ...project.document import Model, TrainingSetup
from ...project.subject import CanvasSubject, Objective, Subject
from ...project.sweeps.sweep import Sweep
from ..commands import Command


class TrainCommand(Command, frozen=True, kw_only=True):
    """Train a subject: answered with TrainingSnapshots, at most 30 a second, until the run has
    finished, failed or been stopped. A subject that is code is trained for `objective`; the canvas
    has its own in `model` and `training`.

    The run begins with the live weights; with `fresh`, they are initialised from `training.seed`
    first. With `checkpoint` (a path), it goes on from that file instead. With `paused`, it waits
    before the first step for `StepTrainingCommand` or `ContinueTrainingCommand`.

    A new run gets a folder of its own in the folder `runs` ("": in the data folder), or the folder
    `folder`, which need not exist. A run that goes on stays in its folder.

    With `to_step`, the last run goes to that step, back or on, and pauses there: it begins at the
    newest state in memory that is not after it, and repeats the steps between. From there on it has
    this set-up and objective. A step back gives the run a new id.

    With `find_divergence`, the last run, which has diverged, is repeated from a state in memory up
    to the first number that is not finite, and held there before the update.

    With several `processes` in `training`, ranks of this machine train it. Such a run does
    not go to one of its steps.
    """

    handler = "training.train:train"
    model: Model
    training: TrainingSetup
    checkpoint: str = ""
    paused: bool = False
    fresh: bool = False
    to_step: int | None = None
    runs: str = ""
    folder: str = ""
    find_divergence: bool = False
    subject: Subject = CanvasSubject()
    objective: Objective = Objective()


class SweepCommand(TrainCommand, frozen=True, kw_only=True):
    """Train the subject once for each trial of a sweep, from fresh weights, each in a run of its
    own -> the TrainingSnapshots of these runs, one after the other. Afterwards the model has the
    weights again that it had before."""

    handler = "training.sweeps.sweep:sweep"
    sweep: Sweep


class TakeConsoleCommand(Command, frozen=True, kw_only=True):
    """Give the console the values that the engine which has started this process left in the file
    `path`."""

    handler = "console:take_console"
    path: str


StepUnit = Literal["op", "module", "phase", "batch", "step", "epoch"]


class StepTrainingCommand(Command, frozen=True, kw_only=True):
    """Let the paused run, or the loop that is held, go on by one optimizer step. A run of Train
    also goes on to the end of its epoch, or only to the end of the next phase of its step
    (zero_grad, forward, loss, backward, step). Inside of forward and loss it is held after each
    call of torch (`op`) or where a module has returned; inside of backward after each node of its
    graph, or the last one in a row of a module."""

    by: StepUnit = "step"


class ContinueTrainingCommand(Command, frozen=True, kw_only=True):
    """Let the paused run, or the loop that is held, go on."""


class FindCheckpointCommand(Command, frozen=True, kw_only=True):
    """Look for the newest checkpoint, of an earlier start of the program too, from which a run of
    this subject with this set-up can go on -> CheckpointSnapshot. It is of a run in the folder
    `runs`, or in the data folder; with `folder`, of this run."""

    handler = "training.train:find_checkpoint"
    model: Model
    training: TrainingSetup
    subject: Subject = CanvasSubject()
    runs: str = ""
    folder: str = ""


class AdjustTrainingCommand(Command, frozen=True, kw_only=True):
    """Give the run under way what `training` says of holding it, and the optimizer's parameters,
    from its next step on. The run keeps everything else. Without a run nothing happens; another
    optimizer's parameters are not taken."""

    handler = "training.train:adjust"
    training: TrainingSetup


WhichWeights = Literal["best", "averaged", "last"]


class ChooseWeightsCommand(Command, frozen=True, kw_only=True):
    """Load weights of the last run, which has ended, into its model: those of its best epoch,
    the averaged ones, or those that it ended with -> WeightsSnapshot."""

    handler = "training.weights:choose_weights"
    which: WhichWeights


class PreviewRatesCommand(Command, frozen=True, kw_only=True):
    """Compute the learning rate over a run of this set-up, without training -> RatesSnapshot."""

    handler = "training.rates:preview_rates"
    model: Model
    training: TrainingSetup
    subject: Subject = CanvasSubject()
    objective: Objective = Objective()
