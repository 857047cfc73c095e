"""The state that a step changes, kept so that the step can be undone.

A custom node changes not only the gradients that it passes on. A reentrant checkpoint runs a
backward of its own, which changes the `.grad` of leaves; and torch's hooks for modules have state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import BackwardHook

from ...recording.writes import version_of
from ..graph.hooks import registered
from .stepping import Step

MAX_HELD = 20_000
"""The search for the leaves that a Python Function holds looks at this many values at most."""


def copied(grad: torch.Tensor | None) -> torch.Tensor | None:
    return None if grad is None else grad.detach().clone()


class GradBefore:
    """The `.grad` of a tensor before a step: the object, and a copy unless `is_copied` is False
    (for a `.grad` that no step writes into)."""

    def __init__(self, tensor: torch.Tensor, is_copied: bool = True) -> None:
        self.tensor = tensor
        self.grad = grad = tensor.grad
        self.copy = copied(grad) if is_copied else None
        self._version = None if grad is None else version_of(grad)

    @property
    def has_changed(self) -> bool:
        grad = self.tensor.grad
        if grad is None or grad is not self.grad:
            return grad is not self.grad
        return self.copy is not None and version_of(grad) != self._version

    @torch.no_grad()
    def put_back(self) -> None:
        grad = self.grad
        if grad is not None and self.copy is not None and not grad.requires_grad:
            if grad.layout == torch.strided:
                grad.copy_(self.copy)
            else:
                grad = self.copy
        self.tensor.grad = grad


@dataclass
class Undo:
    """The state that a step changes, as it was before: buffers by node id, `.grad`s, and the state
    of torch's hooks for modules. `watched` are `.grad`s that the step may change. `grad_after` is a
    copy of the `.grad` that the step of a leaf has left."""

    step: Step
    buffers: dict[int, list[torch.Tensor | None] | None] = field(default_factory=dict)
    grads: list[GradBefore] = field(default_factory=list)
    watched: list[GradBefore] = field(default_factory=list)
    hooks: list[tuple[BackwardHook, Any]] = field(default_factory=list)
    grad_after: torch.Tensor | None = None

    def note_changes(self) -> None:
        """Keep those of the `watched` `.grad`s that changed. To be called after the step, or when
        it has failed."""
        self.grads += [grad for grad in self.watched if grad.has_changed]
        self.watched = []

    def put_back(self) -> None:
        for hook, grad_outputs in self.hooks:
            hook.grad_outputs = grad_outputs
        for grad in self.grads:
            grad.put_back()


def leaves_held(fn: Any) -> list[torch.Tensor]:
    """The leaves requiring grad that a Python Function holds in its `ctx`, as a checkpoint does: in
    modules, and in functions (their closures, and the globals that they name)."""
    found: list[torch.Tensor] = []
    seen: set[int] = set()
    waiting = list(vars(fn).values())
    for value in waiting:  # the loop adds to the list
        if len(seen) == MAX_HELD:
            break
        if id(value) in seen or isinstance(value, _PLAIN):
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            if value.is_leaf and value.requires_grad:
                found.append(value)
        else:
            waiting += _contents(value)
    return found


def _contents(value: Any) -> Iterable[Any]:
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
    for code in codes:  # the loop adds the functions inside
        codes += [const for const in code.co_consts if isinstance(const, CodeType)]
        yield from (function.__globals__.get(name) for name in code.co_names)


def _closed_over(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # the cell has no value yet
            continue


def module_hooks(fn: Any) -> list[BackwardHook]:
    """The BackwardHooks on a node, with which torch implements a module's full backward hooks. They
    keep the gradients of the module's outputs until backward reaches its inputs."""
    hooks = [hook for hook in registered(fn.register_hook) if isinstance(hook, FunctionType)]
    return [value for h in hooks for value in _closed_over(h) if isinstance(value, BackwardHook)]


_PLAIN = (type(None), bool, int, float, complex, str, bytes, type, type(torch))
