"""A Python expression of one variable, for a schedule of the user's own."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable

from ...system.errors import LabError

_FUNCTIONS = {name: getattr(math, name) for name in ("sqrt", "exp", "log", "cos", "sin", "floor")}
NAMES = {**_FUNCTIONS, "min": min, "max": max, "abs": abs, "pi": math.pi}
_ALLOWED = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call),
    *(ast.Constant, ast.Name, ast.Load, ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)


VARIABLES = {"lr_lambda": "step", "scale_fn": "x"}
"""The arguments of schedulers that are functions, with the names of their variables."""


def function_of(argument: str, expression: str) -> Callable[[float], float]:
    """The function that the expression computes, for an argument of VARIABLES. It can call the
    functions of NAMES only: what a project file says runs nothing else. Raises LabError, at once
    and when it is called."""
    variable = VARIABLES[argument]
    hint = f"Use {variable}, numbers, and {', '.join(NAMES)}."
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except SyntaxError as error:
        raise LabError(f"{argument} is not an expression: {error.msg}.", hint=hint) from error
    for node in ast.walk(tree):
        known = isinstance(node, _ALLOWED) and not (
            (isinstance(node, ast.Name) and node.id not in (*NAMES, variable))
            or (isinstance(node, ast.Call) and not isinstance(node.func, ast.Name))
            or (isinstance(node, ast.Constant) and not isinstance(node.value, int | float))
        )
        if not known:
            raise LabError(f"{argument} cannot have {ast.unparse(node)!r}.", hint=hint)
    code = compile(tree, f"<{argument}>", "eval")

    def function(value: float) -> float:
        try:
            return float(eval(code, {"__builtins__": {}, **NAMES, variable: value}))
        except (ArithmeticError, TypeError, ValueError) as error:
            raise LabError(f"{argument} at {variable} {value}: {error}.", hint=hint) from error

    function(1)  # a scheduler that counts from 0 calls it with 0 when it is made
    return function
