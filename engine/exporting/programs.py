"""A module as a program that runs without its Python: torch.export and TorchScript."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, BinaryIO, NamedTuple, cast

import torch
from torch import nn
from torch.export import Dim, ShapesCollection

from ..recording.compiled import uncompiled
from ..restoring.random_states import torch_states_kept
from .examples import Example
from .refusals import EXPORT, SCRIPT, TRACE, refusal

CODE_BYTES = 16 * 2**20
"""The room on the disk that is taken for the code of a TorchScript program, beside its tensors:
more than it needs."""
_FIXED = ("ConstraintViolationError", "UserError")
"""Errors that torch.export raises, among others, for a model that fixes the number of samples."""


class Program(NamedTuple):
    """`save(file)` writes it. `fixed` says why the number of samples in it is fixed; "" if it is
    free."""

    save: Callable[[BinaryIO], None]
    fixed: str = ""


def exported(module: nn.Module, example: Example, title: str = EXPORT) -> Program:
    """A program of torch.export, with a free number of samples if the model allows it. Raises
    LabError for a model that it cannot hold; `title` names the format in the message."""
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
    if example.size == 1:
        fixed = "The number of samples is fixed at 1: the batch has one."

    def save(file: BinaryIO) -> None:
        with _quiet(), _Unfailing(file) as whole:
            torch.export.save(program, cast(IO[bytes], whole))

    return Program(save, fixed)


def traced(module: nn.Module, example: Example) -> Program:
    """TorchScript of one call. Raises LabError."""

    def make() -> torch.jit.ScriptModule:
        given = {"example_kwarg_inputs": example.kwargs} if example.kwargs else {}
        if example.args and example.kwargs:
            raise TypeError("tracing takes arguments by place or by name, not both")
        with _without_checks(module):
            return torch.jit.trace(module, example.args or None, check_trace=False, **given)  # pyright: ignore

    return _script(TRACE, make)


@contextmanager
def _without_checks(module: nn.Module) -> Iterator[None]:
    """A program of torch.export looks at the shapes of its inputs by hooks, which cannot be traced:
    in this context it has none of them."""
    hooks = module._forward_pre_hooks
    kept = dict(hooks)
    for key, hook in kept.items():
        if getattr(hook, "__module__", "").startswith("torch.export."):
            del hooks[key]
    try:
        yield
    finally:
        hooks.clear()
        hooks.update(kept)


def scripted(module: nn.Module) -> Program:
    """TorchScript of the module's Python. Raises LabError."""
    return _script(SCRIPT, lambda: torch.jit.script(module))


def _script(title: str, make: Callable[[], object]) -> Program:
    try:
        with _quiet():
            script = make()
    except Exception as error:
        raise refusal(title, error) from error
    assert isinstance(script, torch.jit.ScriptModule)

    def save(file: BinaryIO) -> None:
        """Some of what TorchScript cannot hold shows only here."""
        try:
            with _quiet():
                _save_script(script, file)
        except RuntimeError as error:
            raise refusal(title, error) from error

    return Program(save)


def _save_script(script: torch.jit.ScriptModule, file: BinaryIO) -> None:
    """torch writes into a file by its path without a copy of the tensors, but ends the process if
    the disk is full: the room is taken before. Elsewhere the copy is made."""
    if isinstance(file, io.BufferedWriter) and hasattr(os, "posix_fallocate"):
        tensors = (*script.parameters(), *script.buffers())
        size = sum(tensor.untyped_storage().nbytes() for tensor in tensors)
        os.posix_fallocate(file.fileno(), 0, size + CODE_BYTES)
        torch.jit.save(script, file.name)
    else:
        file.write(script.save_to_buffer())


def _export(module: nn.Module, example: Example, free: bool) -> torch.export.ExportedProgram:
    shapes = ShapesCollection()
    batch = Dim("batch")
    for tensor in example.tensors if free else ():
        if example.has_batch(tensor):
            shapes[tensor] = {0: batch}
    given: Any = shapes if free else None  # its signature leaves ShapesCollection out
    return torch.export.export(module, example.args, example.kwargs, dynamic_shapes=given)


class _Unfailing(io.RawIOBase):
    """A file for torch's writer, which ends the process if a write fails: what failed is raised at
    the end of the context."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._error: OSError | None = None

    def __enter__(self) -> _Unfailing:
        return self

    def __exit__(self, *_: object) -> None:
        if self._error is not None:
            raise self._error

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True  # torch asks, and at the end goes to the beginning

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return offset

    def write(self, data: Any, /) -> int:
        if self._error is None:
            try:
                self._file.write(data)
            except OSError as error:
                self._error = error
        return len(data)


@contextmanager
def _quiet() -> Iterator[None]:
    """torch.jit is deprecated, and says so at every call; its files stay."""
    with warnings.catch_warnings(), torch.no_grad(), torch_states_kept():
        warnings.simplefilter("ignore")
        with uncompiled():
            yield
