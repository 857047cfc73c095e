"""Training by several processes: the engine starts them and passes on what rank 0 tells."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

import torch
import torch.distributed as dist
from msgspec.structs import replace
from torch import nn

from ...errors import LabError
from ...lab import Lab
from ...models.check import require_runnable
from ...project.atomic import private_folder
from ...project.document import TrainingSetup
from ...project.subject import CanvasSubject, ConsoleSubject, files_of
from ...protocol import (
    Command,
    ErrorReport,
    ErrorSnapshot,
    Hold,
    RunFileCommand,
    Snapshot,
    StepColumns,
    StopSignal,
    TrainCommand,
    TrainingSnapshot,
    TrainingState,
)
from ...runs import folders
from ...runs.record import RunProblem, load, save
from ...training.checkpoints import checkpoint_files
from ...training.distributed.launch import WEIGHTS, Launched
from ...training.distributed.ranks import Ranks, RanksEnded, check_setup
from ...training.distributed.rows import RowsObjective
from ...training.loop import TrainingLoop
from ...training.objectives.objective import Objective
from ..subjects import find_subject, forget_weights, objective_of

RANKS = "ranks"
"""The folder in that of a run for what its ranks print."""
FLUSHED_STEPS = 100


class RanksRun:
    """What the session and other commands see of a run that other processes train: `last` is the
    newest that rank 0 has told, without its figures."""

    is_in_step = is_on_way = False
    hold: Hold | None = None

    def __init__(self, setup: TrainingSetup) -> None:
        self._setup = setup
        self.last = TrainingSnapshot(
            run="",
            state="running",
            step=0,
            total_steps=0,
            epoch=1,
            epochs=setup.epochs,
            device=setup.device,
            steps_per_second=0.0,
            steps=StepColumns(),
        )

    @property
    def id(self) -> str:
        return self.last.run

    @property
    def step(self) -> int:
        return self.last.step

    def hear(self, snapshot: TrainingSnapshot) -> None:
        self.last = replace(snapshot, steps=StepColumns(), epoch_rows=())

    def snapshot(self, state: TrainingState) -> TrainingSnapshot:
        return replace(self.last, state=state)

    def by_hand(self, by_phase: bool) -> AbstractContextManager[None]:
        raise LabError(
            "A run of several processes cannot be stepped by hand.", hint="Train in one process."
        )

    def adjust(self, setup: TrainingSetup) -> None:
        if setup.optimizer_params != self._setup.optimizer_params:
            raise LabError(
                "A run of several processes keeps its settings.",
                hint="Stop it and resume it with the new ones.",
            )

    def between_steps(self) -> AbstractContextManager[None]:
        return nullcontext()


def train_on_ranks(lab: Lab, command: TrainCommand) -> Iterator[Snapshot | None]:
    """As `train`, by `command.processes` processes of this machine. Afterwards the live model has
    the weights of the last checkpoint. Raises LabError for what they cannot do."""
    _check(command)
    if command.fresh:
        forget_weights(lab, command.subject, command.model, command.training)
    module = find_subject(lab, command.subject, command.model, command.training).module
    run = lab.run = RanksRun(command.training)
    folder = _folder(command)
    inner = replace(command, processes=1, fresh=False, folder=str(folder))
    try:
        private_folder(folder)
        private_folder(folder / RANKS)
        files: list[Command] = [
            RunFileCommand(path=path) for path in files_of(command.subject, command.objective)
        ]
        weights = module.state_dict()
        launched = Launched(folder / RANKS, command.processes, files, inner, weights)
    except OSError as error:
        raise LabError(f"The processes could not be started: {error}.") from error
    try:
        yield from _heard(lab, run, launched, folder)
    finally:
        launched.close()
        if not folders.is_run(folder):  # there was no step
            shutil.rmtree(folder, ignore_errors=True)
    if run.last.checkpoint:
        module.load_state_dict(checkpoint_files.load(run.last.checkpoint).model)


def _check(command: TrainCommand) -> None:
    check_setup(command.training)
    if isinstance(command.subject, CanvasSubject):
        require_runnable(command.model, command.training)
    if isinstance(command.subject, ConsoleSubject):
        raise LabError(
            "Other processes do not have the objects of the console.",
            hint="Write the model into a Python file, and choose it there as the subject.",
        )
    if command.to_step is not None or command.find_divergence:
        raise LabError("Only a run of one process goes to a step.", hint="Set processes to 1.")


def _folder(command: TrainCommand) -> Path:
    runs = Path(command.runs) if command.runs else folders.data_runs()
    if not command.checkpoint:
        return Path(command.folder) if command.folder else runs / folders.new_id()
    resume = checkpoint_files.load(command.checkpoint)
    return folders.run_of(Path(command.checkpoint)) or runs / resume.run


def _heard(lab: Lab, run: RanksRun, launched: Launched, folder: Path) -> Iterator[Snapshot | None]:
    """What rank 0 tells, to the end of the run; a rank that is lost is told in words."""
    is_stopping = False
    while True:
        if lab.control.stop.is_set() and not is_stopping:
            is_stopping = launched.send(StopSignal())
        try:
            snapshot = launched.next()
        except EOFError:
            break
        if isinstance(snapshot, TrainingSnapshot):
            run.hear(snapshot)
            if snapshot.state == "failed":
                continue  # it may be for another rank
        yield snapshot
        if isinstance(snapshot, ErrorSnapshot):
            return
    failure = launched.failure()
    if run.last.state in ("finished", "stopped"):
        return
    if failure is not None and (failure.rank or run.last.state != "failed"):
        error = _in_words(str(failure), folder, failure.rank)
    elif run.last.error is not None:
        error = run.last.error
    else:
        error = _in_words("The processes of the run have ended.", folder, 0)
    run.last = replace(run.last, state="failed", error=error)
    _record(folder, error)
    yield run.last


def _in_words(what: str, folder: Path, rank: int) -> ErrorReport:
    log = folder / RANKS / f"rank-{rank}.log"
    printed = f"What it printed: {log}. " if log.exists() else ""
    way_on = "Train again: the run had written no checkpoint yet."
    for path in folders.checkpoints_of(folder)[:1]:
        step = int(path.stem.removeprefix("step-"))
        way = f"Resume, or `tensorlab train --run {folder} --resume`"
        way_on = f"The run's last checkpoint is step {step:,}. Go on from it with {way}."
    return ErrorReport(type="RankLost", message=what, hint=f"{printed}{way_on}")


def _record(folder: Path, error: ErrorReport) -> None:
    """Let the run's folder tell how it ended: rank 0 may have had no time for it."""
    with suppress(RunProblem, OSError):  # it has no folder yet
        save(folder, replace(load(folder), state="failed", error=error.message))


