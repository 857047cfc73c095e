"""The value of an expression of the console: this runs the user's code."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..errors import LabError
from .error_help import explain_error
from .namespace import namespace_of

if TYPE_CHECKING:
    from ..lab import Lab


def evaluate(lab: Lab, expression: str) -> object:
    """Evaluate Python among the console's variables, in the grad mode, default dtype and device
    that the next cell would have; an InterruptSignal ends it.

    Raises LabError, in words, where it is no expression or fails.
    """
    text = expression.strip()
    try:
        code = compile(ast.parse(text, mode="eval"), "<expression>", "eval")
    except (SyntaxError, ValueError) as error:
        raise LabError(
            f"`{text}` is not a Python expression.",
            hint="Write a value: x, torch.ones_like(y), lambda x: (x**2).sum().",
        ) from error
    namespace = namespace_of(lab)
    try:
        with namespace.users_modes(), lab.control.user_code():
            return eval(code, namespace.variables)
    except Exception as error:
        raise LabError(
            f"`{text}` failed: {type(error).__name__}: {error}", hint=explain_error(error)
        ) from error
