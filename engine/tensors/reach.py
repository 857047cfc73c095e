"""Every tensor and array that can be reached from the console's variables, by its expression.

The walk runs no code of the user's: no property, no `__getitem__`, no iterator.
"""

from __future__ import annotations

import itertools
import keyword
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

MAX_LOOKED_AT = 20_000
"""Objects of any kind that one walk looks at."""
MAX_ITEMS = 1_000
"""Items of one list, tuple, dict or module that are looked at."""
MAX_EXPRESSION = 200
"""Longest expression, in characters."""

Held = Tensor | np.ndarray
_NUMBERED = (nn.Sequential, nn.ModuleList, nn.ParameterList)
_KEYED = (nn.ModuleDict, nn.ParameterDict)


@dataclass(frozen=True)
class Reached:
    """`held` maps expressions to tensors and arrays: first variables in the order of their making,
    then their contents, level by level. `cut` says what was not looked at."""

    held: dict[str, Held]
    cut: str = ""

    def tensors(self) -> dict[str, Tensor]:
        return {name: value for name, value in self.held.items() if isinstance(value, Tensor)}


def reach(variables: Mapping[str, object]) -> Reached:
    """The tensors and arrays in variables, in the parameters, buffers and attributes of modules, in
    lists, tuples and dicts, and in the `.grad` of tensors.

    An object in two places has two expressions; its contents are listed once, by the shortest
    expression. Private variables are left out. At most MAX_LOOKED_AT objects are looked at.
    """
    held: dict[str, Held] = {}
    opened: set[int] = set()
    cut = ""
    waiting: deque[tuple[str, object]] = deque(
        (name, value)
        for name, value in list(variables.items())
        if isinstance(name, str) and not name.startswith("_")
    )
    looked_at = 0
    with torch.no_grad(), torch.DisableTorchFunction():
        while waiting:
            if looked_at == MAX_LOOKED_AT:
                cut = f"Only the first {MAX_LOOKED_AT:,} objects were looked through."
                break
            looked_at += 1
            expression, value = waiting.popleft()
            if len(expression) > MAX_EXPRESSION:
                continue
            kind = type(value)
            if issubclass(kind, Tensor | np.ndarray):
                held[expression] = value  # pyright: ignore[reportArgumentType]
            if id(value) in opened:
                continue
            inside = list(itertools.islice(_inside(expression, value, kind), MAX_ITEMS + 1))
            if len(inside) > MAX_ITEMS:
                cut = f"Of `{expression}` only the first {MAX_ITEMS:,} items were looked through."
            opened.add(id(value))
            waiting.extend(inside[:MAX_ITEMS])
    return Reached(held, cut)


def _inside(expression: str, value: object, kind: type) -> Iterator[tuple[str, object]]:
    """The objects in an object, each with its expression."""
    if issubclass(kind, Tensor):
        yield from _grad(expression, value)  # pyright: ignore[reportArgumentType]
    elif issubclass(kind, nn.Module):
        yield from _members(expression, value)  # pyright: ignore[reportArgumentType]
    elif issubclass(kind, dict):
        for key, item in dict.items(value):  # pyright: ignore[reportArgumentType]
            if type(key) in (str, int, bool, bytes) and len(text := repr(key)) < MAX_EXPRESSION:
                yield f"{expression}[{text}]", item
    elif issubclass(kind, list | tuple):
        items = list.__iter__ if issubclass(kind, list) else tuple.__iter__
        for number, item in enumerate(items(value)):  # pyright: ignore[reportArgumentType]
            yield f"{expression}[{number}]", item


def _grad(expression: str, t: Tensor) -> Iterator[tuple[str, object]]:
    try:
        grad = t.grad if t.is_leaf or t.retains_grad else None  # torch warns about others
    except Exception:  # tensors of kinds without gradients raise errors of several types
        return
    if grad is not None:
        yield f"{expression}.grad", grad


def _members(expression: str, module: nn.Module) -> Iterator[tuple[str, object]]:
    """Parameters, buffers and submodules, then all other public attributes."""
    own = vars(module)
    for registry in ("_parameters", "_buffers", "_modules"):
        for name, member in list(own.get(registry, {}).items()):
            if member is not None:
                yield _written(expression, type(module), registry, name), member
    for name, value in list(own.items()):
        if not name.startswith("_") and name.isidentifier():
            yield f"{expression}.{name}", value


def _written(expression: str, kind: type, registry: str, name: str) -> str:
    """The expression of a part of a module: `model.linear1`, `model[0]` in a Sequential,
    `model['a b']` in a ModuleDict."""
    if name.isidentifier() and not keyword.iskeyword(name):
        return f"{expression}.{name}"
    if issubclass(kind, _NUMBERED) and name.isdecimal():
        return f"{expression}[{name}]"
    if issubclass(kind, _KEYED):
        return f"{expression}[{name!r}]"
    return f"{expression}.{registry}[{name!r}]"
