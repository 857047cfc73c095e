"""What running a node changes beside the gradients it passes on, so that it can be put back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import BackwardHook

from ..graph.hooks import registered

MAX_HELD = 20_000
"""Values that are looked at in search of what a Python Function holds."""


@dataclass
class Beside:
    """A custom node's side effects as far as torch makes them: what a backward inside of it (that
    of a reentrant checkpoint) adds to `.grad`, and what torch's own hook of a module remembers
    between the module's output and its input."""

    grads: list[tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None, int]]
    hooks: list[tuple[BackwardHook, Any]]

    @classmethod
    def before(cls, fn: Any) -> Beside:
        """How things are before the custom node `fn` runs."""
        grads = []
        for leaf in leaves_held(fn):
            grad = leaf.grad
            copy = None if grad is None else grad.detach().clone()
            grads.append((leaf, grad, copy, -1 if grad is None else grad._version))
        return cls(grads, [(hook, hook.grad_outputs) for hook in _module_hooks(fn)])

    def changed(self) -> list[tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]]:
        """The leaves whose `.grad` has changed: (leaf, `.grad` before, a copy of that). The copies
        of others are let go."""
        kept, self.grads = self.grads, []
        return [
            (leaf, grad, copy)
            for leaf, grad, copy, version in kept
            if leaf.grad is not grad or (grad is not None and grad._version != version)
        ]

    def put_back_hooks(self) -> None:
        for hook, grad_outputs in self.hooks:
            hook.grad_outputs = grad_outputs


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


def _module_hooks(fn: Any) -> list[BackwardHook]:
    """Those of torch's hooks on a node that carry a module's full backward hooks."""
    hooks = [hook for hook in registered(fn.register_hook) if isinstance(hook, FunctionType)]
    return [value for h in hooks for value in _closed_over(h) if isinstance(value, BackwardHook)]


_PLAIN = (type(None), bool, int, float, complex, str, bytes, type, type(torch))
