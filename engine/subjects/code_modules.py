"""Modules of the user's code: those that an expression names or makes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import nn

from ..restoring.randomness import RandomStream
from ..system.errors import LabError
from ..system.signatures import required_parameters

_MODULES = (
    "A subject is an nn.Module, a class of one, a function that returns one, or a function of"
    " tensors."
)


class CodeModule(NamedTuple):
    """A module of the user's code. `variables` are the names that stand around it; `made`: it was
    made for the subject, by a call or around a function."""

    module: nn.Module
    variables: Mapping[str, Any]
    made: bool = False


def made_module(expression: str, value: object, seed: int) -> nn.Module:
    """The module that the value of `expression` is or makes.

    A class, or a function without required parameters, is called; random numbers then are those
    after `torch.manual_seed(seed)`. Raises LabError if no module comes of it, and whatever the call
    raises.
    """
    if isinstance(value, nn.Module):
        return value
    if not (isinstance(value, type | functools.partial) or inspect.isroutine(value)):
        raise LabError(f"`{expression}` is of type {type(value).__name__}.", hint=_MODULES)
    if isinstance(value, type) and not issubclass(value, nn.Module):
        raise LabError(f"`{expression}` is a class, but of no nn.Module.", hint=_MODULES)
    if missing := required_parameters(value):
        written = ", ".join(f"{name}=..." for name in missing)
        raise LabError(
            f"`{expression}` needs arguments: {', '.join(missing)}.",
            hint=f"Write them: {expression}({written}).",
        )
    with RandomStream(seed, torch.device("cpu")):
        made = value()
    if not isinstance(made, nn.Module):
        raise LabError(
            f"`{expression}()` returned an object of type {type(made).__name__}.", hint=_MODULES
        )
    return made
