"""Progress of runs and loops, and their checkpoints."""

from __future__ import annotations

from math import nan
from typing import Literal

from msgspec import Struct

from ..snapshots import Snapshot
from ..values import ErrorReport

TrainingState = Literal["running", "paused", "finished", "stopped", "failed"]


class StepColumns(Struct, frozen=True):
    """New optimizer steps since the last snapshot, with one entry per step in every column.

    `loss` and `accuracy` (0 to 1) are of the step's batch, before its update; `gradient_norm` is
    the 2-norm over all parameters. `step_ms` is wall clock, on CUDA the time on the device.
    `rss_bytes` of the engine process is read once per snapshot; so are `cuda_allocated_bytes` and
    `cuda_reserved_bytes` on CUDA (empty columns elsewhere). `step` has all of the first thousand
    steps; of later, faster ones it has 500 a second. `accuracy` is NaN for a task without one;
    `figures` are the figures that the user's step names, NaN where it gave none.
    """

    step: tuple[int, ...] = ()
    loss: tuple[float, ...] = ()
    accuracy: tuple[float, ...] = ()
    gradient_norm: tuple[float, ...] = ()
    learning_rate: tuple[float, ...] = ()
    step_ms: tuple[float, ...] = ()
    rss_bytes: tuple[int, ...] = ()
    cuda_allocated_bytes: tuple[int, ...] = ()
    cuda_reserved_bytes: tuple[int, ...] = ()
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


class RunSnapshot(Snapshot, frozen=True, kw_only=True):
    """Progress of a run: `step` of `total_steps` done, in epoch `epoch` of `epochs` (1-based).
    `total_steps` is 0 if the number is not known, `epochs` if the run has none.

    `steps` and `epoch_rows` hold only what is new since the last snapshot of this run (after a
    resume, the first one holds all). `remaining_s` is an estimate; None if there is none yet.
    `error` says why a run "failed"; in any other state it is a warning, and the run goes on.
    """

    run: str
    state: TrainingState
    step: int
    total_steps: int = 0
    epoch: int = 0
    epochs: int = 0
    steps_per_second: float
    remaining_s: float | None = None
    steps: StepColumns
    epoch_rows: tuple[EpochRow, ...] = ()
    device: str
    error: ErrorReport | None = None
    memory: TrainingMemory = TrainingMemory()


class TrainingSnapshot(RunSnapshot, frozen=True, kw_only=True):
    """Progress of a TrainCommand.

    `checkpoint` is the path of the last checkpoint, `checkpoint_step` its step; a warning says that
    one could not be written. `guess_accuracy` is the validation accuracy of always guessing the
    most frequent class of the `validation_samples`; NaN without any.
    """

    checkpoint: str = ""
    checkpoint_step: int = 0
    guess_accuracy: float = nan
    validation_samples: int = 0


class LoopSnapshot(RunSnapshot, frozen=True, kw_only=True):
    """Progress of the loop of a cell: `step` counts the steps of all optimizers. `title` names the
    cell or its file. A loop that is "paused" is held after its step."""

    title: str


class CheckpointSnapshot(Snapshot, frozen=True, kw_only=True):
    """A checkpoint that fits: its file ("" if there is none), its step, and when it was written, in
    seconds since 1970."""

    path: str = ""
    step: int = 0
    written_s: float = 0.0
