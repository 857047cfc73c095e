"""A Python expression of `step`, for a schedule of the user's own."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable

from ...errors import LabError

_FUNCTIONS = {name: getattr(math, name) for name in ("sqrt", "exp", "log", "cos", "sin", "floor")}
NAMES = {**_FUNCTIONS, "min": min, "max": max, "abs": abs, "pi": math.pi}
_ALLOWED = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call),
    *(ast.Constant, ast.Name, ast.Load, ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)


def function_of_step(expression: str) -> Callable[[int], float]:
    """The function that the expression computes. It can call the functions of NAMES only: what a
    project file says runs nothing else. Raises LabError, at once and when it is called."""
    hint = f"Use step, numbers, and {', '.join(NAMES)}."
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except SyntaxError as error:
        raise LabError(f"lr_lambda is not an expression: {error.msg}.", hint=hint) from error
    for node in ast.walk(tree):
        known = isinstance(node, _ALLOWED) and not (
            (isinstance(node, ast.Name) and node.id not in (*NAMES, "step"))
            or (isinstance(node, ast.Call) and not isinstance(node.func, ast.Name))
            or (isinstance(node, ast.Constant) and not isinstance(node.value, int | float))
        )
        if not known:
            raise LabError(f"lr_lambda cannot have {ast.unparse(node)!r}.", hint=hint)
    code = compile(tree, "<lr_lambda>", "eval")

    def function(step: int) -> float:
        try:
            return float(eval(code, {"__builtins__": {}, **NAMES, "step": step}))
        except (ArithmeticError, TypeError, ValueError) as error:
            raise LabError(f"lr_lambda at step {step}: {error}.", hint=hint) from error

    function(0)
    return function
