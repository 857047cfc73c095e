"""A sweep: the subject is trained once for each trial, from fresh weights, as a run of its own."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import torch
from msgspec.structs import replace
from torch import Tensor, nn

from ...errors import LabError
from ...lab import Lab
from ...models.check import require_runnable
from ...project.document import HoldWhen, ParamValue, Project
from ...project.edits import EditError
from ...project.subject import CanvasSubject
from ...project.sweeps.sweep import SweepProblem, in_words
from ...project.sweeps.trials import check_sweep, with_values
from ...protocol import EpochRow, Snapshot, SweepCommand, TrainingState, TrialProgress
from ...runs import folders
from ...runs.record import Trial
from ...runs.writer import RunWriter
from ...sweeps.study import Study
from ...training.loop import TrainingLoop
from ...training.run import TrainingRun
from ..console import output_of
from ..subjects import find_subject, forget_weights, objective_of
from .train import driven

Weights = dict[str, Tensor]


class _Best(NamedTuple):
    number: int = 0
    value: float = math.nan


class _Ended(NamedTuple):
    """How a trial ended: its figure after the last epoch, None without one."""

    state: TrainingState
    value: float | None
    is_pruned: bool


def sweep(lab: Lab, command: SweepCommand) -> Iterator[Snapshot | None]:
    """As `train`, a run for each trial. A trial that fails is told in the list of runs, and the
    sweep goes on. Raises LabError for a sweep that makes no sense, without Optuna, and if all
    trials have failed."""
    setup = replace(command.training, hold=HoldWhen())  # nobody waits for each trial
    project = Project(
        model=command.model,
        training=setup,
        subject=command.subject,
        objective=command.objective,
    )
    try:
        check_sweep(command.sweep, project)
    except SweepProblem as problem:
        raise LabError(str(problem), hint="Change the sweep.") from problem
    if setup.processes > 1:
        raise LabError("A sweep trains in one process.", hint="Set processes to 1.")
    study, sweep_id = Study(command.sweep), folders.new_id()
    before = _weights(_module(lab, project))
    try:
        yield from _trials(lab, command, project, study, sweep_id, before)
    finally:
        if isinstance(lab.run, TrainingRun):
            lab.run.files.writer.close()
        _module(lab, project).load_state_dict(before)


def _trials(
    lab: Lab, command: SweepCommand, project: Project, study: Study, sweep_id: str, first: Weights
) -> Iterator[Snapshot | None]:
    wanted = command.sweep
    runs = Path(command.runs) if command.runs else folders.data_runs()
    best, failed = _Best(), None
    for number in range(1, wanted.trials + 1):
        values = study.ask()
        trial = Trial(sweep_id, number, values, wanted.figure, wanted.maximise)
        folder = runs / f"{sweep_id}{folders.TRIAL}{number:04}"
        try:
            run = _begun(lab, project, values, folder, first)
        except (LabError, EditError) as error:
            failed = error
            study.tell(None)
            continue
        lab.run = run
        run.files.writer.tag(trial)
        run.trial = TrialProgress(
            number, wanted.trials, in_words(values), wanted.figure, best.number, best.value
        )
        ended = yield from _trained(lab, run, study, trial)
        run.files.writer.tag(replace(trial, value=ended.value, is_pruned=ended.is_pruned))
        is_stopped = ended.state == "stopped" and not ended.is_pruned
        if not is_stopped:
            study.tell(ended.value, ended.is_pruned)
        if ended.state == "finished" and ended.value is not None:
            best = _better(best, _Best(number, ended.value), wanted.maximise)
        is_last = is_stopped or number == wanted.trials
        run.trial = replace(
            run.trial,
            best=best.number,
            value=best.value,
            state="pruned" if ended.is_pruned else ended.state,
            has_ended=is_last,
        )
        snapshot = run.snapshot(ended.state)  # it writes the folder's end
        yield snapshot if is_last else replace(snapshot, state="running")
        if is_stopped:
            return
    if best.number == 0 and failed is not None:
        raise LabError(f"No trial could be trained. {failed}", hint=getattr(failed, "hint", ""))


def _better(best: _Best, new: _Best, maximise: bool) -> _Best:
    """The first of two equal ones."""
    is_better = new.value > best.value if maximise else new.value < best.value
    return new if is_better or best.number == 0 else best


def _begun(
    lab: Lab, project: Project, values: dict[str, ParamValue], folder: Path, first: Weights
) -> TrainingRun:
    """The run of a trial, before its first step. Raises LabError and EditError."""
    project = with_values(project, values)
    setup = project.training
    if isinstance(project.subject, CanvasSubject):
        require_runnable(project.model, setup)
    try:
        forget_weights(lab, project.subject, project.model, setup)
    except LabError:  # an object that the user's code made: each trial begins where the sweep did
        _module(lab, project).load_state_dict(first)
    subject = find_subject(lab, project.subject, project.model, setup)
    objective = objective_of(lab, subject, project.objective, project.model, setup)
    loop = TrainingLoop(subject.module, setup, objective, None, project.subject)
    return TrainingRun(loop, writer=RunWriter.new(folder.parent, project, folder))


def _trained(
    lab: Lab, run: TrainingRun, study: Study, trial: Trial
) -> Generator[Snapshot | None, None, _Ended]:
    """Train to the end, unless the study ends the trial before. The last snapshot is the
    caller's."""
    is_code = not isinstance(run.loop.subject, CanvasSubject)
    steps, seen = driven(lab, run, is_code, None), 0
    with output_of(lab).redirected() if is_code else nullcontext():
        while True:
            try:
                snapshot = next(steps)
            except StopIteration as end:
                state: TrainingState = "failed" if run.failure is not None else end.value
                rows = run.loop.metrics.epochs if state == "finished" else []
                return _Ended(state, _figure(rows[-1], trial.figure) if rows else None, False)
            for row in run.loop.metrics.epochs[-1:]:
                if row.epoch > seen:
                    seen, value = row.epoch, _figure(row, trial.figure)
                    if value is not None and study.report(seen, value):
                        steps.close()
                        return _Ended("stopped", value, True)
            yield snapshot


def _figure(row: EpochRow, name: str) -> float | None:
    """The figure of an epoch, by its name; None if there is none. Without validation, it is that of
    training."""
    of_validation = getattr(row, name.replace(" ", "_"), row.validation_figures.get(name))
    training = name.replace("validation ", "train ")
    of_training = getattr(row, training.replace(" ", "_"), row.train_figures.get(name))
    known = (v for v in (of_validation, of_training) if isinstance(v, float) and not math.isnan(v))
    return next(known, None)


def _module(lab: Lab, project: Project) -> nn.Module:
    return find_subject(lab, project.subject, project.model, project.training).module


def _weights(module: nn.Module) -> Weights:
    with torch.no_grad():
        return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
