"""The document: one immutable value that holds everything a user made.

Every edit makes a new `Project`; unchanged parts are shared. Nothing here imports torch.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec
from msgspec import Struct

from .step_order import PHASES, Phase
from .subject import CanvasSubject, Objective, Subject

FORMAT_VERSION = 4

ParamValue = None | bool | int | float | str | tuple[int | float, ...]
Workspace = Literal["start", "tensors", "model", "autograd", "train"]
WORKSPACES: tuple[Workspace, ...] = get_args(Workspace)


class Block(Struct, frozen=True, forbid_unknown_fields=True):
    """One block of a model.

    `kind` is a key of the catalogue (`"nn.Linear"`), `name` the Python name of the submodule or
    variable, `params` the arguments that were set explicitly (all others keep torch's defaults),
    and (`x`, `y`) the top left corner in scene pixels.
    """

    id: str
    kind: str
    name: str
    params: dict[str, ParamValue] = {}
    x: float = 0.0
    y: float = 0.0


class Wire(Struct, frozen=True, forbid_unknown_fields=True):
    """A tensor that flows from an output port to an input port.

    An input port takes one wire at most, so (`target`, `target_port`) identifies a wire.
    """

    source: str
    source_port: str
    target: str
    target_port: str


class Model(Struct, frozen=True, forbid_unknown_fields=True):
    blocks: tuple[Block, ...] = ()
    wires: tuple[Wire, ...] = ()

    def block(self, block_id: str) -> Block:
        """Return the block with this id; raises KeyError when there is none."""
        for block in self.blocks:
            if block.id == block_id:
                return block
        raise KeyError(block_id)


class Cell(Struct, frozen=True, forbid_unknown_fields=True):
    """One console cell: Python source."""

    id: str
    source: str = ""


class Column(Struct, frozen=True, forbid_unknown_fields=True):
    """What a column of a table is for; a type of "auto" is read from its values."""

    role: Literal["feature", "target", "ignore"] = "feature"
    type: Literal["auto", "number", "category"] = "auto"


class Transform(Struct, frozen=True, forbid_unknown_fields=True):
    """A change of the samples, by its name in the catalogue (`"RandomCrop"`)."""

    kind: str
    params: dict[str, ParamValue] = {}


class Loading(Struct, frozen=True, forbid_unknown_fields=True):
    """How training takes its batches. `shuffle`: in another order each epoch; `balanced`: drawn
    with replacement, each class as often; `drop_last`: without a last batch that is smaller.

    With `workers`, torch's DataLoader reads the samples one by one, in that many processes beside
    (0: in the engine), `prefetch_factor` batches ahead in each; without, batches are indexed.
    `persistent_workers` stay from epoch to epoch; a batch that takes longer than `timeout` seconds
    ends the run (0: none does). `start_method` is that of their processes. Not `in_order`, a batch
    comes as soon as a worker has it: no other run has the same order.

    With `padding`, a batch of samples of different lengths is padded to its longest, behind
    ("right") or before its own elements, and `gives` the lengths, or a mask, behind the samples.
    Both are for data of code.

    GIVEN are further arguments of the DataLoader, each an expression in the console or the
    subject's code ("" for torch's own): with one of them, a DataLoader gives the batches."""

    shuffle: bool = True
    balanced: bool = False
    drop_last: bool = False
    workers: int | None = None
    prefetch_factor: int = 2
    pin_memory: bool = False
    persistent_workers: bool = False
    timeout: float = 0.0
    start_method: Literal["default", "fork", "spawn", "forkserver"] = "default"
    in_order: bool = True
    padding: Literal["none", "right", "left"] = "none"
    padding_value: float = 0.0
    gives: Literal["nothing", "lengths", "mask"] = "nothing"
    sampler: str = ""
    batch_sampler: str = ""
    worker_init_fn: str = ""
    generator: str = ""
    collate_fn: str = ""

    @property
    def repeats(self) -> bool:
        """Whether another run with the same settings has the same batches in the same order."""
        return self.in_order or (self.workers or 0) < 2

    @property
    def given(self) -> dict[str, str]:
        """The expressions of GIVEN that there are, by argument."""
        named = {name: getattr(self, name) for name in GIVEN}
        return {name: expression for name, expression in named.items() if expression}


GIVEN = ("sampler", "batch_sampler", "worker_init_fn", "generator", "collate_fn")
"""Arguments of a DataLoader that are objects of the user's code."""

