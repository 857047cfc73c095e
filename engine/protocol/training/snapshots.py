"""Progress of runs and loops, and their checkpoints."""

from __future__ import annotations

from math import nan
from typing import Literal

from msgspec import Struct, field

from ...project.step_order import PHASES, Phase
from ..snapshots import Snapshot
from ..values import ErrorReport

TrainingState = Literal["running", "paused", "finished", "stopped", "failed"]


GROUP_RATE = "lr of "
"""A named figure that begins so is the learning rate of the module whose path follows."""


LOSS_PART = "loss: "
"""A figure of a loop that begins so is one of several losses of a step; the user's name of it
follows. The loss of the step is their sum."""


class StepColumns(Struct, frozen=True):
    """New optimizer steps since the last snapshot, with one entry per step in every column.

    `loss` and `accuracy` (0 to 1) are of the step's batch, before its update; `gradient_norm` is
    the 2-norm over all parameters. `step_ms` is wall clock, on CUDA the time on the device.
    `rss_bytes` of the engine process is read once per snapshot; so are `cuda_allocated_bytes` and
    `cuda_reserved_bytes` and `gpu_percent`, the share of time in which a kernel of any program ran,
    on CUDA (empty columns elsewhere). `samples_per_second` is that of the last snapshot. `step` has
    all of the first thousand steps; of later, faster ones it has 500 a second. `accuracy` is NaN
    for a task without one, the speed and the use while they are not known; `figures` are the
    figures that the user's step names, NaN where it gave none. Of a loop, `loss` and
    `gradient_norm` are None where they are not known.
    """

    step: tuple[int, ...] = ()
    loss: tuple[float | None, ...] = ()
    accuracy: tuple[float, ...] = ()
    gradient_norm: tuple[float | None, ...] = ()
    learning_rate: tuple[float, ...] = ()
    step_ms: tuple[float, ...] = ()
    rss_bytes: tuple[int, ...] = ()
    cuda_allocated_bytes: tuple[int, ...] = ()
    cuda_reserved_bytes: tuple[int, ...] = ()
    samples_per_second: tuple[float, ...] = ()
    gpu_percent: tuple[float, ...] = ()
    figures: dict[str, tuple[float, ...]] = {}


class EpochRow(Struct, frozen=True):
    """Means over one epoch; accuracies are 0 to 1, NaN for a task without one. `step` is the global
    step at the epoch's end. `train_figures` and `validation_figures` are named by the user's step.
    """

    epoch: int
    step: int
    train_loss: float
    train_accuracy: float
    validation_loss: float
    validation_accuracy: float
    train_figures: dict[str, float] = {}
    validation_figures: dict[str, float] = {}


class TrainingMemory(Struct, frozen=True):
    """Bytes of unique storages that training holds: the model's parameters and buffers, the
    gradients, and the optimizer's state (Adam: two moments per parameter)."""

    parameter_bytes: int = 0
    buffer_bytes: int = 0
    gradient_bytes: int = 0
    optimizer_bytes: int = 0


class GpuMemory(Struct, frozen=True):
    """The memory of a GPU that all programs take. `problem` says why its use is not known."""

    used_bytes: int
    total_bytes: int
    problem: str = ""


class StepNumbers(Struct, frozen=True):
    """The step `number` (from 1), of whose phases those in `done` have run, of all in `order`.

    `prediction` is the shape of forward's result on the newest of the step's `batches`, of which
    `batches_done` have a loss; () if it is not known. `loss` is the mean over the step's samples so
    far, `gradient_norm` the 2-norm of all gradients before clipping, `update_norm` that of the
    change of all parameters; None before there is one, and where there are no gradients. Of the
    phases in `done`, the numbers of `unmeasured` were not taken: that step ran at full speed, or
    its parameters are shared out over ranks. `place` says in words where the step is held inside of
    a phase; empty if it is not.
    """

    number: int
    done: tuple[Phase, ...]
    order: tuple[Phase, ...] = PHASES
    batches_done: int = 0
    batches: int = 1
    prediction: tuple[int, ...] = ()
    loss: float | None = None
    gradient_norm: float | None = None
    update_norm: float | None = None
    place: str = ""
    unmeasured: tuple[Phase, ...] = ()


WatchKind = Literal[
    "not_finite",
    "loss_spike",
    "gradient_norm",
    "ratio_above",
    "ratio_below",
    "dead_units",
    "unchanged",
]


class Hold(Struct, frozen=True):
    """Why a run is held at step `step` (from 1): `text` says what was seen, with numbers, `hint`
    what to try. `module` or `parameter` is the path of the part at fault; `file` and `line` (from
    1) those of the user's code. Empty and 0 where there is none."""

    kind: WatchKind
    step: int
    text: str
    hint: str
    module: str = ""
    parameter: str = ""
    file: str = ""
    line: int = 0


class RunMark(Struct, frozen=True):
    """Something that was changed after `step` optimizer steps, in words."""

    step: int
    text: str


