"""An indexing expression as typed, taken apart: the tensor, what stands in the brackets, and what
is written there if it is an assignment or a method such as `scatter_`.

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
from ...errors import LabError

MAX_COMPUTED = 1 << 24
"""An index is computed from tensors of up to so many elements at every look."""

_EXAMPLES = (
    "Try x[0, :, ::2], x[..., None], x[[0, 2]], x[x > 0] or x.gather(1, i); to write, x[i] = 0,"
    " x[x > 0] += 1 or x.scatter_(1, i, src)."
)
_CALLS = ("gather", "take_along_dim", "index_select", "masked_select", "select", "narrow")
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
_ADDS = frozenset({"scatter_add", "index_add"})
_MAKERS = {
    f"torch.{function.__name__}": function
    for function in (torch.tensor, torch.arange, torch.zeros, torch.ones)
}
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
    `call` is a method of torch.Tensor with `arguments`. `texts` are the parts as typed; `write` is
    what is written, and then these say where."""

    base: str
    texts: tuple[str, ...]
    items: tuple[Any, ...] = ()
    call: str = ""
    arguments: tuple[Any, ...] = ()
    write: Write | None = None


@dataclass(frozen=True)
class Write:
    """`text` is the value as typed. `operator` is that of an assignment (`=`, `+=`), empty for a
    method; `adds`: what is written to one place twice is added up, not replaced."""

    text: str
    value: Any
    operator: str = ""
    in_place: bool = True
    adds: bool = False


def parse(namespace: Namespace, source: str) -> Indexing:
    """Raises LabError on anything but one indexing expression, or a line that writes by one."""
    try:
        lines = ast.parse(source.strip()).body
    except (SyntaxError, ValueError):
        raise LabError(f"`{source}` is not an expression.", hint=_EXAMPLES) from None
    if not lines:
        raise LabError("Nothing is typed: this is not an expression.", hint=_EXAMPLES)
    line = lines[0] if len(lines) == 1 else None
    if isinstance(line, ast.Assign) and len(line.targets) == 1:
        return _assignment(namespace, line.targets[0], "=", line.value)
    if isinstance(line, ast.AugAssign) and type(line.op) in _OPERATORS:
        sign = _sign(line.op)
        return _assignment(namespace, line.target, sign, line.value)
    node = line.value if isinstance(line, ast.Expr) else None
    if isinstance(node, ast.Subscript):
        return _subscript(namespace, node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _call(namespace, node, node.func)
    raise LabError(f"`{source}` picks nothing.", hint=_EXAMPLES)


def _subscript(namespace: Namespace, node: ast.Subscript) -> Indexing:
    nodes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    items = tuple(_item(namespace, part) for part in nodes)
    return Indexing(ast.unparse(node.value), tuple(ast.unparse(n) for n in nodes), items)


def _assignment(namespace: Namespace, target: ast.expr, sign: str, value: ast.expr) -> Indexing:
    if not isinstance(target, ast.Subscript):
        raise LabError(
            f"`{ast.unparse(target)}` is given another value, and no element is written.",
            hint="Write x[...] = 0 to write to the elements of x.",
        )
    write = Write(ast.unparse(value), _value(namespace, value), operator=sign)
    return replace(_subscript(namespace, target), write=write)


def _sign(op: ast.operator) -> str:
    """`+=` for ast.Add."""
    left, right = ast.Name("a"), ast.Name("b")
    return f"{ast.unparse(ast.BinOp(left, op, right))[2:-2]}="


def _call(namespace: Namespace, node: ast.Call, function: ast.Attribute) -> Indexing:
    name, arguments = function.attr, list(node.args)
    base = function.value
    if isinstance(base, ast.Name) and base.id == "torch" and arguments:
        base = arguments.pop(0)
    if name.removesuffix("_") in _WRITES:
        return _write_call(namespace, node, ast.unparse(base), name, arguments)
    if name not in _CALLS:
        raise LabError(
            f"`{name}` is not a way of picking that can be shown here.",
            hint=f"{', '.join((*_CALLS, *_WRITES))}, or brackets. {_EXAMPLES}",
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


def _write_call(
    namespace: Namespace, node: ast.Call, base: str, name: str, arguments: list[ast.expr]
) -> Indexing:
    call = name.removesuffix("_")
    names = _WRITES[call]
    given = dict(zip(names, arguments, strict=False))
    given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    if call == "scatter" and "value" in given:
        given["src"] = given.pop("value")
    accumulates = call == "index_put" and ast.unparse(given.pop("accumulate", ast.Constant(False)))
    if set(given) != set(names) or len(arguments) > len(names):
        raise LabError(f"{name} takes {', '.join(names)} here.", hint=_EXAMPLES)
    *where, what = (_value(namespace, given[n]) for n in names)
    if call == "index_put":
        where = [tuple(_item_of(item, ast.unparse(given["indices"])) for item in where[0])]
    return Indexing(
        base=base,
        texts=tuple(f"{n}={ast.unparse(given[n])}" for n in names[:-1]),
        call=name,
        arguments=tuple(where),
        write=Write(
            text=ast.unparse(given[names[-1]]),
            value=what,
            in_place=name.endswith("_"),
            adds=call in _ADDS or accumulates == "True",
        ),
    )


def _item(namespace: Namespace, node: ast.expr) -> Item:
    """One part of the brackets, as an int, slice, None, Ellipsis, or an index or mask tensor."""
    if isinstance(node, ast.Slice):
        ends = (node.lower, node.upper, node.step)
        return slice(*(None if end is None else _whole(namespace, end) for end in ends))
    return _item_of(_value(namespace, node), ast.unparse(node))


def _item_of(value: Any, text: str) -> Item:
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(value)
    if isinstance(value, range):
        value = list(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _flat_index(value, text)
    if isinstance(value, torch.Tensor):
        return _index_tensor(value, text)
    if isinstance(value, bool) or not (isinstance(value, int) or value in (None, Ellipsis)):
        raise LabError(f"`{text}` cannot stand in an index.", hint=_EXAMPLES)
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
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "float" and not node.keywords:
        return _made(node, [_value(namespace, argument) for argument in node.args])
    if isinstance(node, ast.Call) and ast.unparse(node.func) in _MAKERS:
        if node.keywords:
            raise LabError(f"`{ast.unparse(node)}`: keywords cannot be read here.", hint=_EXAMPLES)
        arguments = [_value(namespace, argument) for argument in node.args]
        return _made(node, arguments)
    return namespace.resolve(ast.unparse(node))


def _made(node: ast.Call, arguments: list[Any]) -> torch.Tensor | float:
    function = _MAKERS.get(ast.unparse(node.func), float)
    sizes = [abs(a) for a in arguments if isinstance(a, int | float)]
    if function is not float and math.prod(max(size, 1) for size in sizes) > MAX_COMPUTED:
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