PaintedPoint = tuple[float, float, int]
"""Two coordinates from -1 to 1, and a class."""


class DataSetup(Struct, frozen=True, forbid_unknown_fields=True):
    """Which data set, its own parameters, and the fraction (0 to 1) held out for validation, drawn
    with `split_seed`; `stratified` keeps the share of each class.

    `path` is the file or folder of a kind that is read from one, or an expression of the console;
    `columns` are those of a table that the user gave a role or a type. `points` are those that the
    user has painted: two coordinates and a class. No other data is in a project. `transforms`
    change the samples that training gets.

    Of the user's own data a share is held out in the same way if `hold_out` says so, and no other
    data is named for validation.
    """

    kind: str = "digits"
    params: dict[str, ParamValue] = {}
    validation_fraction: float = 0.2
    split_seed: int = 0
    stratified: bool = True
    path: str = ""
    columns: dict[str, Column] = {}
    transforms: tuple[Transform, ...] = ()
    loading: Loading = Loading()
    points: tuple[PaintedPoint, ...] = ()
    hold_out: bool = False


SEQUENTIAL, CHAINED = "lr_scheduler.SequentialLR", "lr_scheduler.ChainedScheduler"
COMPOSED = (SEQUENTIAL, CHAINED)
"""Schedulers that run others."""
ALONE = {
    "lr_scheduler.ReduceLROnPlateau": "is told a loss, which is not passed on to it",
    "lr_scheduler.OneCycleLR": "begins with a rate of its own",
    "lr_scheduler.CyclicLR": "begins with a rate of its own",
    SEQUENTIAL: "runs others itself",
    CHAINED: "runs others itself",
}
"""Schedulers that others cannot run, and why."""
MAX_SCHEDULERS = 16


class SchedulePart(Struct, frozen=True, forbid_unknown_fields=True):
    """A scheduler that another one runs."""

    kind: str
    params: dict[str, ParamValue] = {}


class Schedule(Struct, frozen=True, forbid_unknown_fields=True):
    """What changes the learning rate: a class of torch.optim.lr_scheduler (none if empty) with its
    arguments, which steps after each epoch or each optimizer step. Before it, the rate rises in
    `warmup` such steps from the share `warmup_from` of itself. A COMPOSED one runs its `parts`."""

    kind: str = ""
    params: dict[str, ParamValue] = {}
    each: Literal["epoch", "step"] = "epoch"
    warmup: int = 0
    warmup_from: float = 0.01
    parts: tuple[SchedulePart, ...] = ()

    @property
    def milestones(self) -> tuple[int, ...]:
        """The steps at which SequentialLR begins with its next part."""
        found = self.params.get("milestones", ()) if self.kind == SEQUENTIAL else ()
        each = found if isinstance(found, tuple | list) else (found,)
        return tuple(step for step in each if isinstance(step, int))

    @property
    def problem(self) -> str:
        """Why torch cannot make it of these parts, in a sentence; empty if it can."""
        name, count = self.kind.partition(".")[2], len(self.parts)
        if self.kind not in COMPOSED:
            return f"{name or 'A constant rate'} runs no other schedulers." if count else ""
        if not 2 <= count <= MAX_SCHEDULERS:
            return f"{name} runs 2 to {MAX_SCHEDULERS} schedulers, not {count}."
        for part in self.parts:
            if part.kind in ALONE:
                other = part.kind.partition(".")[2]
                return f"{name} cannot run {other}, which {ALONE[part.kind]}."
        if self.warmup:
            return f"{name} has no warm-up before it: let its first scheduler be LinearLR."
        begins = self.milestones
        if self.kind == SEQUENTIAL and len(begins) != count - 1:
            return (
                f"SequentialLR runs {count} schedulers, so it has {count - 1} milestones, not"
                f" {len(begins)}: the step at which each but the first begins."
            )
        if list(begins) != sorted(set(begins)):
            return "Each milestone of SequentialLR comes after the one before."
        return ""


class ParamGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """How the parameters of one module, named by its path, differ from all others: options of the
    optimizer, or that they are `frozen` and get no gradient."""

    module: str
    params: dict[str, ParamValue] = {}
    frozen: bool = False


BestFigure = Literal["validation loss", "validation accuracy", "train loss", "train accuracy"]


