"""Roots and their gradients as a person types them: split at the commas, checked in words."""

from __future__ import annotations

import ast
from typing import Any

import torch
from torch import Tensor

from ...system.errors import LabError


def split_expressions(text: str) -> tuple[str, ...]:
    """The expressions in a text, which separates them by commas. Raises LabError for a syntax error
    and for an empty text."""
    if not text.strip():
        raise LabError("There is no root.", hint="Write a variable's name: loss, or y, z.")
    try:
        tree = ast.parse(f"({text}\n,)", mode="eval").body
    except (SyntaxError, ValueError) as error:
        why = error.msg if isinstance(error, SyntaxError) else str(error)
        raise LabError(
            f"`{text}` is not an expression: {why}.", hint="Write a variable's name: loss, or y, z."
        ) from None
    assert isinstance(tree, ast.Tuple)
    return tuple(ast.unparse(item) for item in tree.elts)


def checked_root(value: Any, text: str) -> Tensor:
    """`value`, that of the expression `text`, if it can be a root: a tensor with a graph. Raises
    LabError otherwise."""
    if not isinstance(value, Tensor):
        raise LabError(
            f"`{text}` is of type {type(value).__name__}, not a tensor.",
            hint="A graph is read from a tensor: choose one that was computed.",
        )
    if not value.requires_grad:
        raise LabError(
            f"`{text}` has no graph: it does not require grad.",
            hint="It was made from tensors without requires_grad, under no_grad, or by detach(); "
            "what it is made from needs requires_grad=True before.",
        )
    return value


def checked_gradient(value: Any, text: str, root: Tensor, name: str) -> tuple[Tensor | None, str]:
    """The gradient for `root` that a typed expression gives, and the same as Python. `text` is the
    expression, `value` its value, `name` the expression of the root. None stands for the 1 of a
    scalar root. Raises LabError if the gradient does not fit."""
    if value is None and root.numel() == 1:
        return None, "None"
    is_complex = value.is_complex() if isinstance(value, Tensor) else isinstance(value, complex)
    if is_complex and not root.is_complex():
        raise LabError(
            f"The gradient for `{name}` is complex, and `{name}` is real.",
            hint="Write real numbers, or take the .real part.",
        )
    if isinstance(value, bool | int | float | complex):
        full = torch.full_like(root, value, requires_grad=False)
        return full, f"torch.full_like({name}, {text})"
    try:
        given = torch.as_tensor(value, dtype=root.dtype, device=root.device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise LabError(
            f"The gradient for `{name}` is neither a tensor nor numbers: {error}",
            hint=f"Write torch.ones_like({name}), a number, or nested lists.",
        ) from None
    if given.shape != root.shape:
        raise LabError(
            f"The gradient for `{name}` has shape {tuple(given.shape)}, and `{name}` has "
            f"{tuple(root.shape)}: they must be the same.",
            hint=f"Write torch.ones_like({name}), or a number for all of them.",
        )
    if isinstance(value, Tensor) and value.dtype == root.dtype:
        return value, text
    return given, f"torch.as_tensor({text}, dtype=({name}).dtype, device=({name}).device)"
