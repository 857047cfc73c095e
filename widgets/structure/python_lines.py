"""The lines of Python that change modules, parameters and buffers."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from engine.protocol import ModuleRow, WeightRow
from widgets.text import format_shape

_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
"""Expressions that need no brackets before a dot."""


@dataclass(frozen=True)
class Action:
    """`ending` is the Python that the line has after the module or tensor; it is empty for
    initialising and tying, whose lines are written otherwise."""

    title: str
    tip: str
    ending: str


FREEZE = Action(
    "Freeze",
    "requires_grad_(False): backward computes no gradient for it, so no optimizer changes it.",
    ".requires_grad_(False)",
)
UNFREEZE = Action(
    "Unfreeze",
    "requires_grad_(True): backward computes its gradient again.",
    ".requires_grad_(True)",
)
TRAIN = Action(
    "train()",
    "Training mode: dropout drops, batch norm uses the batch's own mean and deviation.",
    ".train()",
)
EVAL = Action(
    "eval()",
    "Evaluation mode: dropout passes all on, batch norm uses its running mean and deviation.",
    ".eval()",
)
INITIALISE = Action("Initialise", "Fill it by a function of torch.nn.init.", "")
TIE = Action(
    "Tie",
    "One tensor under both names: the second row gets that of the first. An optimizer that holds"
    " the second's goes on with the old one: make it again afterwards.",
    "",
)

OF_MODULES = (FREEZE, UNFREEZE, TRAIN, EVAL)
OF_PARAMETERS = (FREEZE, UNFREEZE, INITIALISE)
OF_TWO_PARAMETERS = (FREEZE, UNFREEZE, INITIALISE, TIE)
OF_BUFFERS = (INITIALISE,)


@dataclass(frozen=True)
class Initialiser:
    """A function of torch.nn.init, and its arguments after the tensor with torch's own defaults."""

    name: str
    arguments: str
    tip: str


INITIALISERS = (
    Initialiser(
        "kaiming_uniform_",
        "a=0, mode='fan_in', nonlinearity='leaky_relu'",
        "He: uniform, so that ReLUs keep the variance from layer to layer.",
    ),
    Initialiser(
        "kaiming_normal_",
        "a=0, mode='fan_in', nonlinearity='leaky_relu'",
        "He: normal, so that ReLUs keep the variance from layer to layer.",
    ),
    Initialiser(
        "xavier_uniform_",
        "gain=1.0",
        "Glorot: uniform, so that tanh and linear layers keep the variance both ways.",
    ),
    Initialiser(
        "xavier_normal_",
        "gain=1.0",
        "Glorot: normal, so that tanh and linear layers keep the variance both ways.",
    ),
    Initialiser("normal_", "mean=0.0, std=1.0", "Normal numbers."),
    Initialiser(
        "trunc_normal_",
        "mean=0.0, std=1.0, a=-2.0, b=2.0",
        "Normal numbers, drawn again where they lie outside a to b.",
    ),
    Initialiser("uniform_", "a=0.0, b=1.0", "Uniform numbers from a to b."),
    Initialiser("orthogonal_", "gain=1", "An orthogonal matrix: it keeps lengths."),
    Initialiser("zeros_", "", "All 0."),
    Initialiser("ones_", "", "All 1."),
    Initialiser("constant_", "val=0.0", "All the same number."),
    Initialiser("eye_", "", "The identity, for a matrix."),
    Initialiser("dirac_", "groups=1", "A convolution that passes its input on."),
    Initialiser("sparse_", "sparsity=0.1, std=0.01", "Normal numbers, a share of each column 0."),
)


def action_lines(
    action: Action, subject: str, rows: Sequence[ModuleRow] | Sequence[WeightRow]
) -> list[str]:
    """A line for each row: `model.encoder[0].weight.requires_grad_(False)`."""
    return [f"{_before_dot(subject)}{row.code}{action.ending}" for row in rows]


def initialising_lines(
    function: str, arguments: str, subject: str, rows: Sequence[WeightRow]
) -> list[str]:
    """A line for each row: `torch.nn.init.normal_(model.head.weight, std=0.02)`."""
    after = f", {arguments.strip()}" if arguments.strip() else ""
    subject = _before_dot(subject)
    return [f"torch.nn.init.{function}({subject}{row.code}{after})" for row in rows]


def tying_line(subject: str, first: WeightRow, second: WeightRow) -> str:
    """The line that makes the second parameter the first: `model.head.weight = model.emb.weight`.
    A name that Python cannot write is registered."""
    subject = _before_dot(subject)
    kept = f"{subject}{first.code}"
    owner, found, name = second.code.rpartition(".get_parameter(")
    if found:
        return f"{subject}{owner}.register_parameter({name[:-1]}, {kept})"
    return f"{subject}{second.code} = {kept}"


def why_not_tied(first: WeightRow, second: WeightRow) -> str:
    """Why two parameters cannot be tied; empty if they can."""
    if second.name in first.shared_with:
        return f"{first.name} and {second.name} are one tensor already."
    if first.shape != second.shape:
        shapes = f"{format_shape(first.shape)} and {format_shape(second.shape)}"
        return f"Only parameters of equal shapes can be tied; these have {shapes}."
    return ""


def _before_dot(expression: str) -> str:
    try:
        is_atom = isinstance(ast.parse(expression, mode="eval").body, _ATOMS)
    except SyntaxError:
        is_atom = True  # the engine tells what is wrong with it
    return expression if is_atom else f"({expression})"
