"""The loss of training: a block on the canvas has precedence over the set-up."""

from __future__ import annotations

from .. import catalogue
from ..document import Block, Model, ParamValue, Project, TrainingSetup, replace
from .blocks import with_block
from .parameters import kind_of, one_of


def loss_block(model: Model) -> Block | None:
    """The first loss block on the canvas, or None."""
    return next((b for b in model.blocks if kind_of(b.kind).call == "loss"), None)


def loss_of(project: Project) -> str:
    """The loss that training uses: that of the loss block on the canvas, else `training.loss`."""
    block = loss_block(project.model)
    return block.kind if block else project.training.loss


def loss_call(model: Model, setup: TrainingSetup) -> tuple[str, dict[str, ParamValue]]:
    """The loss of training with its arguments: those of the loss block, else of the set-up."""
    block = loss_block(model)
    return (block.kind, block.params) if block else (setup.loss, setup.loss_params)


def set_loss(project: Project, loss: str) -> Project:
    """Choose the loss: on the canvas's loss block if there is one, else in the set-up. The step of
    code is written with it, in place of one of the user's; with "", it fits the first batch."""
    if project.subject.is_code:
        return _with_loss_of_step(project, loss)
    shared = {param.name for param in one_of("loss", loss, catalogue.losses()).params}
    block = loss_block(project.model)
    given = block.params if block else project.training.loss_params
    kept = {name: value for name, value in given.items() if name in shared}
    params = {**catalogue.defaults(loss), **kept}
    if block is None:
        setup = replace(project.training, loss=loss, loss_params=params)
        return replace(project, training=setup)
    return with_block(project, replace(block, kind=loss, params=params))


def _with_loss_of_step(project: Project, loss: str) -> Project:
    objective = replace(project.objective, step="", loss_of_setup=bool(loss))
    project = replace(project, objective=objective)
    if not loss:
        return project
    known = one_of("loss", loss, {**catalogue.losses(), **catalogue.other_losses()}).params
    shared = {param.name for param in known}
    kept = {n: v for n, v in project.training.loss_params.items() if n in shared}
    initial = {param.name: param.initial for param in known if param.initial is not None}
    setup = replace(project.training, loss=loss, loss_params={**initial, **kept})
    return replace(project, training=setup)
