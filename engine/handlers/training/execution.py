"""The memory of one step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from ...lab import Lab
from ...protocol import MeasureStepCommand, Snapshot, StepBytes, StepMemorySnapshot
from ...training.checks.untouched import untouched
from ...training.execution.recomputing import Recomputing
from ...training.memory.step_memory import StepMemory, measured, predicted
from ...training.objectives.batches import samples_in
from ..subjects.find import subject_of
from ..subjects.subject import first_batch
from .at_rest import require_rest


def measure_step(lab: Lab, command: MeasureStepCommand) -> Iterator[Snapshot]:
    """Raises LabError while a run goes on, and if the model or its data cannot be trained."""
    require_rest(lab)
    setup = command.training
    subject = subject_of(lab, command)
    subject.check()
    objective = subject.objective()
    recomputing = Recomputing(subject.module, setup.recomputed)
    autocast = nullcontext()
    if setup.precision != "float32":
        autocast = torch.autocast("cpu", getattr(torch, setup.precision))

    def step_in(context: AbstractContextManager[object]) -> Tensor:
        with autocast, context, objective.metrics.aside():
            return objective.outcome(batch).loss

    learning = (p for p in subject.module.parameters() if p.requires_grad)
    gradients = sum(p.nbytes for p in learning)
    with subject.running(objective.generators):
        batch = first_batch(objective.batches(0, 0))
        with untouched(subject.module):
            without = measured(lambda: step_in(nullcontext()))
        with untouched(subject.module):
            forecast = predicted(
                lambda: step_in(nullcontext()), recomputing.modules, without, gradients
            )
        with untouched(subject.module):
            found = measured(lambda: step_in(recomputing))
    yield StepMemorySnapshot(
        samples=samples_in(batch),
        without=_sent(without),
        predicted=_sent(forecast),
        measured=_sent(found),
    )


def _sent(memory: StepMemory) -> StepBytes:
    return StepBytes(memory.kept, memory.peak)