class Stopping(Struct, frozen=True, forbid_unknown_fields=True):
    """`figure` says which epoch of a run is the best. The run stops early once that has not become
    better by more than `min_delta` in `patience` epochs; with 0 it does not."""

    figure: BestFigure = "validation loss"
    patience: int = 0
    min_delta: float = 0.0


class Averaging(Struct, frozen=True, forbid_unknown_fields=True):
    """A running average of the weights beside a run, from epoch `start` (0-based) on: "EMA" after
    each step with `decay`, "SWA" after each epoch; none if `kind` is "none".

    With an `swa_lr`, torch's SWALR takes the place of the schedule from then on: it brings the rate
    there in `anneal_epochs`.
    """

    kind: Literal["none", "EMA", "SWA"] = "none"
    decay: float = 0.999
    start: int = 0
    swa_lr: float = 0.0
    anneal_epochs: int = 10
    anneal_strategy: Literal["cos", "linear"] = "cos"


Precision = Literal["float32", "bfloat16", "float16"]
Decay = Literal["all", "weights"]


class HoldWhen(Struct, frozen=True, forbid_unknown_fields=True):
    """What holds a run at its step; 0 or False: this does not.

    `not_finite`: a loss or a gradient is NaN or infinite. `loss_spike`: the loss is this many times
    the median of the losses before it. `gradient_norm`: the 2-norm of all gradients is above this.
    `ratio_above`, `ratio_below`: of some parameter, the 2-norm of its update as a share of its own.
    `dead_units`: this share of the units behind some ReLU give 0 only. `unchanged`: some parameter
    stayed the same over this many steps.
    """

    not_finite: bool = False
    loss_spike: float = 0.0
    gradient_norm: float = 0.0
    ratio_above: float = 0.0
    ratio_below: float = 0.0
    dead_units: float = 0.0
    unchanged: int = 0


class TrainingSetup(Struct, frozen=True, forbid_unknown_fields=True):
    """How to train. A loss block on the canvas takes precedence over `loss` (see `loss_of`).

    An optimizer step adds up the gradients of `accumulate` batches. `clip_norm` bounds the norm of
    all gradients together, `clip_value` each element; 0 does not. `precision` is that of autocast.
    `order` has the phases of a step in the order in which they run, `hold` what holds a run.
    With `decay` "weights", biases and the parameters of norms have no weight decay.
    Several `processes` of a machine, the ranks, each take their rows of every batch.

    `deterministic`: torch uses deterministic algorithms only. `compile`: torch.compile makes code
    of the model. `recomputed` are paths of modules that keep only their inputs for the backward
    pass (activation checkpointing).
    """

    data: DataSetup = DataSetup()
    loss: str = "nn.CrossEntropyLoss"
    optimizer: str = "optim.Adam"
    optimizer_params: dict[str, ParamValue] = {}
    batch_size: int = 64
    epochs: int = 20
    seed: int = 0
    device: str = "cpu"
    schedule: Schedule = Schedule()
    accumulate: int = 1
    clip_norm: float = 0.0
    clip_value: float = 0.0
    precision: Precision = "float32"
    order: tuple[Phase, ...] = PHASES
    hold: HoldWhen = HoldWhen()
    loss_params: dict[str, ParamValue] = {}
    groups: tuple[ParamGroup, ...] = ()
    decay: Decay = "all"
    stopping: Stopping = Stopping()
    averaging: Averaging = Averaging()
    processes: int = 1
    deterministic: bool = False
    compile: bool = False
    recomputed: tuple[str, ...] = ()


ADJUSTABLE = ("optimizer_params", "groups", "decay", "clip_norm", "clip_value", "stopping")
"""The fields of a set-up that a run takes over between two of its steps."""


class ViewState(Struct, frozen=True, forbid_unknown_fields=True):
    """What was on screen: not undoable, saved so that a project opens where it was left."""

    workspace: Workspace = "model"
    canvas_zoom: float = 1.0
    canvas_center: tuple[float, float] = (0.0, 0.0)


class Project(Struct, frozen=True, forbid_unknown_fields=True):
    """`subject` is what the workspaces work on; `objective` says what a subject of code is trained
    for."""

    name: str = "Untitled"
    model: Model = Model()
    training: TrainingSetup = TrainingSetup()
    cells: tuple[Cell, ...] = ()
    subject: Subject = CanvasSubject()
    objective: Objective = Objective()
    view: ViewState = ViewState()


replace = msgspec.structs.replace
