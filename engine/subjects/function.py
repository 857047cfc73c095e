"""A function of tensors as a module, so that the workspaces can work on it."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

from torch import Tensor, nn

from ..restoring.held_objects import defaults_of, named_in


class Parts(nn.Module):
    """What a function names, a method's object, or what a list, tuple or dict holds: leaf tensors
    that require a gradient are its parameters, modules its children, and functions and collections
    of such too. All are the user's own objects."""

    def __init__(self, value: object, known: dict[int, Parts] | None = None) -> None:
        super().__init__()
        known = {} if known is None else known
        known[id(value)] = self
        for name, inner in named_in(value).items():
            if isinstance(inner, nn.Module):
                self._modules[name] = inner
            elif isinstance(inner, Tensor):
                if inner.is_leaf and inner.requires_grad:  # nn.Parameter(inner) is another leaf
                    self._parameters[name] = inner  # pyright: ignore[reportArgumentType]
            else:
                parts = known.get(id(inner)) or Parts(inner, known)
                if parts._modules or parts._parameters:
                    self._modules[name] = parts

    def now(self, value: Any) -> Any:
        """The value; in a copy of this module, and while other tensors stand for its parameters, a
        copy of the value with the parts that this module has."""
        others: dict[str, object] = {}
        for name, inner in named_in(value).items():
            own: object = self._parameters.get(name)
            own = self._modules.get(name) if own is None else own
            own = own.now(inner) if isinstance(own, Parts) else own
            if own is not None and own is not inner:
                others[name] = own
        return _with(value, others) if others else value


class FunctionModule(Parts):
    """Calls a function. Its parts are what the function names in its closure, its default
    arguments and, if it is the user's, the globals that it reads; `self` of a bound method; and the
    arguments that a partial has."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._function = function
        self.__signature__ = inspect.signature(function)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.now(self._function)(*args, **kwargs)

    def is_of(self, newer: FunctionModule) -> bool:
        """Whether this module still stands for what `newer` does: it has the parts that the
        function names now. It may have more of them: those frozen meanwhile."""
        function = newer._function
        return (
            self._function == function  # a method is another object each time
            and self.now(function) is function
            and _tensors(newer) <= _tensors(self)
        )

    def extra_repr(self) -> str:
        function = self._function
        return getattr(function.func if isinstance(function, partial) else function, "__name__", "")


def _tensors(module: nn.Module) -> set[tuple[str, int]]:
    return {(name, id(p)) for name, p in module.named_parameters(remove_duplicate=False)}


def _with(value: Any, others: Mapping[str, Any]) -> Any:
    """A copy of a function or a collection that names others."""
    if isinstance(value, dict):
        return {key: others.get(str(key), inner) for key, inner in value.items()}
    if isinstance(value, MethodType):
        owner = value.__self__
        if "self" in others and not isinstance(owner, nn.Module):
            owner = copy.copy(owner)
            vars(owner).update(others["self"])
        else:
            owner = others.get("self", owner)
        return MethodType(others.get("function", value.__func__), owner)
    if isinstance(value, partial):
        given = (others.get(str(place), inner) for place, inner in enumerate(value.args))
        named = {name: others.get(name, inner) for name, inner in value.keywords.items()}
        return partial(others.get("function", value.func), *given, **named)
    if not isinstance(value, FunctionType):
        found = [others.get(str(n), inner) for n, inner in enumerate(value)]
        return type(value)(*found) if hasattr(value, "_fields") else type(value)(found)
    code, cells = value.__code__, value.__closure__ or ()
    made = FunctionType(
        code,
        {**value.__globals__, **others},
        value.__name__,
        tuple({**defaults_of(value), **others}[name] for name in defaults_of(value)),
        tuple(
            CellType(others[name]) if name in others else cell
            for name, cell in zip(code.co_freevars, cells, strict=True)
        ),
    )
    made.__kwdefaults__ = {n: others.get(n, v) for n, v in (value.__kwdefaults__ or {}).items()}
    if made.__globals__.get(value.__name__) is value:  # it calls itself
        made.__globals__[value.__name__] = made
    return made
