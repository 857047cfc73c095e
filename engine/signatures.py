"""What the user's classes and functions say of their parameters."""

from __future__ import annotations

import inspect

from torch import Tensor


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
    """Whether a value may be a function of tensors: one that needs arguments, and says of none that
    it is anything else than a tensor. (A function that can be called as it is makes a module.)"""
    if not inspect.isfunction(value):
        return False
    parameters = inspect.signature(value).parameters
    needed = [parameters[name].annotation for name in required_parameters(value)]
    return bool(needed) and all(
        kind is inspect.Parameter.empty or kind is Tensor or str(kind).endswith("Tensor")
        for kind in needed
    )
