"""The operators that torch runs in a backward rule, and the lines of a Python backward()."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from ...system.private_torch import TorchDispatchMode, disable_current_modes, tree_leaves
from ..graph.engine_run import Gradients, run_node
from ..graph.reading import Node

MAX_OPS = 200
MAX_LINES = 400
MAX_TEXT_ELEMENTS = 6


@dataclass(frozen=True)
class OpValue:
    """An argument or a result of an operator. The `name` of a tensor says where it comes from: `g`,
    `saved mat2`, `%3` for the result of operator 3. For any other value it is the repr."""

    name: str
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    text: str = ""


@dataclass(frozen=True)
class RuleOp:
    """One operator that ran, such as `aten::mm`. Numbers count from 1."""

    number: int
    name: str
    arguments: tuple[OpValue, ...]
    results: tuple[OpValue, ...]


@dataclass(frozen=True)
class RuleLine:
    """One line of a Python backward() that ran; `ops` are the numbers of the operators it ran."""

    file: str
    line: int
    text: str
    ops: tuple[int, ...] = ()


@dataclass
class RuleOps:
    """The operators and lines that ran in a rule, in order. `more` operators, those beyond MAX_OPS,
    are not listed."""

    ops: list[RuleOp] = field(default_factory=list)
    lines: list[RuleLine] = field(default_factory=list)
    more: int = 0


def ops_inside(node: Node, incoming: Gradients) -> RuleOps:
    """Run the node once more in torch's engine, on copies of `incoming`, and list its operators.
    Hooks on the node run too; no `.grad` changes. Raises ValueError for a leaf, and whatever the
    rule raises, such as torch's error for a freed graph."""
    if node.is_leaf:
        raise ValueError("a leaf has nothing inside: the gradient is added to its .grad")
    copies = tuple(None if g is None else g.detach().clone() for g in incoming)
    watch = _Watch(node, copies)
    with _lines_of(node, watch), watch:
        run_node(node.fn, copies, edit=lambda _: copies)
    return watch.found


class _Watch(TorchDispatchMode):
    """Lists the operators that run."""

    def __init__(self, node: Node, incoming: Gradients) -> None:
        super().__init__()
        self.found = RuleOps()
        self._alive: list[Tensor] = []  # a freed address would be used again
        self._names: dict[Any, str] = {}
        for saved in node.saved:
            if saved.data is not None and not saved.note:
                self._names[_place(saved.data)] = f"saved {saved.name}"
        for number, gradient in enumerate(incoming):
            if gradient is not None:
                self._names[_place(gradient)] = "g" if len(incoming) == 1 else f"g{number}"

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        number = len(self.found.ops) + 1
        listed = number <= MAX_OPS
        arguments = tuple(self._values([*args, *kwargs.values()])) if listed else ()
        result = func(*args, **kwargs)
        if not listed:
            self.found.more += 1
            return result
        results = [t for t in tree_leaves(result) if isinstance(t, Tensor)]
        for i, t in enumerate(results):
            self._alive.append(t)
            name = f"%{number}" if len(results) == 1 else f"%{number}.{i}"
            place = _place(t)
            if place not in self._names or func._schema.name != "aten::detach":
                self._names[place] = name
        name = str(func.name())
        self.found.ops.append(RuleOp(number, name, arguments, tuple(self._values(results))))
        return result

    def _values(self, values: Any) -> Iterator[OpValue]:
        for value in values:
            if isinstance(value, Tensor):
                yield OpValue(
                    self._names.get(_place(value), "a tensor"),
                    tuple(value.shape),
                    str(value.dtype).removeprefix("torch."),
                    _text(value),
                )
            elif isinstance(value, list | tuple) and any(isinstance(v, Tensor) for v in value):
                yield from self._values(value)
            else:
                yield OpValue(repr(value)[:60])


def _text(t: Tensor) -> str:
    if t.layout != torch.strided or t.numel() > MAX_TEXT_ELEMENTS:
        return ""
    with disable_current_modes():
        numbers = t.detach().reshape(-1).tolist()
    return ", ".join(f"{n:.4g}" if isinstance(n, float) else str(n) for n in numbers)


def _place(t: Tensor) -> Any:
    """A key that is equal for tensors that read the same memory in the same way."""
    if t.layout != torch.strided or t.numel() == 0:
        return id(t)
    return t.untyped_storage()._cdata, t.storage_offset(), tuple(t.shape), t.stride(), t.dtype


@contextmanager
def _lines_of(node: Node, watch: _Watch) -> Iterator[None]:
    """Lists the lines of a Python Function's file that run in its backward()."""
    backward = getattr(getattr(type(node.fn), "_forward_cls", None), "backward", None)
    code = getattr(inspect.unwrap(backward), "__code__", None) if backward is not None else None
    if not node.is_custom or code is None:
        yield
        return
    file, found = code.co_filename, watch.found
    start = 0

    def ended() -> None:
        """Give the last line the operators that ran since it began."""
        nonlocal start
        if found.lines:
            last = found.lines[-1]
            ran = tuple(range(start + 1, len(found.ops) + 1))
            found.lines[-1] = RuleLine(last.file, last.line, last.text, ran)
        start = len(found.ops)

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename != file:
            return None
        if event == "line" and len(found.lines) < MAX_LINES:
            ended()
            text = linecache.getline(file, frame.f_lineno).strip()
            found.lines.append(RuleLine(file, frame.f_lineno, text))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
        ended()
