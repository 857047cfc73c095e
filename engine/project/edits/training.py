"""Edits of what is trained, on what, and how."""

from __future__ import annotations

from typing import TypeVar

from .. import catalogue
from ..document import (
    DataSetup,
    ParamGroup,
    Project,
    Schedule,
    SchedulePart,
    TrainingSetup,
    replace,
)
from ..limits import (
    HOLD_LIMITS,
    MAX_ACCUMULATE,
    MAX_BATCH_SIZE,
    MAX_CLIP,
    MAX_EPOCHS,
    MAX_PATH_CHARS,
    MAX_PATIENCE,
    MAX_POINTS,
    MAX_PREFETCH,
    MAX_PROCESSES,
    MAX_RECOMPUTED,
    MAX_SEED,
    MAX_SOURCE_CHARS,
    MAX_TIMEOUT,
    MAX_TRANSFORMS,
    MAX_WARMUP,
    MAX_WORKERS,
    point_problem,
)
from ..step_order import order_problem
from ..subject import Objective, Subject
from .parameters import EditError, checked_params, one_of, parsed_params

Part = TypeVar("Part", Schedule, SchedulePart)


def set_subject(project: Project, subject: Subject) -> Project:
    """Let the workspaces work on another subject. Its code's data and step belong to the subject
    before, so they are forgotten; a loss that blocks cannot have, too."""
    if subject == project.subject:
        return project
    objective = Objective(of_setup=project.objective.of_setup)
    training = project.training
    if not subject.is_code and training.loss not in catalogue.losses():
        training = replace(training, loss=TrainingSetup().loss, loss_params={})
    return replace(project, subject=subject, objective=objective, training=training)


def set_objective(project: Project, objective: Objective) -> Project:
    """Say what a subject of code is trained for."""
    if len(objective.step) > MAX_SOURCE_CHARS:
        raise EditError(f"A step has at most {MAX_SOURCE_CHARS:,} characters.")
    for text in (objective.data, objective.validation):
        if len(text) > MAX_PATH_CHARS:
            raise EditError(f"An expression has at most {MAX_PATH_CHARS:,} characters.")
    return replace(project, objective=objective)


def set_training(project: Project, setup: TrainingSetup) -> Project:
    """Replace the training set-up.

    - Every field is checked: kinds are of the catalogue, numbers and texts within their limits.
    - Parameters that a kind does not have are refused; values equal to the default are left out.

    Raises EditError.
    """
    data_kind = one_of("data set", setup.data.kind, catalogue.datasets())
    optimizer = one_of("optimizer", setup.optimizer, catalogue.optimizers())
    loss = one_of("loss", setup.loss, {**catalogue.losses(), **catalogue.other_losses()})
    _check_limits(setup)
    setup = replace(
        setup,
        data=_checked_data(setup.data, data_kind.params),
        loss_params=checked_params(loss.params, setup.loss_params),
        optimizer_params=checked_params(optimizer, setup.optimizer_params),
        groups=_checked_groups(setup.groups, optimizer),
    )
    _check_recomputed(setup.recomputed)
    return replace(project, training=replace(setup, schedule=_checked_schedule(setup.schedule)))


def _check_limits(setup: TrainingSetup) -> None:
    if not 0.0 < setup.data.validation_fraction < 1.0:
        raise EditError("The validation fraction must be between 0 and 1, such as 0.2.")
    for name, value, least, most in (
        ("split_seed", setup.data.split_seed, 0, MAX_SEED),
        ("workers", setup.data.loading.workers or 0, 0, MAX_WORKERS),
        ("prefetch_factor", setup.data.loading.prefetch_factor, 1, MAX_PREFETCH),
        ("timeout", setup.data.loading.timeout, 0, MAX_TIMEOUT),
        ("padding_value", setup.data.loading.padding_value, -MAX_CLIP, MAX_CLIP),
        ("batch_size", setup.batch_size, 1, MAX_BATCH_SIZE),
        ("epochs", setup.epochs, 1, MAX_EPOCHS),
        ("seed", setup.seed, 0, MAX_SEED),
        ("accumulate", setup.accumulate, 1, MAX_ACCUMULATE),
        ("processes", setup.processes, 1, MAX_PROCESSES),
        ("clip_norm", setup.clip_norm, 0, MAX_CLIP),
        ("clip_value", setup.clip_value, 0, MAX_CLIP),
        ("warmup", setup.schedule.warmup, 0, MAX_WARMUP),
        ("warmup_from", setup.schedule.warmup_from, 1e-12, 1),
        ("decay", setup.averaging.decay, 0, 1),
        ("start", setup.averaging.start, 0, MAX_EPOCHS),
        ("swa_lr", setup.averaging.swa_lr, 0, MAX_CLIP),
        ("anneal_epochs", setup.averaging.anneal_epochs, 1, MAX_EPOCHS),
        ("patience", setup.stopping.patience, 0, MAX_PATIENCE),
        ("min_delta", setup.stopping.min_delta, 0, MAX_CLIP),
        *((name, getattr(setup.hold, name), 0, most) for name, most in HOLD_LIMITS.items()),
    ):
        if not least <= value <= most:
            wanted = f"at least {least}" if value < least else f"at most {most:,}"
            raise EditError(f"{name} is {value:,}: it must be {wanted}.")
    for name, expression in setup.data.loading.given.items():
        if len(expression) > MAX_PATH_CHARS:
            raise EditError(f"{name} has at most {MAX_PATH_CHARS:,} characters.")
    if problem := order_problem(setup.order):
        raise EditError(problem)
    if len(setup.data.transforms) > MAX_TRANSFORMS:
        raise EditError(f"A data set has at most {MAX_TRANSFORMS} transforms.")
    if len(setup.data.points) > MAX_POINTS:
        raise EditError(f"At most {MAX_POINTS:,} points can be painted.")
    for point in setup.data.points:
        if problem := point_problem(point):
            raise EditError(problem)


def _checked_data(data: DataSetup, known: tuple[catalogue.Param, ...]) -> DataSetup:
    kinds = [one_of("transform", each.kind, catalogue.transforms()) for each in data.transforms]
    return replace(
        data,
        params=checked_params(known, data.params),
        transforms=tuple(
            replace(transform, params=checked_params(kind.params, transform.params))
            for transform, kind in zip(data.transforms, kinds, strict=True)
        ),
    )


def _checked_groups(
    groups: tuple[ParamGroup, ...], optimizer: tuple[catalogue.Param, ...]
) -> tuple[ParamGroup, ...]:
    checked = tuple(
        replace(group, params=parsed_params(optimizer, group.params)) for group in groups
    )
    if len({group.module for group in groups}) < len(groups):
        raise EditError("A module has its own options already: change them there.")
    return checked


def _check_recomputed(modules: tuple[str, ...]) -> None:
    if len(set(modules)) < len(modules):
        raise EditError("This module's activations are computed again already.")
    if len(modules) > MAX_RECOMPUTED:
        raise EditError(f"At most {MAX_RECOMPUTED:,} modules can be computed again.")


def _checked_schedule(schedule: Schedule) -> Schedule:
    if schedule.kind:
        schedule = replace(_checked_part(schedule), parts=tuple(map(_checked_part, schedule.parts)))
    if problem := schedule.problem:
        raise EditError(problem)
    return schedule


def _checked_part(part: Part) -> Part:
    known = one_of("scheduler", part.kind, catalogue.schedulers())
    return replace(part, params=checked_params(known, part.params))
