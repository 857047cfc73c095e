"""One trial of a sweep: a run with values of its own, from fresh weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import torch
from msgspec.structs import replace
from torch import Tensor, nn

from ....lab import Lab
from ....project.document import HoldWhen, ParamValue, Project
from ....project.sweeps.trials import with_values
from ....protocol import (
    EpochRow,
    Snapshot,
    SweepCommand,
    TrainingState,
)
from ....restoring.random_states import random_states
from ....runs.record import Trial
from ....runs.writer import RunWriter
from ....system.errors import LabError
from ....training.loop import TrainingLoop
from ....training.optimization.training_step import check_setup
from ....training.run import TrainingRun
from ...subjects.find import subject_of
from ...subjects.subject import Drawn
from ..code_files import files_that_ran
from ..run_script import add_script
from ..train import driven

Weights = dict[str, Tensor]


class Ended(NamedTuple):
    """How a trial ended: its figure after the last epoch, None without one."""

    state: TrainingState
    value: float | None
    is_pruned: bool


def project_of(command: SweepCommand) -> Project:
    """The project with the values of the trial. Nothing holds a trial: nobody waits beside each
    one."""
    return Project(
        model=command.model,
        training=replace(command.training, hold=HoldWhen()),
        subject=command.subject,
        objective=command.objective,
    )


def begun(
    lab: Lab,
    project: Project,
    values: dict[str, ParamValue],
    folder: Path,
    first: Weights,
    trials: int,
) -> TrainingRun:
    """The run of one of so many trials, before its first step. Raises LabError and EditError."""
    project = with_values(project, values)
    subject = subject_of(lab, project)
    subject.check()
    try:
        subject.forget_weights()
    except LabError:  # an object that the user's code made: each trial begins where the sweep did
        subject.module.load_state_dict(first)
    before = random_states()
    objective = subject.objective()
    drawn = Drawn(before, random_states())
    writer = RunWriter.new(folder.parent, project, folder)
    check_setup(project.training)
    add_script(writer, subject, objective, drawn, trials)
    loop = TrainingLoop(subject.module, project.training, objective, None, project.subject)
    writer.note_code(files_that_ran(lab, project))
    return TrainingRun(loop, writer=writer)


def trained(
    lab: Lab, run: TrainingRun, is_over: Callable[[int, float], bool], trial: Trial
) -> Generator[Snapshot | None, None, Ended]:
    """Train to the end, unless `is_over(epoch, figure)` ends the trial before. The last snapshot is
    the caller's."""
    steps, seen = driven(lab, run), 0
    with lab.output().redirected() if run.loop.objective.runs_code else nullcontext():
        while True:
            try:
                snapshot = next(steps)
            except StopIteration as end:
                state: TrainingState = "failed" if run.failure is not None else end.value
                rows = run.loop.metrics.epochs if state == "finished" else []
                return Ended(state, figure_of(rows[-1], trial.figure) if rows else None, False)
            for row in run.loop.metrics.epochs[-1:]:
                if row.epoch > seen:
                    seen, value = row.epoch, figure_of(row, trial.figure)
                    if value is not None and is_over(seen, value):
                        steps.close()
                        return Ended("stopped", value, True)
            yield snapshot


def figure_of(row: EpochRow, name: str) -> float | None:
    """The figure of an epoch, by its name; None if there is none. Without validation, it is that of
    training."""
    of_validation = getattr(row, name.replace(" ", "_"), row.validation_figures.get(name))
    training = name.replace("validation ", "train ")
    of_training = getattr(row, training.replace(" ", "_"), row.train_figures.get(name))
    known = (v for v in (of_validation, of_training) if isinstance(v, float) and not math.isnan(v))
    return next(known, None)


def module_of(lab: Lab, project: Project) -> nn.Module:
    return subject_of(lab, project).module


def weights_of(module: nn.Module) -> Weights:
    with torch.no_grad():
        return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
