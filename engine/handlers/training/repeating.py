"""The last run once more: to one of its steps, or to where it diverged."""

from __future__ import annotations

from torch import nn

from ...lab import Lab
from ...project.document import Project
from ...project.edits import loss_call
from ...protocol import TrainCommand
from ...system.errors import LabError
from ...training import repeated_run
from ...training.checkpoints.checkpoint_match import check_change
from ...training.loop import TrainingLoop
from ...training.objectives.objective import Objective
from ...training.run import TrainingRun
from ...training.way_to_step import Way
from .ranks import no_way


def again(lab: Lab, model: nn.Module, command: TrainCommand, objective: Objective) -> TrainingRun:
    """The last run, on its way to the step of the command. Raises LabError."""
    before, step = last_run(lab, model, command), command.to_step
    assert step is not None
    total = before.loop.total_steps
    _check_order(before, "it cannot go to a step")
    if step < 0 or (total is not None and step > total):
        raise LabError(f"The run has the steps 0 to {total or 0:,}, not {step:,}.")
    start = before.kept.newest(step)
    if start is None:
        raise LabError(
            f"The run has no state from which step {step:,} can be reached.",
            hint=_why_none(before, step),
        )
    objective_then, watch = before.kept.objective_at(start.step), lab.subjects.watching
    loop = TrainingLoop(model, start.setup, objective_then, watch, before.loop.subject)
    way = Way(start, step, command.training, objective, lab.control.pause.set)
    return repeated_run.again(before, loop, way)


def is_other_loss(before: Project, command: TrainCommand) -> bool:
    """Whether the steps of a run that goes on are not those that it did before."""
    then = loss_call(before.model, before.training)
    now = loss_call(command.model, command.training)
    return before.objective != command.objective or then != now


def _check_order(before: TrainingRun, so: str) -> None:
    """Raises LabError if the batches of the run have no order."""
    if not before.loop.objective.repeats:
        raise LabError(
            f"With in_order off, no run has the same batches again: {so}.",
            hint="Turn in_order on, and train again.",
        )


def _why_none(before: TrainingRun, step: int) -> str:
    past = before.kept.past
    if step < past.since:
        return f"Before step {past.since:,} it had another code or loss. A later step can be."
    return (
        "States of more than 4 GB, or half of the free disk, are not kept; and a run of an earlier"
        " version has none. Train again to go back in it."
    )


def last_run(lab: Lab, model: nn.Module, command: TrainCommand) -> TrainingRun:
    """Raises LabError if it is of another model, or cannot have the set-up of the command."""
    before = lab.run
    if before is not None and not isinstance(before, TrainingRun):
        raise no_way()
    if before is None:
        raise LabError("There is no run to go back in.", hint="Train first.")
    check_change(before.loop.setup, command.training)
    if before.loop.model is not model:
        raise LabError(
            "The last run trained another model.", hint="Undo the change, or train again."
        )
    return before


def where_it_diverged(before: TrainingRun) -> TrainingRun:
    """The run once more, on its way to the step in which it diverged: it will be held there.
    Raises LabError unless it `can_find_divergence`."""
    step, old = before.diverged_at, before.loop
    _check_order(before, "it need not diverge")
    start = before.kept.newest_finite(step - 1) if before.can_find_divergence else None
    if start is None:
        raise LabError(
            "No state of the last run can be repeated up to where its numbers went wrong.",
            hint="A run keeps its states if they are small enough; LBFGS cannot be held inside a"
            " step. Train with fresh weights.",
        )
    loop = TrainingLoop(old.model, start.setup, old.objective, old.watch, old.subject)
    loop.holding.look_for_divergence()
    way = Way(start, step - 1, old.setup, old.objective, lambda: None)
    return repeated_run.again(before, loop, way, is_new=True)
