"""The call of torch that raised an exception, found in its traceback. Nothing is run again.

While a cell runs, every torch function goes through a mode (`recording/writes.py`), whose frame has
the function and its arguments. Their expressions are read from the line that made the call.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Container, Mapping, Sequence
from types import FrameType, TracebackType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...protocol import FailedOperands
from .call import Call, CallTensor
from .marks import failed_operands

MAX_READ = 1 << 20
"""The smallest and largest element are found in index tensors of up to this many elements."""

_PLACED = (
    ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Attribute, ast.AugAssign
)  # fmt: skip


def raised_operands(
    error: BaseException, is_user_file: Callable[[str], bool], mode_codes: Container[object]
) -> FailedOperands | None:
    """The operands of the torch call that raised `error`; None if no torch call raised it.

    `mode_codes` are the codes of the modes' `__torch_function__`: they identify their frames.
    """
    caller: tuple[FrameType, int] | None = None
    found: tuple[FrameType, FrameType, int] | None = None
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code in mode_codes:
            if caller is not None:
                found = (frame, *caller)
        elif frame.f_code.co_filename != torch.overrides.__file__ and not _calls_the_mode(frame):
            caller = frame, trace.tb_lasti
            if is_user_file(frame.f_code.co_filename):
                found = None  # torch called the user's code, which raised
        trace = trace.tb_next
    if found is None:
        return None
    frame, caller_frame, instruction = found
    given = frame.f_locals
    with torch.DisableTorchFunction(), torch.no_grad():
        call = _call(given, ArgumentTexts(caller_frame, instruction, given["args"]), str(error))
        return failed_operands(call)


def _calls_the_mode(frame: FrameType) -> bool:
    """Whether it is a torch function that passes itself to the mode. Its caller made the call."""
    return "handle_torch_function" in frame.f_code.co_names and (
        frame.f_globals.get("__name__", "").startswith("torch")
    )


def _call(given: Mapping[str, Any], texts: ArgumentTexts, message: str) -> Call:
    func, args, kwargs = given["func"], given["args"], given["kwargs"] or {}
    name = getattr(func, "__name__", "")
    if name in ("__get__", "__set__"):
        name = getattr(getattr(func, "__self__", None), "__name__", name)
    return Call(
        name,
        [_argument(value, texts.of_argument(place), texts) for place, value in enumerate(args)],
        {key: _argument(value, texts.of_keyword(key), texts) for key, value in kwargs.items()},
        message,
    )


def _argument(value: Any, node: ast.expr | None, texts: ArgumentTexts) -> Any:
    """`value` with a `CallTensor` for each tensor, named by its expression in the source, and an
    int for each integer of NumPy."""
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, Tensor):
        return call_tensor(value, texts.text(node, value))
    if type(value) not in (list, tuple):
        return value
    nodes = node.elts if isinstance(node, ast.List | ast.Tuple) else []
    if len(nodes) == len(value) and not any(isinstance(n, ast.Starred) for n in nodes):
        return type(value)(_argument(item, n, texts) for item, n in zip(value, nodes, strict=True))
    whole = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""
    return type(value)(
        call_tensor(item, f"{whole}[{k}]" if whole else texts.text(None, item))
        if isinstance(item, Tensor)
        else _argument(item, None, texts)
        for k, item in enumerate(value)
    )


def call_tensor(t: Tensor, text: str) -> CallTensor:
    """The facts of `t` that a picture shows, with the extremes of an integer tensor."""
    try:
        shape = tuple(int(size) for size in t.shape)
    except Exception:  # nested tensors and lazy parameters have no shape
        shape = ()
    strided = t.layout == torch.strided and not t.is_nested
    extremes = None
    whole = not (t.is_floating_point() or t.is_complex() or t.dtype == torch.bool)
    if whole and strided and t.device.type == "cpu" and 0 < t.numel() <= MAX_READ:
        extremes = int(t.min()), int(t.max())
    return CallTensor(
        text=text,
        shape=shape,
        dtype=str(t.dtype).removeprefix("torch."),
        device=str(t.device),
        stride=tuple(t.stride()) if strided else None,
        extremes=extremes,
    )


class ArgumentTexts:
    """The expressions of a call's arguments in the line that made the call: that of `frame` at
    `instruction`. `args` are the values that torch's function got."""

    def __init__(self, frame: FrameType, instruction: int, args: Sequence[Any]) -> None:
        self._args = args
        self._locals, self._globals = frame.f_locals, frame.f_globals
        self._node, self._arguments = _call_at(frame, instruction)

    def of_argument(self, place: int) -> ast.expr | None:
        """The expression of argument number `place`."""
        nodes = self._arguments
        if isinstance(self._node, ast.Call):
            if any(isinstance(node, ast.Starred) for node in nodes):
                return None
            function = self._node.func
            if isinstance(function, ast.Attribute) and self._is_tensor(function.value):
                nodes = [function.value, *nodes]  # a method's first argument is its tensor
        return nodes[place] if place < len(nodes) else None

    def _is_tensor(self, before_dot: ast.expr) -> bool:
        """Whether a method of a tensor is called, not a function of a module or a class."""
        if isinstance(before_dot, ast.Name) and self._args:
            name, first = before_dot.id, self._args[0]
            return self._locals.get(name, self._globals.get(name)) is first
        return not isinstance(before_dot, ast.Attribute) or len(self._args) > len(self._arguments)

    def of_keyword(self, key: str) -> ast.expr | None:
        keywords = self._node.keywords if isinstance(self._node, ast.Call) else ()
        return next((keyword.value for keyword in keywords if keyword.arg == key), None)

    def text(self, node: ast.expr | None, value: object) -> str:
        """The name of `value` in the source: its expression, or else a variable's name."""
        if node is not None:
            return self._in_module(ast.unparse(node))
        for variables in (self._locals, self._globals):
            for name, other in list(variables.items()):
                if other is value and isinstance(name, str):
                    return name
        return "a tensor"

    def _in_module(self, text: str) -> str:
        """In a layer, `self.weight` becomes `Linear.weight`."""
        module = self._locals.get("self")
        if isinstance(module, nn.Module) and text.startswith("self."):
            return f"{type(module).__name__}{text[4:]}"
        return text