class RunSnapshot(Snapshot, frozen=True, kw_only=True):
    """Progress of a run: `step` of `total_steps` done, in epoch `epoch` of `epochs` (1-based).
    `total_steps` is 0 if the number is not known, `epochs` if the run has none.

    `samples_per_second` is the speed with as many samples per step as there were on average, 0 if
    it is not known. `steps` and `epoch_rows` hold only what is new since the last snapshot of this
    run (after a resume, the first one holds all). `remaining_s` is an estimate; None if there is
    none yet. `error` says why a run "failed"; in any other state it is a warning, and the run goes
    on. `gpu` is that of the device; None without CUDA. `marks` are all of the run's.
    """

    run: str
    state: TrainingState
    step: int
    total_steps: int = 0
    epoch: int = 0
    epochs: int = 0
    steps_per_second: float
    samples_per_second: float = 0.0
    remaining_s: float | None = None
    steps: StepColumns
    epoch_rows: tuple[EpochRow, ...] = ()
    device: str
    error: ErrorReport | None = None
    memory: TrainingMemory = TrainingMemory()
    gpu: GpuMemory | None = None
    marks: tuple[RunMark, ...] = ()


class TrialProgress(Struct, frozen=True):
    """A run is trial `number` (from 1) of a sweep of `trials`, with these values in words. `best`
    is the number of the best trial so far, 0 without one, with its `value` of `figure`.
    `state` says how the trial has ended; a sweep that goes on counts as a run that does.
    `has_ended`: no trial follows, and the model has its weights of before the sweep again."""

    number: int
    trials: int
    values: str
    figure: str
    best: int = 0
    value: float = nan
    state: Literal["running", "finished", "stopped", "failed", "pruned"] = "running"
    has_ended: bool = False


class BestSoFar(Struct, frozen=True):
    """The epoch (1-based) with the best `value` of a `figure`; accuracies are 0 to 1."""

    figure: str
    epoch: int
    value: float


class TrainingSnapshot(RunSnapshot, frozen=True, kw_only=True):
    """Progress of a TrainCommand.

    `folder` is that of the run ("" before its first step). `checkpoint` is the path of the last
    checkpoint, `checkpoint_step` its step; a warning says that one could not be written.
    `guess_accuracy` is that of always guessing the most frequent class of the `guess_labels`, those
    of the validation part, or of the training part without one; NaN while that is not known, and
    for other targets. `best` is the best epoch so far, whose weights are kept;
    `stopped_early`: it has not become better for long enough; `averaged`: there
    are averaged weights, and the validation is of these.

    A paused run that is in the middle of a step, or has run its last one by hand, has the numbers
    of that `step_numbers`; `is_in_step` says whether some of its phases are still to come. `hold`
    says why it is held, if it is. A run of several `processes` goes on by phases at the least.
    `can_find_divergence`: the run failed since a number was not finite, and can be repeated up to
    there. `trial`: it is one of a sweep.
    """

    folder: str = ""
    checkpoint: str = ""
    checkpoint_step: int = 0
    guess_accuracy: float = nan
    guess_labels: int = 0
    validation_samples: int = 0
    best: BestSoFar | None = None
    stopped_early: bool = False
    averaged: bool = False
    step_numbers: StepNumbers | None = None
    is_in_step: bool = False
    hold: Hold | None = None
    can_find_divergence: bool = False
    processes: int = 1
    trial: TrialProgress | None = None


CODE_CHANGED = "CodeChanged"
"""The type of the error in the first snapshot of a run that goes on with code that has changed."""
UNORDERED = "Unordered"
"""That of a run that goes on in the middle of an epoch whose batches have no order."""
OTHER_BATCHES = "OtherBatches"
"""That of a run that goes over steps again, or on from them, and gets other batches than before."""


class LoggedPoints(Struct, frozen=True):
    """The numbers that code has logged by one name, at these steps: none is less than the one
    before."""

    steps: tuple[int, ...]
    values: tuple[float, ...]


class LoopLine(Struct, frozen=True):
    """The steps of one optimizer of a loop, and its name. `losses` are the names of the variables
    that its losses had, in the order of their first step: the loss of a step is the sum of all on
    which `backward` was called since its gradients were zero, and since the step before. `is_sum`:
    some step had more than one.
    Of all its steps, drawn or not, `bad_steps` had a loss that was NaN or infinite: the first was
    number `first_bad`, or one of those from `bad_from` on whose losses are not known, and all are
    since number `bad_since` (0 without any)."""

    optimizer: str
    losses: tuple[str, ...] = ()
    is_sum: bool = False
    first_bad: int = 0
    bad_from: int = 0
    bad_steps: int = 0
    bad_since: int = 0


class LoopSnapshot(RunSnapshot, frozen=True, kw_only=True):
    """Progress of the loop of a cell: `step` counts the steps of all optimizers. `title` names the
    cell or its file. A loop that is "paused" is held after its step, or with `hold` before the
    update of the next one. `lines` has one for each optimizer, and
    `line_of_step` the number of the line of each of `steps` that is not on the first one, number 0.
    `logged` are the numbers that it has logged since the last snapshot, by
    name: those of a step may come after its row. `has_images`: it has logged some."""

    title: str
    lines: tuple[LoopLine, ...] = ()
    line_of_step: dict[int, int] = field(default_factory=dict)
    logged: dict[str, LoggedPoints] = field(default_factory=dict)
    has_images: bool = False
    hold: Hold | None = None


class CheckpointSnapshot(Snapshot, frozen=True, kw_only=True):
    """A checkpoint that fits: its file ("" if there is none), its step, and when it was written, in
    seconds since 1970."""

    path: str = ""
    step: int = 0
    written_s: float = 0.0


class RatesSnapshot(Snapshot, frozen=True, kw_only=True):
    """The learning rates of some steps (from 1) of a run of `total_steps`, in their order."""

    steps: tuple[int, ...]
    rates: tuple[float, ...]
    total_steps: int
