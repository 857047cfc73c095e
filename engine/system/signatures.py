"""The parameters of the user's classes and functions."""

from __future__ import annotations

import inspect
from functools import partial
from types import FunctionType, MethodType

from torch import Tensor, nn

MAX_METHODS = 12


def required_parameters(value: object) -> tuple[str, ...]:
    """The parameters without a default of a class or function, as far as Python can tell."""
    if not callable(value):
        return ()
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):  # made in C, or with a metaclass of its own
        return ()
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return tuple(p.name for p in parameters if p.default is p.empty and p.kind not in variadic)


def takes_tensors(value: object) -> bool:
    """Whether a value may be a function of tensors: a function of Python, a bound method or a
    partial of these that needs arguments, and says of none that it is anything else than a tensor.
    (A function that can be called as it is makes a module.)"""
    function = value.func if isinstance(value, partial) else value
    if not isinstance(function, FunctionType | MethodType):
        return False
    if isinstance(function, MethodType) and isinstance(function.__self__, type):
        return False  # of a class: it makes objects
    needed = required_parameters(value)
    if not needed:
        return False
    assert callable(value)
    parameters = inspect.signature(value).parameters
    kinds = [parameters[name].annotation for name in needed]
    return all(
        kind is inspect.Parameter.empty or kind is Tensor or str(kind).endswith("Tensor")
        for kind in kinds
    )


def tensor_methods(module: nn.Module) -> tuple[str, ...]:
    """The methods of a module, other than forward, that a class of the user's gives it and that may
    be functions of tensors, such as `encode`: the first MAX_METHODS."""
    own = (kind for kind in type(module).__mro__ if kind.__module__.partition(".")[0] != "torch")
    found = {
        name: None
        for kind in own
        for name, value in vars(kind).items()
        if isinstance(value, FunctionType)
        and not name.startswith("_")
        and name != "forward"
        and takes_tensors(MethodType(value, module))
    }
    return tuple(found)[:MAX_METHODS]
