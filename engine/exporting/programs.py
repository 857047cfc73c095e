"""A module as a program that runs without its Python: torch.export and TorchScript."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.export import Dim, ShapesCollection

from ..compiled import uncompiled
from .examples import Example
from .refusals import EXPORT, SCRIPT, TRACE, refusal

_FIXED = ("ConstraintViolationError", "UserError")
"""What torch.export raises, among other things, for a model that fixes the number of samples."""


class Program(NamedTuple):
    """The bytes of a file. `fixed` says why the number of samples in it is fixed; "" if it is
    free."""

    data: bytes
    fixed: str = ""


def exported(module: nn.Module, example: Example, title: str = EXPORT) -> Program:
    """A program of torch.export, with a free number of samples if the model allows it. Raises
    LabError for a model that it cannot hold: `title` cannot."""
    fixed = ""
    try:
        with _quiet():
            program = _export(module, example, free=example.size > 1)
    except Exception as error:
        if type(error).__name__ not in _FIXED:
            raise refusal(title, error) from error
        fixed = f"The number of samples is fixed at {example.size}: the model computes with it."
        try:
            with _quiet():
                program = _export(module, example, free=False)
        except Exception as other:
            raise refusal(title, other) from other
    buffer = io.BytesIO()
    with _quiet():
        torch.export.save(program, buffer)
    if example.size == 1:
        fixed = "The number of samples is fixed at 1: the batch has one."
    return Program(buffer.getvalue(), fixed)


def traced(module: nn.Module, example: Example) -> Program:
    """TorchScript of one call. Raises LabError."""

    def make() -> torch.jit.ScriptModule:
        given = {"example_kwarg_inputs": example.kwargs} if example.kwargs else {}
        if example.args and example.kwargs:
            raise TypeError("tracing takes arguments by place or by name, not both")
        return torch.jit.trace(module, example.args or None, check_trace=False, **given)  # pyright: ignore

    return _script(TRACE, make)


def scripted(module: nn.Module) -> Program:
    """TorchScript of the module's Python. Raises LabError."""
    return _script(SCRIPT, lambda: torch.jit.script(module))


def _script(title: str, make: Callable[[], object]) -> Program:
    buffer = io.BytesIO()
    try:
        with _quiet():
            torch.jit.save(make(), buffer)
    except Exception as error:
        raise refusal(title, error) from error
    return Program(buffer.getvalue())


def _export(module: nn.Module, example: Example, free: bool) -> torch.export.ExportedProgram:
    shapes = ShapesCollection()
    batch = Dim("batch")
    for tensor in example.tensors if free else ():
        if example.has_batch(tensor):
            shapes[tensor] = {0: batch}
    given: Any = shapes if free else None  # its signature leaves ShapesCollection out
    return torch.export.export(module, example.args, example.kwargs, dynamic_shapes=given)


@contextmanager
def _quiet() -> Iterator[None]:
    """torch.jit is deprecated, and says so at every call; its files stay."""
    with warnings.catch_warnings(), torch.no_grad(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        with uncompiled():
            yield
