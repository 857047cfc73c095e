"""Modules that torch.compile has wrapped: the names that the user knows their parts by, and running
them without the compiled code. The classes and hooks of modules, those of TorchScript among them.
Functions of ours that compiled code calls.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from ..system.private_torch import (
    FrameAction,
    FrameExecStrategy,
    is_dynamo_imported,
    set_code_exec_strategy,
)

_WRAPPED = "_orig_mod"
"""What torch.compile calls a module inside its own."""

add_forward_pre_hook = nn.Module.register_forward_pre_hook
add_forward_hook = nn.Module.register_forward_hook
"""The methods by these names of any module: a module of TorchScript refuses its own, but where
Python calls it, it calls such hooks as well. What TorchScript runs inside it calls none."""


def own_path(path: str) -> str:
    """The path of a module, a parameter or a buffer as it is without torch.compile: `enc.0.weight`
    for `enc._orig_mod.0.weight`."""
    if _WRAPPED not in path:
        return path
    return ".".join(name for name in path.split(".") if name != _WRAPPED)


def unwrapped(module: nn.Module) -> nn.Module:
    """The user's module inside the one that torch.compile has made; any other module itself."""
    if _WRAPPED not in module._modules:
        return module
    return module._modules[_WRAPPED] or module


def class_name(module: nn.Module) -> str:
    """The name of its class; of a module of TorchScript, of the class that it was made of."""
    if isinstance(module, torch.jit.ScriptModule):
        return module.original_name
    return type(module).__name__


def has_compiled_parts(module: nn.Module) -> bool:
    """Whether torch.compile has made a program of a module in it."""
    return any(
        path != own_path(path) or part._compiled_call_impl is not None
        for path, part in module.named_modules()
    )


def own_modules(
    module: nn.Module, remove_duplicate: bool = True
) -> Iterator[tuple[str, nn.Module, str]]:
    """The user's modules in the order of `named_modules`: path without torch.compile, module, and
    torch's path."""
    for path, part in module.named_modules(remove_duplicate=remove_duplicate):
        if _WRAPPED not in part._modules:
            yield own_path(path), part, path


@contextmanager
def uncompiled() -> Iterator[None]:
    """In this context compiled modules and functions run their own Python, call by call."""
    if not is_dynamo_imported():  # nothing is compiled
        yield
        return
    with torch.compiler.set_stance("force_eager"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*when there are global hooks on modules")
        yield


def never_compiled(function: Callable) -> Callable:
    """Have torch compile neither a function of ours nor what it calls: a compiled program that
    calls it ends there, and another begins after it. (`torch.compiler.disable` does the same by a
    function around it, which takes longer than many a hook.)"""
    function._torchdynamo_disable = True  # pyright: ignore[reportFunctionMemberAccess]
    return _run_by_python(function, FrameAction.SKIP)


def only_calls_compiled(function: Callable) -> Callable:
    """Have torch compile what a function of ours calls, but not its frame, where it is called by
    Python. A compiled program that calls it goes on in it: what is not to be in there asks
    `torch.compiler.is_dynamo_compiling()`."""
    return _run_by_python(function, FrameAction.DEFAULT)


def _run_by_python(function: Callable, calls: FrameAction) -> Callable:
    strategy = FrameExecStrategy(FrameAction.SKIP, calls)
    set_code_exec_strategy(function.__code__, strategy)
    return function
