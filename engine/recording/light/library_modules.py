"""The calls of modules, for a light recorder. What one of torch's own modules runs is told from
outside where that is known: it costs less than to look on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial, wraps
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn import Parameter
from torch.overrides import TorchFunctionMode

from ...system.private_torch import (
    global_backward_hooks,
    global_backward_pre_hooks,
    global_forward_hooks,
    global_forward_pre_hooks,
    len_torch_function_stack,
    next_sequence,
    pop_torch_function_stack,
    push_on_torch_function_stack,
    wrapped_call_impl,
)
from ...system.user_files import UsersFrames
from ..compiled import only_calls_compiled
from ..kernel_asserts import Check
from ..modes import replaced
from .patterns import Alike
from .repeats import Repeats, Whole

ONE_FUNCTION: dict[type[nn.Module], tuple[Callable, tuple[str, ...]]] = {
    nn.Linear: (F.linear, ("weight", "bias")),
    nn.Conv1d: (F.conv1d, ("weight", "bias")),
    nn.Conv2d: (F.conv2d, ("weight", "bias")),
    nn.Conv3d: (F.conv3d, ("weight", "bias")),
    nn.Embedding: (F.embedding, ("weight",)),
    nn.LayerNorm: (F.layer_norm, ("weight", "bias")),
    nn.GroupNorm: (F.group_norm, ("weight", "bias")),
    nn.ReLU: (F.relu, ()),
    nn.LeakyReLU: (F.leaky_relu, ()),
    nn.ELU: (F.elu, ()),
    nn.GELU: (F.gelu, ()),
    nn.SiLU: (F.silu, ()),
    nn.Softmax: (F.softmax, ()),
    nn.LogSoftmax: (F.log_softmax, ()),
    nn.Tanh: (torch.tanh, ()),
    nn.Sigmoid: (torch.sigmoid, ()),
    nn.Dropout: (F.dropout, ()),
    nn.MSELoss: (F.mse_loss, ()),
    nn.L1Loss: (F.l1_loss, ()),
    nn.CrossEntropyLoss: (F.cross_entropy, ()),
    nn.NLLLoss: (F.nll_loss, ()),
}
"""The one torch function that `forward` of a class calls, and the parameters that it gets after
the arguments of the call. It runs nothing of the user's, and may be run again if it raises."""

_SETTINGS: dict[type[nn.Module], tuple[str, object]] = {
    nn.Conv1d: ("padding_mode", "zeros"),
    nn.Conv2d: ("padding_mode", "zeros"),
    nn.Conv3d: ("padding_mode", "zeros"),
    nn.Embedding: ("max_norm", None),
    nn.ReLU: ("inplace", False),
    nn.LeakyReLU: ("inplace", False),
    nn.ELU: ("inplace", False),
    nn.SiLU: ("inplace", False),
    nn.Dropout: ("inplace", False),
    nn.CrossEntropyLoss: ("weight", None),
    nn.NLLLoss: ("weight", None),
}
"""The settings with which a module runs one function only. With another one it runs more, gives
more tensors, or writes to one."""


class ModuleCalls(Protocol):
    """What a recorder has for each call of a module."""

    repeats: Repeats
    running: list[nn.Module | None]
    """The modules that run, the outermost first: always the same list."""
    checks: Mapping[Callable, Check]
    """What is checked of functions before they run."""

    frames: UsersFrames

    def begin_whole(self, alike: Alike, given: list[Tensor]) -> Whole: ...
    def learn(self, whole: Whole, module: nn.Module, result: object) -> None:
        """The module, which still runs, was looked into."""

    def enter_module(self, module: nn.Module) -> None: ...
    def leave_module(self, module: nn.Module) -> None: ...
    def ran_one(
        self, module: nn.Module, func: Callable, args: tuple, first: int, result: object
    ) -> None:
        """The module has run `func(*args)`. Modes are off; `first` is the number of its first
        node."""


