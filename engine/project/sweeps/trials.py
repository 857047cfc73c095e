"""The values of a trial in a project, and whether a sweep makes sense for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from .. import catalogue
from ..document import ParamValue, Project, TrainingSetup, replace
from ..edits.blocks import set_param
from ..edits.parameters import EditError
from ..edits.training import set_training
from ..limits import MAX_TRIALS
from .sweep import Sweep, SweepProblem

MAX_CHOICES = 20


def check_sweep(sweep: Sweep, project: Project) -> None:
    """Check that each setting can be as the sweep says, as far as that is known without training.
    Raises SweepProblem."""
    if not sweep.choices:
        raise SweepProblem("Choose a setting to vary, such as the learning rate.")
    if len(sweep.choices) > MAX_CHOICES:
        raise SweepProblem(f"A sweep varies at most {MAX_CHOICES} settings.")
    names = [choice.name for choice in sweep.choices]
    if twice := [name for name in names if names.count(name) > 1]:
        raise SweepProblem(f"{twice[0]} is there twice: put all its values into one.")
    if not 1 <= sweep.trials <= MAX_TRIALS:
        raise SweepProblem(f"A sweep has 1 to {MAX_TRIALS:,} trials, not {sweep.trials:,}.")
    optimizers = next((c.values for c in sweep.choices if c.name == "optimizer"), ())
    for choice in sweep.choices:
        for value in choice.values or (choice.low, choice.high):
            # An option that only some of the optimizers have is checked with one that has it.
            bases = [{"optimizer": one} for one in optimizers if choice.name != "optimizer"]
            _check_value(project, choice.name, value, bases or [{}])


def _check_value(
    project: Project, name: str, value: ParamValue, bases: Sequence[Mapping[str, ParamValue]]
) -> None:
    problems = []
    for base in bases:
        try:
            with_values(with_values(project, base), {name: value})
        except EditError as error:
            problems.append(error)
    if len(problems) == len(bases):
        raise SweepProblem(f"{name} cannot be {value}: {problems[0]}") from problems[0]


def with_values(project: Project, values: Mapping[str, ParamValue]) -> Project:
    """The project of a trial. An option that its optimizer does not have is left out if the
    optimizer varies too. Raises EditError."""
    if "optimizer" in values:
        project = _with_optimizer(project, values["optimizer"])
    for name, value in values.items():
        if name == "optimizer":
            continue
        of_optimizer = name.startswith("optimizer_params.")
        if of_optimizer and "optimizer" in values and not _has_setting(project, name):
            continue
        is_block = name.startswith("blocks.")
        project = (_with_block if is_block else _with_setting)(project, name, value)
    return project


def _with_optimizer(project: Project, kind: ParamValue) -> Project:
    known = {param.name for param in catalogue.optimizers().get(str(kind), ())}
    params = {n: v for n, v in project.training.optimizer_params.items() if n in known}
    return set_training(
        project, replace(project.training, optimizer=str(kind), optimizer_params=params)
    )


def _has_setting(project: Project, name: str) -> bool:
    params = catalogue.optimizers().get(project.training.optimizer, ())
    return name.removeprefix("optimizer_params.") in {param.name for param in params}


def _with_block(project: Project, name: str, value: ParamValue) -> Project:
    _, block_name, param = [*name.split(".", 2), "", ""][:3]
    for block in project.model.blocks:
        if block.name == block_name:
            return set_param(project, block.id, param, value)
    raise EditError(f"The model has no block `{block_name}`.")


def _with_setting(project: Project, name: str, value: ParamValue) -> Project:
    fields = msgspec.to_builtins(project.training)
    holder = fields
    *path, last = name.split(".")
    for step in path:
        holder = holder.get(step) if isinstance(holder, dict) else None
    is_option = bool(path) and path[-1].endswith("params")
    if not isinstance(holder, dict) or not (is_option or last in holder):
        raise EditError(f"There is no setting `{name}`.")
    holder[last] = value
    try:
        setup = msgspec.convert(fields, TrainingSetup)
    except msgspec.ValidationError as error:
        raise EditError(f"{error}") from error
    return set_training(project, setup)
