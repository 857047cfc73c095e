"""A typed indexing expression, parsed: the tensor, the index, and the value that an assignment or a
method such as `scatter_` writes.

Beyond the names that `Namespace.resolve` takes, an index may compute: comparisons and arithmetic
of named tensors (`x > 0`), lists, and the factories tensor, arange, zeros and ones of torch.
Nothing else is run.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Any

import numpy as np
import torch

from ...console.namespace import Namespace
from ...system.errors import LabError
from ...tensors.error_help import explain_error

MAX_COMPUTED = 1 << 24
"""An index is computed each time from tensors of up to this many elements."""

_EXAMPLES = (
    "Try x[0, :, ::2], x[..., None], x[[0, 2]], x[x > 0] or x.gather(1, i); to write, x[i] = 0,"
    " x[x > 0] += 1 or x.scatter_(1, i, src)."
)
_CALLS = {
    "gather": ("dim", "index"),
    "take_along_dim": ("indices", "dim"),
    "index_select": ("dim", "index"),
    "masked_select": ("mask",),
    "select": ("dim", "index"),
    "narrow": ("dim", "start", "length"),
}
"""Methods that pick, and their arguments."""
_WRITES = {
    "scatter": ("dim", "index", "src"),
    "scatter_add": ("dim", "index", "src"),
    "index_add": ("dim", "index", "source"),
    "index_copy": ("dim", "index", "source"),
    "index_fill": ("dim", "index", "value"),
    "index_put": ("indices", "values"),
    "masked_fill": ("mask", "value"),
}
"""Methods that write, and their arguments; the last is what is written."""
_MAKERS = {
    "float": float, "torch.tensor": torch.tensor, "torch.arange": torch.arange,
    "torch.zeros": torch.zeros, "torch.ones": torch.ones,
}  # fmt: skip
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
    """`base` is the expression of the indexed tensor. In `base[...]`, `items` are the parts of the
    index; otherwise `call` is a method of torch.Tensor with `arguments`. `texts` are the parts as
    typed. `write` is the value that is written there, if any."""

    base: str
    texts: tuple[str, ...]
    items: tuple[Any, ...] = ()
    call: str = ""
    arguments: tuple[Any, ...] = ()
    write: Write | None = None


@dataclass(frozen=True)
class Write:
    """`text` is the value as typed. `operator` is that of the assignment (`=`, `+=`), "" for a
    method. With `adds`, several values for one place are added up."""

    text: str
    value: Any
    operator: str = ""
    in_place: bool = True
    adds: bool = False


def parse(namespace: Namespace, source: str) -> Indexing:
    """The indexing of a line. Raises LabError if it is not one indexing expression or a write to
    one."""
    try:
        lines = ast.parse(source.strip()).body
    except (SyntaxError, ValueError):
        raise LabError(f"`{source}` is not an expression.", hint=_EXAMPLES) from None
    if not lines:
        raise LabError("Nothing is typed: this is not an expression.", hint=_EXAMPLES)
    match lines:
        case [ast.Assign(targets=[target], value=value)]:
            return _assignment(namespace, target, "=", value)
        case [ast.AugAssign(target=target, op=op, value=value) as line] if type(op) in _OPERATORS:
            sign = ast.unparse(line).removeprefix(ast.unparse(target)).split()[0]
            return _assignment(namespace, target, sign, value)
        case [ast.Expr(value=ast.Subscript() as node)]:
            return _subscript(namespace, node)
        case [ast.Expr(value=ast.Call(func=ast.Attribute() as function) as node)]:
            return _call(namespace, node, function)
    raise LabError(f"`{source}` is not an index of a tensor.", hint=_EXAMPLES)


def _subscript(namespace: Namespace, node: ast.Subscript) -> Indexing:
    nodes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    items = tuple(_item(namespace, part) for part in nodes)
    if sum(item is Ellipsis for item in items) > 1:
        raise LabError("Only one ... can stand for the dimensions left out.", hint=_EXAMPLES)
    return Indexing(ast.unparse(node.value), tuple(map(ast.unparse, nodes)), items)


def _assignment(namespace: Namespace, target: ast.expr, sign: str, value: ast.expr) -> Indexing:
    if not isinstance(target, ast.Subscript):
        raise LabError(
            f"`{ast.unparse(target)} {sign} …` writes to no element.",
            hint="Write x[...] = 0 to write to the elements of x.",
        )
    write = Write(ast.unparse(value), _value(namespace, value), operator=sign)
    return replace(_subscript(namespace, target), write=write)


def _call(namespace: Namespace, node: ast.Call, function: ast.Attribute) -> Indexing:
    name, base, arguments = function.attr, function.value, list(node.args)
    method = name.removesuffix("_")
    if isinstance(base, ast.Name) and base.id == "torch" and arguments:
        base = arguments.pop(0)
    writes = method in _WRITES
    names = _WRITES[method] if writes else _CALLS.get(name)
    if names is None:
        raise LabError(
            f"`{name}` is not an index that can be shown here.",
            hint=f"{', '.join((*_CALLS, *_WRITES))}, or brackets. {_EXAMPLES}",
        )
    given = dict(zip(names, arguments, strict=False))
    given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    if method == "scatter" and "value" in given:
        given["src"] = given.pop("value")
    adds = method in ("scatter_add", "index_add")
    if method == "index_put" and "accumulate" in given:
        adds = ast.unparse(given.pop("accumulate")) == "True"
    if set(given) != set(names) or len(arguments) > len(names):
        here = " here" if writes else ""
        raise LabError(f"{name} takes {', '.join(names)}{here}.", hint=_EXAMPLES)
    texts = [ast.unparse(given[n]) for n in names]
    values = [_value(namespace, given[n]) for n in names]
    write = None
    if writes:
        write = Write(texts.pop(), values.pop(), in_place=name.endswith("_"), adds=adds)
    if method == "index_put":
        values = [tuple(_item_of(item, texts[0]) for item in values[0])]
    return Indexing(
        base=ast.unparse(base),
        texts=tuple(f"{n}={text}" for n, text in zip(names, texts, strict=False)),
        call=name,
        arguments=tuple(values),
        write=write,
    )


def _item(namespace: Namespace, node: ast.expr) -> Item:
    """One part of an index: an int, slice, None, Ellipsis, or an index tensor or mask."""
    if isinstance(node, ast.Slice):
        ends = (node.lower, node.upper, node.step)
        return slice(*(None if end is None else _whole(namespace, end) for end in ends))
    return _item_of(_value(namespace, node), ast.unparse(node))


def _item_of(value: Any, text: str) -> Item:
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(value)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        if not all(isinstance(item, int) for item in value):
            raise LabError(
                f"`{text}` is not a flat list of whole numbers.",
                hint="Write torch.tensor([[...], [...]]) for an index with more dimensions.",
            )
        value = torch.tensor(list(value)) if value else torch.tensor([], dtype=torch.int64)
    if not isinstance(value, torch.Tensor):
        if isinstance(value, bool) or not (isinstance(value, int) or value in (None, Ellipsis)):
            raise LabError(f"`{text}` cannot be used in an index.", hint=_EXAMPLES)
        return value
    if value.dtype not in (torch.bool, torch.int64, torch.int32):
        raise LabError(
            f"`{text}` holds {value.dtype}: an index is int64 or int32, a mask is bool.",
            hint=f"Write {text}.long(), or {text} != 0 for a mask.",
        )
    if value.ndim:
        return value.detach()
    if value.dtype == torch.bool:
        raise LabError(f"`{text}` is a single bool.", hint="A mask has the tensor's shape.")
    return int(value)


def _whole(namespace: Namespace, node: ast.expr) -> int:
    value = _value(namespace, node)
    if isinstance(value, torch.Tensor) and value.numel() == 1 and not value.is_floating_point():
        return int(value)
    if not isinstance(value, int):
        raise LabError(f"`{ast.unparse(node)}` is not a whole number.", hint=_EXAMPLES)
    return value


def _value(namespace: Namespace, node: ast.expr) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.List() | ast.Tuple():
            items = [_value(namespace, item) for item in node.elts]
            return items if isinstance(node, ast.List) else tuple(items)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _computed(node, op, _value(namespace, operand))
        case (
            ast.BinOp(left=left, op=op, right=right)
            | ast.Compare(left=left, ops=[op], comparators=[right])
        ) if type(op) in _OPERATORS:
            return _computed(node, op, _value(namespace, left), _value(namespace, right))
        case ast.Call() if ast.unparse(node.func) in _MAKERS:
            return _called(namespace, node)
    return namespace.resolve(ast.unparse(node))


def _called(namespace: Namespace, node: ast.Call) -> torch.Tensor | float:
    text, make = ast.unparse(node), _MAKERS[ast.unparse(node.func)]
    if node.keywords:
        raise LabError(f"`{text}`: keyword arguments cannot be used here.", hint=_EXAMPLES)
    arguments = [_value(namespace, argument) for argument in node.args]
    sizes = [max(abs(a), 1) for a in arguments if isinstance(a, int | float)]
    if make is not float and math.prod(sizes) > MAX_COMPUTED:
        raise LabError(f"`{text}` is too large to be made here.")
    try:
        return make(*arguments)
    except (RuntimeError, TypeError, ValueError) as error:
        raise LabError(f"`{text}`: {error}") from error


def _computed(node: ast.expr, op: ast.AST, *values: Any) -> Any:
    text = ast.unparse(node)
    if not all(isinstance(value, bool | int | float | torch.Tensor) for value in values):
        raise LabError(f"`{text}` is not a computation of numbers and tensors.", hint=_EXAMPLES)
    if any(isinstance(v, torch.Tensor) and v.numel() > MAX_COMPUTED for v in values):
        raise LabError(
            f"`{text}` is too large to be computed here.",
            hint="Run it once in the console (mask = ...), and index with that name.",
        )
    try:
        return _OPERATORS[type(op)](*values)
    except (RuntimeError, TypeError, ArithmeticError) as error:
        raise LabError(f"`{text}`: {error}", hint=explain_error(error)) from error
