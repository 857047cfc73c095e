"""Formulas written once, as Python: evaluated on tensors, and shown in the field's notation.

`"g * (1 - y**2)"` is evaluated elementwise on tensors. It is shown as `g · (1 - y²)`, or with
numbers as `0.5 · (1 - 0.3²)`. So a reader sees the same text that the tests compare with torch.
`where(c, a, b)` is shown as `a if c else b`.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch

_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_GREEK = {"alpha": "α", "beta": "β", "pi": "π", "sigma": "σ", "delta": "δ", "lambd": "λ"}
_CONSTANTS = {"pi": math.pi, "nan": math.nan}
_PLAIN = (
    *("exp", "log", "sqrt", "abs", "sign", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sigmoid"),
    *("erf", "erfinv", "digamma", "trunc", "floor", "isfinite", "isnan"),
)
_FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    **{name: getattr(torch, name) for name in _PLAIN},
    "i1": torch.special.i1,
    "max": torch.maximum,
    "trigamma": lambda x: torch.polygamma(1, x),
    "where": torch.where,
}
_COMPARISONS: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Gt: (">", lambda a, b: a > b),
    ast.GtE: ("≥", lambda a, b: a >= b),
    ast.Lt: ("<", lambda a, b: a < b),
    ast.LtE: ("≤", lambda a, b: a <= b),
    ast.Eq: ("=", lambda a, b: a == b),
}
_OPERATORS: dict[type, tuple[str, int, Callable[[Any, Any], Any]]] = {
    ast.Add: (" + ", 3, lambda a, b: a + b),
    ast.Sub: (" - ", 3, lambda a, b: a - b),
    ast.Mult: (" · ", 4, lambda a, b: a * b),
    ast.Div: (" / ", 4, lambda a, b: a / b),
}
_ATOM = 9

Show = Callable[[str], str]
"""From a symbol's name to its text: the name itself, the name with an index, or a number."""


class Expression:
    """One formula. `symbols` are the names in it, in order of appearance."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._tree = ast.parse(source, mode="eval").body
        names = (n.id for n in ast.walk(self._tree) if isinstance(n, ast.Name))
        self.symbols = tuple(
            dict.fromkeys(n for n in names if n not in _FUNCTIONS and n not in _CONSTANTS)
        )

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """The value, broadcast as in torch; a plain number if no value is a tensor. Raises KeyError
        for a symbol without a value."""
        return _evaluate(self._tree, values)

    def text(self, show: Show = lambda name: pretty(name), *, within_sum: bool = False) -> str:
        """The formula in the field's notation; `within_sum` adds the brackets that a term of a sum
        needs."""
        text, precedence = _text(self._tree, show)
        return f"({text})" if within_sum and precedence < 3 else text


@cache
def expression(source: str) -> Expression:
    return Expression(source)


def pretty(name: str) -> str:
    """`alpha` -> `α`."""
    return _GREEK.get(name, name)


def _evaluate(tree: ast.expr, values: Mapping[str, Any]) -> Any:
    match tree:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return _CONSTANTS[name] if name in _CONSTANTS else values[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, values)
        case ast.BinOp(left=left, op=op, right=right):
            operate = operator.pow if isinstance(op, ast.Pow) else _OPERATORS[type(op)][2]
            return _operate(operate, _evaluate(left, values), _evaluate(right, values))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _COMPARISONS[type(op)][1](_evaluate(left, values), _evaluate(right, values))
        case ast.BoolOp(op=op, values=parts):
            found = [torch.as_tensor(_evaluate(part, values)) for part in parts]
            joined = found[0]
            for part in found[1:]:
                joined = joined & part if isinstance(op, ast.And) else joined | part
            return joined
        case ast.Call(func=ast.Name(id=name), args=args):
            given = [_evaluate(arg, values) for arg in args]
            if name == "where":
                given[0] = torch.as_tensor(given[0])
            else:
                given = [a if torch.is_tensor(a) else _number(a) for a in given]
            return _FUNCTIONS[name](*given)
    raise ValueError(f"a formula cannot contain {ast.unparse(tree)!r}")


def _operate(operate: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Plain numbers give what torch gives: 1 / 0 is inf, (-1) ** 0.5 is nan."""
    try:
        result = operate(left, right)
    except (ZeroDivisionError, OverflowError):
        return operate(_number(left), right).item()
    was_real = not isinstance(left, complex) and not isinstance(right, complex)
    return math.nan if isinstance(result, complex) and was_real else result


def _number(value: complex) -> torch.Tensor:
    return torch.tensor(
        value, dtype=torch.complex128 if isinstance(value, complex) else torch.float64
    )


def _text(tree: ast.expr, show: Show) -> tuple[str, int]:
    """The text of a formula and the precedence of its outermost operator."""

    def part(child: ast.expr, least: int) -> str:
        text, precedence = _text(child, show)
        return f"({text})" if precedence < least else text

    match tree:
        case ast.Constant(value=value):
            return str(value), _ATOM
        case ast.Name(id=name):
            text = pretty(name) if name in _CONSTANTS else show(name)
            return text, 2 if text.startswith("-") else 5 if "e-" in text else _ATOM
        case ast.UnaryOp(operand=operand):
            return f"-{part(operand, 4)}", 3
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            if isinstance(right, ast.Constant) and isinstance(right.value, int):
                return f"{part(left, 8)}{str(right.value).translate(_SUPERSCRIPT)}", 6
            return f"{part(left, 8)}^{part(right, 7)}", 6
        case ast.BinOp(left=left, op=op, right=right):
            sign, precedence, _ = _OPERATORS[type(op)]
            tighter = precedence + (not isinstance(op, ast.Add | ast.Mult))
            return f"{part(left, precedence)}{sign}{part(right, tighter)}", precedence
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return f"{part(left, 2)} {_COMPARISONS[type(op)][0]} {part(right, 2)}", 1
        case ast.BoolOp(op=op, values=parts):
            word = " and " if isinstance(op, ast.And) else " or "
            return word.join(part(p, 1) for p in parts), 1
        case ast.Call(func=ast.Name(id="where"), args=[condition, then, other]):
            return f"{part(then, 1)} if {part(condition, 1)} else {part(other, 1)}", 0
        case ast.Call(func=ast.Name(id="sqrt"), args=[arg]):
            return f"√{part(arg, 8)}", 7
        case ast.Call(func=ast.Name(id="abs"), args=[arg]):
            return f"|{part(arg, 0)}|", _ATOM
        case ast.Call(func=ast.Name(id=name), args=args):
            name = {"sigmoid": "σ", "trigamma": "ψ₁", "digamma": "ψ"}.get(name, name)
            return f"{name}({', '.join(part(a, 0) for a in args)})", _ATOM
    raise ValueError(f"a formula cannot contain {ast.unparse(tree)!r}")
