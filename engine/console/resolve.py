"""The object that a short expression names, found without calling anything.

An expression is a name, with attributes and constant subscripts: `x`, `model.linear1.weight`,
`x.grad`, `xs[0]`, `x[1:, None, ..., -1]`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

import torch

from ..system.errors import LabError

_EXAMPLES = "Write a variable's name, an attribute or a constant index: x, layer.weight, xs[0]."


class UnknownName(LabError):
    """No variable has the name `name`."""

    def __init__(self, name: str, place: str = "", hint: str = "") -> None:
        super().__init__(
            f"There is no variable named `{name}`{place}.",
            hint=hint or "Make it in the console or with the form Create, or check the spelling.",
        )
        self.name = name


def resolve(expression: str, variables: Mapping[str, object]) -> object:
    """The object that `expression` names. Views of tensors are made outside autograd's graph.

    Raises LabError for any other kind of expression, and for a name, attribute or index that does
    not exist.
    """
    text = expression.strip()
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        raise LabError(f"`{text}` is not the name of a value.", hint=_EXAMPLES) from None
    with torch.no_grad():
        return _value(tree, text, variables)


def resolve_all(expression: str, variables: Mapping[str, object]) -> object:
    """As `resolve`, also for a tuple or a list of such names: `(x, y)`."""
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return resolve(expression, variables)  # it says so
    if not isinstance(tree, ast.Tuple | ast.List):
        return resolve(expression, variables)
    values = [resolve_all(ast.unparse(each), variables) for each in tree.elts]
    return tuple(values) if isinstance(tree, ast.Tuple) else values


def _value(node: ast.expr, text: str, variables: Mapping[str, object]) -> object:
    if isinstance(node, ast.Name):
        if node.id not in variables:
            raise UnknownName(node.id)
        return variables[node.id]
    if isinstance(node, ast.Attribute):
        return _attribute(_value(node.value, text, variables), node)
    if isinstance(node, ast.Subscript):
        owner = _value(node.value, text, variables)
        return _item(owner, _constant(node.slice, text), ast.unparse(node))
    raise LabError(f"`{text}` computes something: only names can be looked at.", hint=_EXAMPLES)


def _attribute(owner: object, node: ast.Attribute) -> object:
    written = ast.unparse(node.value)
    if node.attr == "grad" and isinstance(owner, torch.Tensor):
        if not (owner.is_leaf or owner.retains_grad):  # torch warns when its .grad is read
            raise LabError(
                f"`{written}` is computed from other tensors, and its gradient is not kept.",
                hint=f"Call {written}.retain_grad() before backward().",
            )
        if owner.grad is None:
            raise LabError(
                f"`{written}` has no gradient yet: {written}.grad is None.",
                hint="Compute a scalar from it and call backward() on that.",
            )
    try:
        return getattr(owner, node.attr)
    except Exception as error:  # a user's property may raise anything
        raise LabError(f"`{ast.unparse(node)}` cannot be read: {error}") from error


def _item(owner: object, index: object, written: str) -> object:
    try:
        return owner[index]  # pyright: ignore[reportIndexIssue]
    except Exception as error:
        raise LabError(f"`{written}` cannot be read: {type(error).__name__}: {error}") from error


def _constant(node: ast.expr, text: str) -> object:
    """The value of an index: numbers, strings, None, Ellipsis, slices of them, and tuples of
    these."""
    if isinstance(node, ast.Tuple):
        return tuple(_constant(item, text) for item in node.elts)
    if isinstance(node, ast.Slice):
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if part is None else _constant(part, text) for part in parts))
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        raise LabError(
            f"`{ast.unparse(node)}` in `{text}` is not a constant index.", hint=_EXAMPLES
        ) from None