def module_calls(recorder: ModuleCalls, mode: TorchFunctionMode) -> AbstractContextManager[None]:
    """Tell `recorder` of each call of a module. (torch's global hooks cost five times as much.)
    While a module runs that calls one function, or that repeats, `mode` is off."""
    get_ident, is_compiling = threading.get_ident, torch.compiler.is_dynamo_compiling
    thread, repeats, running = get_ident(), recorder.repeats, recorder.running
    checks, place = recorder.checks, recorder.frames.place

    def make(original: Callable) -> Callable:
        is_torchs = original is wrapped_call_impl

        @only_calls_compiled
        @wraps(original)
        def __call__(self, *args, **kwargs):
            # torch's own `__call__` only calls `_call_impl`: to do that here saves a frame.
            is_direct = is_torchs and self._compiled_call_impl is None
            run = self._call_impl if is_direct else partial(original, self)
            if repeats.is_running:
                try:
                    return run(*args, **kwargs)
                except Exception:
                    if get_ident() != thread or not _may_run_again(self, args, kwargs):
                        raise
                with _pushed(mode):  # which sees what raises
                    return original(self, *args)
            if is_compiling() or get_ident() != thread:
                return original(self, *args, **kwargs)
            known = ONE_FUNCTION.get(type(self))
            is_off = len_torch_function_stack() == 1
            if is_off and (top := pop_torch_function_stack()) is not mode:
                push_on_torch_function_stack(top)
                is_off = False
            if known is not None and not kwargs and is_off and _is_plain(self, args):
                func, names = known
                try:
                    own = self._parameters
                    if checks and func in checks:
                        checks[func]((*args, *[own[name] for name in names]), {})
                    first = next_sequence()
                    result = run(*args)
                    args = (*args, *[own[name] for name in names]) if names else args
                    recorder.ran_one(self, func, args, first, result)
                    return result
                except Exception:  # it is run again below, where the mode sees what raises
                    pass
                finally:
                    push_on_torch_function_stack(mode)
                is_off = False
            whole: Whole | None = None
            if is_off:
                try:
                    begun = None if running else repeats.begin(self, place(2), args, kwargs)
                    if begun is not None:
                        alike, given, repeat = begun
                        if repeat is not None:
                            try:
                                result = run(*args, **kwargs)
                            finally:
                                repeats.is_running, repeat.end = False, next_sequence()
                            repeats.end(repeat, given, result)
                            return result
                        whole = recorder.begin_whole(alike, given)
                finally:
                    if len_torch_function_stack():
                        _put_under(mode)
                    else:
                        push_on_torch_function_stack(mode)
            recorder.enter_module(self)
            try:
                result = original(self, *args, **kwargs)
                if whole is not None:
                    recorder.learn(whole, self, result)
                return result
            finally:
                recorder.leave_module(self)

        return __call__

    return replaced(nn.Module, "__call__", make)


def _may_run_again(module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether a call inside one that is not looked into is known to do nothing of the user's."""
    return (
        type(module) in ONE_FUNCTION
        and not kwargs
        and not len_torch_function_stack()
        and _is_plain(module, args)
    )


@contextmanager
def _pushed(mode: TorchFunctionMode) -> Iterator[None]:
    push_on_torch_function_stack(mode)
    try:
        yield
    finally:
        pop_torch_function_stack()


def _put_under(mode: TorchFunctionMode) -> None:
    """Under those modes that the user's code has left on."""
    above = [pop_torch_function_stack() for _ in range(len_torch_function_stack())]
    push_on_torch_function_stack(mode)
    for each in reversed(above):
        push_on_torch_function_stack(each)


def _is_plain(module: nn.Module, args: tuple) -> bool:
    """Whether the call does what the module's class says, with tensors of torch's own class."""
    own = module.__dict__
    if (
        own["_forward_pre_hooks"]
        or own["_forward_hooks"]
        or own["_backward_hooks"]
        or own["_backward_pre_hooks"]
        or global_forward_pre_hooks
        or global_forward_hooks
        or global_backward_hooks
        or global_backward_pre_hooks
        or "forward" in own
    ):
        return False
    for each in args:
        if type(each) is not Tensor and type(each) is not Parameter:
            return False
    setting = _SETTINGS.get(type(module))
    if setting is None:
        return True
    name, usual = setting
    if name in own:
        return own[name] == usual
    buffers = own["_buffers"]  # by `getattr` it takes long; the user may have made it a parameter
    return name in buffers and buffers[name] == usual
