"""What a custom node may change beside the gradients that it passes on, so that it can be undone:
the `.grad` of leaves that a backward inside of it reaches (that of a reentrant checkpoint), and
what torch's own hooks of modules remember."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import BackwardHook

from ..graph.hooks import registered

MAX_HELD = 20_000
"""Values that are looked at in search of what a Python Function holds."""


def leaves_held(fn: Any) -> list[torch.Tensor]:
    """The leaves that require grad and that a Python Function holds in its `ctx`: in modules and
    functions (their closures, and the globals that they name), as a checkpoint does."""
    found: list[torch.Tensor] = []
    seen: set[int] = set()
    waiting = list(vars(fn).values())
    for value in waiting:  # grows
        if len(seen) == MAX_HELD:
            break
        if id(value) in seen or isinstance(value, _PLAIN):
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            if value.is_leaf and value.requires_grad:
                found.append(value)
        else:
            waiting += _held_by(value)
    return found


def _held_by(value: Any) -> Iterable[Any]:
    match value:
        case nn.Module():
            return value.parameters()
        case dict():
            return value.values()
        case list() | tuple() | set():
            return value
        case partial():
            return value.func, value.args, value.keywords
        case MethodType():
            return value.__self__, value.__func__
        case FunctionType():
            return _used_by(value)
    return vars(value).values() if hasattr(value, "__dict__") else ()


def _used_by(function: FunctionType) -> Iterator[Any]:
    yield function.__defaults__
    yield function.__kwdefaults__
    yield from _closed_over(function)
    codes = [function.__code__]
    for code in codes:  # grows: functions inside
        codes += [const for const in code.co_consts if isinstance(const, CodeType)]
        yield from (function.__globals__.get(name) for name in code.co_names)


def _closed_over(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue


def module_hooks(fn: Any) -> list[BackwardHook]:
    """torch's own hooks on a node that carry a module's full backward hooks: they remember
    what came out of the module until its input is reached."""
    hooks = [hook for hook in registered(fn.register_hook) if isinstance(hook, FunctionType)]
    return [value for h in hooks for value in _closed_over(h) if isinstance(value, BackwardHook)]


_PLAIN = (type(None), bool, int, float, complex, str, bytes, type, type(torch))
