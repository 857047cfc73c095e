"""An indexing expression as typed, taken apart: the tensor, and what stands in the brackets.

Beyond the names that `Namespace.resolve` takes, an index may compute: comparisons and arithmetic
of named tensors (`x > 0`), lists, `torch.tensor([...])` and `torch.arange(...)`. Nothing else is
run.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

import numpy as np
import torch

from ..errors import LabError
from .namespace import Namespace

MAX_COMPUTED = 1 << 24
"""An index is computed from tensors of up to so many elements at every look."""

_EXAMPLES = "Try x[0, :, ::2], x[..., None], x[[0, 2]], x[x > 0] or x.gather(1, i)."
_CALLS = ("gather", "take_along_dim", "index_select", "masked_select", "select", "narrow")
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt,
    ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip

Item = int | slice | torch.Tensor | EllipsisType | None


@dataclass(frozen=True)
class Indexing:
    """`base` is the expression indexed. Either `call` is empty and `items` stand in brackets, or
    `call` is a method of torch.Tensor with `arguments`. `texts` are the parts as typed."""

    base: str
    texts: tuple[str, ...]
    items: tuple[Any, ...] = ()
    call: str = ""
    arguments: tuple[Any, ...] = ()


def parse(namespace: Namespace, source: str) -> Indexing:
    """Raises LabError on anything but one indexing expression."""
    try:
        node = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise LabError(f"`{source}` is not an expression.", hint=_EXAMPLES) from None
    if isinstance(node, ast.Subscript):
        nodes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        items = tuple(_item(namespace, part) for part in nodes)
        return Indexing(ast.unparse(node.value), tuple(ast.unparse(n) for n in nodes), items)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _call(namespace, node, node.func)
    raise LabError(f"`{source}` picks nothing.", hint=_EXAMPLES)


def _call(namespace: Namespace, node: ast.Call, function: ast.Attribute) -> Indexing:
    name, arguments = function.attr, list(node.args)
    base = function.value
    if isinstance(base, ast.Name) and base.id == "torch" and arguments:
        base = arguments.pop(0)
    if name not in _CALLS:
        raise LabError(
            f"`{name}` is not a way of picking that can be shown here.",
            hint=f"{', '.join(_CALLS)}, or brackets. {_EXAMPLES}",
        )
    order = {"take_along_dim": ("indices", "dim"), "narrow": ("dim", "start", "length")}
    order |= {"masked_select": ("mask",)}
    names = order.get(name, ("dim", "index"))
    given = dict(zip(names, arguments, strict=False))
    given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    if set(given) != set(names) or len(arguments) > len(names):
        raise LabError(f"{name} takes {', '.join(names)}.", hint=_EXAMPLES)
    return Indexing(
        base=ast.unparse(base),
        texts=tuple(f"{n}={ast.unparse(given[n])}" for n in names),
        call=name,
        arguments=tuple(_value(namespace, given[n]) for n in names),
    )


def _item(namespace: Namespace, node: ast.expr) -> Item:
    """One part of the brackets, as an int, slice, None, Ellipsis, or an index or mask tensor."""
    if isinstance(node, ast.Slice):
        ends = (node.lower, node.upper, node.step)
        return slice(*(None if end is None else _whole(namespace, end) for end in ends))
    value = _value(namespace, node)
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(value)
    if isinstance(value, range):
        value = list(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _flat_index(value, ast.unparse(node))
    if isinstance(value, torch.Tensor):
        return _index_tensor(value, ast.unparse(node))
    if isinstance(value, bool) or not (isinstance(value, int) or value in (None, Ellipsis)):
        raise LabError(f"`{ast.unparse(node)}` cannot stand in an index.", hint=_EXAMPLES)
    return value


def _flat_index(value: Sequence[Any], text: str) -> torch.Tensor:
    if not all(isinstance(item, int) for item in value):
        raise LabError(
            f"`{text}` is no flat list of whole numbers.",
            hint="Write torch.tensor([[...], [...]]) for an index of more dimensions.",
        )
    is_mask = bool(value) and all(isinstance(item, bool) for item in value)
    return torch.tensor(list(value), dtype=torch.bool if is_mask else torch.int64)


def _index_tensor(value: torch.Tensor, text: str) -> Item:
    value = value.detach()
    if value.dtype not in (torch.bool, torch.int64, torch.int32):
        raise LabError(
            f"`{text}` holds {value.dtype}: an index is int64 or int32, a mask is bool.",
            hint=f"Write {text}.long(), or {text} != 0 for a mask.",
        )
    if value.ndim == 0:
        if value.dtype == torch.bool:
            raise LabError(f"`{text}` is a single bool.", hint="A mask has the tensor's shape.")
        return int(value)
    return value


def _whole(namespace: Namespace, node: ast.expr) -> int:
    value = _value(namespace, node)
    if isinstance(value, torch.Tensor) and value.numel() == 1 and not value.is_floating_point():
        return int(value)
    if not isinstance(value, int):
        raise LabError(f"`{ast.unparse(node)}` is no whole number.", hint=_EXAMPLES)
    return value


def _value(namespace: Namespace, node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(namespace, item) for item in node.elts]
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _apply(node, node.op, _value(namespace, node.operand))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _value(namespace, node.left), _value(namespace, node.right)
        return _apply(node, node.op, left, right)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS:
        left, right = _value(namespace, node.left), _value(namespace, node.comparators[0])
        return _apply(node, node.ops[0], left, right)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("torch.tensor", "torch.arange"):
        if node.keywords:
            raise LabError(f"`{ast.unparse(node)}`: keywords cannot be read here.", hint=_EXAMPLES)
        arguments = [_value(namespace, argument) for argument in node.args]
        return _made(node, arguments)
    return namespace.resolve(ast.unparse(node))


def _made(node: ast.Call, arguments: list[Any]) -> torch.Tensor:
    function = torch.tensor if ast.unparse(node.func) == "torch.tensor" else torch.arange
    if any(isinstance(a, int | float) and abs(a) > MAX_COMPUTED for a in arguments):
        raise LabError(f"`{ast.unparse(node)}` is too large to be made at every look.")
    try:
        return function(*arguments)
    except (RuntimeError, TypeError, ValueError) as error:
        raise LabError(f"`{ast.unparse(node)}`: {error}") from error


def _apply(node: ast.expr, op: ast.AST, *values: Any) -> Any:
    text = ast.unparse(node)
    plain = (bool, int, float, torch.Tensor)
    if not all(isinstance(value, plain) for value in values):
        raise LabError(f"`{text}` is no computation of numbers and tensors.", hint=_EXAMPLES)
    if any(isinstance(v, torch.Tensor) and v.numel() > MAX_COMPUTED for v in values):
        raise LabError(
            f"`{text}` is too large to be computed at every look.",
            hint="Run it once in the console (mask = ...), and index with that name.",
        )
    try:
        return _OPERATORS[type(op)](*values)
    except (RuntimeError, TypeError, ArithmeticError) as error:
        raise LabError(f"`{text}`: {error}", hint="Both sides must broadcast.") from error
