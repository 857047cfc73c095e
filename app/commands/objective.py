"""`--hold-out` and `--loss`: what the form of Train says of a subject of code."""

from __future__ import annotations

import ast

from msgspec.structs import replace

from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from app.commands.target import Target
from engine.project import edits
from engine.project.document import ParamValue, Project


def with_objective(target: Target, hold_out: float | None, loss: str | None) -> Target:
    """The target with the share of its samples that validates, and the loss of torch's, as a name
    or a call, with which its step is written; None keeps those of its settings. Raises
    CommandFailure."""
    for option, value, own in (("--hold-out", hold_out, "split"), ("--loss", loss, "loss")):
        if value is not None and target.has_folder:
            raise CommandFailure(
                f"{option} is for a subject of code, FILE.py:EXPRESSION; a project has its {own}.",
                BAD_ARGUMENTS,
            )
    project = replace(target.project, subject=target.subject, objective=target.objective)
    if hold_out is not None:
        if target.objective.validation:
            raise CommandFailure(
                "--validation names the data to validate on: leave --hold-out off.", BAD_ARGUMENTS
            )
        data = replace(project.training.data, hold_out=True, validation_fraction=hold_out)
        project = replace(project, training=replace(project.training, data=data))
    if loss is not None:
        try:
            project = _with_loss(project, loss)
        except edits.EditError as error:
            raise CommandFailure(f"--loss {loss}: {error}", BAD_ARGUMENTS) from None
    plain = replace(target.project, training=project.training)
    return target._replace(project=plain, objective=project.objective)


def _with_loss(project: Project, text: str) -> Project:
    """Raises EditError."""
    kind, arguments = _called(text)
    project = edits.set_loss(project, kind)
    setup = project.training
    setup = replace(setup, loss_params={**setup.loss_params, **arguments})
    return edits.set_training(project, setup)


def _called(text: str) -> tuple[str, dict[str, ParamValue]]:
    """The key in the catalogue, and the arguments, of "HuberLoss(delta=0.5)" or "nn.HuberLoss".
    Raises EditError."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        call = tree if isinstance(tree, ast.Call) else ast.Call(tree, [], [])
        if call.args or not all(each.arg for each in call.keywords):
            raise ValueError
        arguments = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (SyntaxError, ValueError):
        words = "write a name, or a call with named arguments: HuberLoss(delta=0.5)."
        raise edits.EditError(words) from None
    return f"nn.{ast.unparse(call.func).rpartition('.')[2]}", arguments
