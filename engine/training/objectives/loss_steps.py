"""Steps with a loss of torch's that the user has chosen, as Python for a model and its batch."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ...datasets.dataset import Dataset
from ...project import catalogue
from ...project.document import ParamValue
from ...restoring.module_kept import module_kept
from ...restoring.random_states import torch_states_kept
from ...system.errors import LabError
from ..components.arguments import checked
from ..components.class_weights import weighted
from ..components.losses import loss_source, target_source
from .batch_parts import as_dtype
from .code_objective import compile_step, outcome_of
from .usual_steps import UsualStep, called, described, step_source
from .usual_tasks import joined, main_tensors

_FUNCTION = "distance_function"
"""The argument of a loss that is Python itself."""


def loss_step(
    model: nn.Module,
    batch: Any,
    kind: str,
    params: Mapping[str, ParamValue],
    variables: Mapping[str, Any],
    dataset: Dataset | None = None,
) -> UsualStep:
    """The step with the loss of this kind and its arguments. It runs once on the batch, and the
    model is left as it was. `variables` are those of the user's code, `dataset` gives balanced
    weights.

    Raises LabError for a batch, or a model, that the loss cannot take, and for bad arguments.
    """
    losses, others = catalogue.losses(), catalogue.other_losses()
    if kind in others:
        arguments = checked(kind, others[kind].params, params)
        source = others[kind].source(_call(kind, arguments), _module(model, kind))
        takes = f"takes {others[kind].takes}"
    elif kind in losses:
        arguments = weighted(checked(kind, losses[kind].params, params), dataset, kind)
        source = _of_target(model, batch, kind, loss_source(kind, arguments))
        takes = "compares a prediction with a target: batches (x, y)"
    else:
        raise LabError(catalogue.no_loss(kind), hint=f"Choose one of {', '.join(losses)}.")
    try:
        step = compile_step(source, model, variables)
        with (
            module_kept(model, training=False),
            torch.enable_grad(),
            torch_states_kept(),
        ):
            outcome_of(step(batch), 1)
    except LabError:
        raise
    except Exception as error:  # the batch, or the user's module, may be anything
        raise LabError(
            f"{kind} {takes}. The batch is {described(batch)}, and the step raised"
            f" {type(error).__name__}: {error}.",
            hint="Give such batches, or write the step yourself.",
        ) from error
    return UsualStep(kind.removeprefix("nn."), source)


def _call(kind: str, arguments: Mapping[str, ParamValue]) -> str:
    """Raises LabError for a distance that is no Python."""
    plain = {name: value for name, value in arguments.items() if name != _FUNCTION}
    made = loss_source(kind, plain)
    if not (function := arguments.get(_FUNCTION)):
        return made
    try:
        ast.parse(str(function).strip(), mode="eval")
    except SyntaxError as error:
        raise LabError(
            f"{_FUNCTION} is not an expression: {error.msg}.",
            hint="Write a function of two batches: lambda a, b: (a - b).norm(dim=1).",
        ) from error
    return f"{made[:-1]}{', ' if plain else ''}{_FUNCTION}={str(function).strip()})"


def _module(model: nn.Module, kind: str) -> str:
    """How the step names the part of the model that is this loss. Raises LabError if it has none,
    and the loss has weights."""
    cls = getattr(nn, kind.removeprefix("nn."))
    found = [path for path, part in model.named_modules() if type(part) is cls and path]
    if found:
        is_name = all(name.isidentifier() for name in found[0].split("."))
        return f"model.{found[0]}" if is_name else f'model.get_submodule("{found[0]}")'
    if "{module}" in "".join(catalogue.other_losses()[kind].step):
        raise LabError(
            f"The module has no {kind}, whose weights are trained with it.",
            hint=f"Let your module make it, as self.loss = {kind}(...), and return the features.",
        )
    return ""


def _of_target(model: nn.Module, batch: Any, kind: str, made: str) -> str:
    parts, prediction = called(model, batch)
    taken, main = next(main_tensors(prediction), ("", None))
    target = parts.target
    if not isinstance(target, Tensor) or main is None:
        raise LabError(
            f"{kind} compares a prediction with a target: the batch is {described(batch)}, the"
            f" prediction is {described(prediction)}.",
            hint="Give batches (x, y), and let the module return one tensor.",
        )
    lines = _fitted(kind, main, target)
    result = ['return {"loss": loss}']
    is_label = target.ndim == 1 or target.shape[1:] == (1,)
    if catalogue.kind(kind).target == "labels" and main.ndim == 2 and is_label:
        right = "(prediction.argmax(1) == y).float().mean()"
        result = [f'return {{"loss": loss, "accuracy": {right}}}']
    loss = f"loss = {made}(prediction, y)"
    first = f"prediction = model({parts.call}){taken}"
    return step_source([parts.line, parts.target_line, first, *lines, loss, *result])


def _fitted(kind: str, p: Tensor, y: Tensor) -> list[str]:
    """The lines that give a target y, and a prediction p, the shapes and dtypes that torch's loss
    takes: see `fitted_target`."""
    how = catalogue.kind(kind).target
    changed = joined(p, y)
    if how in ("numbers", "shares", "signs") and changed is not None:
        of_p, of_y = changed
        of_y += of_p.replace("squeeze", "unsqueeze")
        of_y += "" if y.dtype == p.dtype else as_dtype(p.dtype)
        lines = [f"y = y{of_y}"] if of_y else []
        is_bits = how == "signs" and bool((y == 0).any())
        return [*lines, "y = 2 * y - 1"] if is_bits else lines
    if y.is_floating_point() and p.shape == y.shape:  # shares of classes
        return []
    lines = ["y = y.squeeze(-1)"] if y.ndim > 1 and y.shape[-1] == 1 else []
    lines += [] if y.dtype == torch.int64 else ["y = y.long()"]
    if p.ndim > 2 and p.shape[:-1] == y.shape and p.shape[2:] != y.shape[1:]:
        lines.append("prediction, y = prediction.flatten(0, -2), y.flatten()")
    return [*lines, *(_of_y(line) for line in target_source(kind, False))]


def _of_y(line: str) -> str:
    """A line of `target_source`, whose target is y here."""
    return re.sub(r"\btarget\b", "y", line)
