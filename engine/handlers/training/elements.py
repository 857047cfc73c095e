"""Answers with one element of a parameter, and what the optimizer does to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

from msgspec.structs import replace
from torch import nn
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer

from ...lab import Lab
from ...loops.hooks import is_stepping, quiet
from ...protocol import ElementSnapshot, ReadElementCommand
from ...recording.compiled import own_path
from ...system.errors import LabError
from ...tensors.summary import shown_values
from ...training.optimization.next_update import next_update
from ...training.run import TrainingRun
from ..subjects.find import subject_of
from ..subjects.subject import Subject

_IN_STEP = "Its optimizer is in the middle of a step: the next update is known after it."


def read_element(lab: Lab, command: ReadElementCommand) -> Iterator[ElementSnapshot]:
    """Raises LabError if there is no such subject, parameter or element."""
    with lab.subjects.making_nothing() if lab.inside is not None else nullcontext():
        subject = subject_of(lab, command)
    parameter = _parameter(subject.module, command.name)
    run = lab.run if isinstance(lab.run, TrainingRun) else None
    if run is not None and run.loop.model is not subject.module:
        run = None
    step = run.loop.current if run is not None and run.is_in_step else None
    if step is not None and "step" in step.done:
        step = None  # it has made its update
    scale = 1.0 if step is None else step.optimization.autocast.scale
    with quiet():
        optimizer = _optimizer(lab, subject, run, parameter)
        is_inside = optimizer is not None and lab.inside is not None and is_stepping(optimizer)
        found = next_update(parameter, None if is_inside else optimizer, command.index, scale)
        element, whole = found.element, shown_values(found.whole) if command.whole else ()
    if is_inside:
        element = replace(element, optimizer=type(optimizer).__name__, note=_IN_STEP)
    if step is not None and element.update is not None:
        clips = step.setup.clip_norm or step.setup.clip_value
        note = "The update of this step, before the gradients are clipped." if clips else ""
        element = replace(element, note=note or "The update of this step.")
    told = tuple(value for value in whole if value is not None)
    yield ElementSnapshot(name=command.name, element=element, whole=told)


def _parameter(module: nn.Module, name: str) -> nn.Parameter:
    for known, parameter in module.named_parameters(remove_duplicate=False):
        if own_path(known) == name:
            if is_lazy(parameter):
                break
            return parameter
    raise LabError(
        f"{name} has no elements: there is no such parameter, or it has no shape yet.",
        hint="Choose another row of the table.",
    )


def _optimizer(
    lab: Lab, subject: Subject, run: TrainingRun | None, parameter: nn.Parameter
) -> Optimizer | None:
    """The run's, or one that has stepped or is a variable, that has the parameter."""
    known = [] if run is None else [run.loop.optimizer]
    known += [*lab.subjects.updates.optimizers, *subject.optimizers().values()]
    for optimizer in known:
        if any(p is parameter for group in optimizer.param_groups for p in group["params"]):
            return optimizer
    return None