def _call_at(frame: FrameType, instruction: int) -> tuple[ast.AST | None, list[ast.expr]]:
    """The expression at an instruction of `frame`, and its operands in order."""
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    place = list(frame.f_code.co_positions())[instruction // 2]
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):  # the file was changed, or does not exist
        return None, []
    found: ast.AST | None = None
    for node in ast.walk(tree):
        if isinstance(node, _PLACED) and _place(node) == place:
            found = node
    match found:
        case ast.Call():
            return found, list(found.args)
        case ast.BinOp(left=left, right=right) if isinstance(left, ast.Constant):
            return found, [right, left]  # Python calls the tensor's method: 1 + x is x.__radd__(1)
        case ast.BinOp(left=left, right=right):
            return found, [left, right]
        case ast.AugAssign(target=target, value=value):
            return found, [target, value]
        case ast.Compare(left=left, comparators=others):
            return found, [left, *others]
        case ast.UnaryOp(operand=operand):
            return found, [operand]
        case ast.Subscript(value=value, slice=index, ctx=ast.Store()):
            return found, [value, index, *_assigned_to(found, tree)]
        case ast.Subscript(value=value, slice=index):
            return found, [value, index]
        case ast.Attribute(value=value):
            return found, [value]
    return None, []


def _assigned_to(target: ast.expr, tree: ast.AST) -> list[ast.expr]:
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and any(t is target for t in node.targets)
    ]


def _place(node: ast.AST) -> tuple[int | None, ...]:
    return tuple(
        getattr(node, name) for name in ("lineno", "end_lineno", "col_offset", "end_col_offset")
    )