# -- in a rank -----------------------------------------------------------------------------------


def begin_as_rank(
    ranks: Ranks, module: nn.Module, objective: Objective, command: TrainCommand
) -> RowsObjective:
    """Give the module of this rank the weights that the run begins with; returns its objective."""
    path = Path(command.folder) / RANKS / WEIGHTS
    module.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
    return RowsObjective(objective, ranks, module, command.training.seed)


def follow(lab: Lab, command: TrainCommand) -> None:
    """Train in a rank that is not the first, until that one ends the run. Raises what the user's
    code raises, LabError, and Diverged."""
    ranks, setup = lab.ranks, command.training
    assert ranks is not None
    subject = find_subject(lab, command.subject, command.model, setup)
    whole = objective_of(lab, subject, command.objective, command.model, setup)
    objective = begin_as_rank(ranks, subject.module, whole, command)
    loop = TrainingLoop(subject.module, setup, objective, None, command.subject, ranks)
    if command.checkpoint:
        loop.restore(checkpoint_files.load(command.checkpoint))
    try:
        for _ in loop.steps():
            if loop.step % FLUSHED_STEPS == 0:  # figures are those of rank 0
                loop.flush()
                loop.metrics.drain(with_cuda=False)
        ranks.end()
    except RanksEnded:
        dist.destroy_process_group()
    finally:
        loop.close()
