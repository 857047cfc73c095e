"""A sweep: the subject is trained once for each trial, from fresh weights, as a run of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from ....lab import Lab
from ....project.document import Project
from ....project.edits import EditError
from ....project.sweeps.sweep import SweepProblem, in_words
from ....project.sweeps.trials import check_sweep
from ....protocol import Snapshot, SweepCommand, TrialProgress
from ....runs import folders
from ....runs.record import Trial
from ....system.errors import LabError
from ....training.run import TrainingRun
from ....training.study import Study
from .trial import Weights, begun, module_of, project_of, trained, weights_of


class _Best(NamedTuple):
    number: int = 0
    value: float = math.nan


def sweep(lab: Lab, command: SweepCommand) -> Iterator[Snapshot | None]:
    """As `train`, a run for each trial. A trial that fails is told in the list of runs, and the
    sweep goes on. Raises LabError for a sweep that makes no sense, without Optuna, and if all
    trials have failed."""
    project = project_of(command)
    try:
        check_sweep(command.sweep, project)
    except SweepProblem as problem:
        raise LabError(str(problem), hint="Change the sweep.") from problem
    if project.training.processes > 1:
        raise LabError("A trial of a sweep trains in one process.", hint="Set processes to 1.")
    study, sweep_id = Study(command.sweep), folders.new_id()
    before = weights_of(module_of(lab, project))
    try:
        yield from _trials(lab, command, project, study, sweep_id, before)
    finally:
        if isinstance(lab.run, TrainingRun):
            lab.run.files.writer.close()
        module_of(lab, project).load_state_dict(before)


def _trials(
    lab: Lab, command: SweepCommand, project: Project, study: Study, sweep_id: str, first: Weights
) -> Iterator[Snapshot | None]:
    wanted = command.sweep
    runs = Path(command.runs) if command.runs else folders.data_runs()
    best, failed = _Best(), None
    for number in range(1, wanted.trials + 1):
        values = study.ask(number)
        trial = Trial(sweep_id, number, values, wanted.figure, wanted.maximise)
        folder = runs / f"{sweep_id}{folders.TRIAL}{number:04}"
        try:
            run = begun(lab, project, values, folder, first, wanted.trials)
        except (LabError, EditError) as error:
            failed = error
            study.tell(number, None)
            continue
        lab.run = run
        run.files.writer.tag(trial)
        run.trial = TrialProgress(
            number, wanted.trials, in_words(values), wanted.figure, best.number, best.value
        )
        ended = yield from trained(lab, run, partial(study.report, number), trial)
        run.files.writer.tag(replace(trial, value=ended.value, is_pruned=ended.is_pruned))
        is_stopped = ended.state == "stopped" and not ended.is_pruned
        if not is_stopped:
            study.tell(number, ended.value, ended.is_pruned)
        if ended.state == "finished" and wanted.is_better(ended.value, best.value):
            best = _Best(number, ended.value or 0.0)
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
