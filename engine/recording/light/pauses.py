"""Backward and optimizers run unseen: most torch calls of a training loop are theirs."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.profiler import record_function
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode
from torch.profiler import ExecutionTraceObserver

from ...system.private_torch import (
    get_function_stack_at,
    is_profiler_enabled,
    len_torch_dispatch_stack,
    len_torch_function_stack,
    pop_torch_function_stack,
    profiler_enabled,
    push_on_torch_function_stack,
)
from ..compiled import never_compiled, only_calls_compiled
from ..modes import replaced

_is_compiling: Callable[[], bool] = torch.compiler.is_dynamo_compiling


@contextmanager
def training_unseen(
    mode: TorchFunctionMode,
    is_user_file: Callable[[str], bool],
    stepped: Callable[[Optimizer], None],
) -> Iterator[None]:
    """Take `mode` off the stack during backward and while an optimizer steps or forgets its
    gradients, and tell `stepped` of each step.

    Not so for an optimizer whose `step` the user wrote, nor for a step with a closure, which runs
    the user's code; nor where another mode is above, which may be the user's. (In other threads
    `mode` is never on the stack.) Nor do optimizers tell torch's profiler what they begin while
    it is off and no mode of the user's sees that: it takes as long as all that is recorded of a
    small step.
    """
    thread = threading.get_ident()
    users: dict[type, bool] = {}
    depth = -1  # of the stack without `mode`, during a step

    class Pause(tuple):
        """The arguments of a step, whose frame holds them: the pause ends with this frame. (torch's
        hook after a step is not called where the step raises.)"""

        __slots__ = ()

        def __del__(self) -> None:
            nonlocal depth
            is_here = depth >= 0 and threading.get_ident() == thread
            if is_here and len_torch_function_stack() == depth:
                push_on_torch_function_stack(mode)
                depth = -1

    def before_step(optimizer: Optimizer, args: tuple, kwargs: dict[str, Any]) -> Any:
        nonlocal depth
        kind = type(optimizer)
        is_users = users.get(kind)
        if is_users is None:
            code = inspect.unwrap(kind.step).__code__
            is_users = users[kind] = is_user_file(code.co_filename)
        around = len_torch_function_stack()
        if is_users or len(args) > 1 or (kwargs and any(kwargs.values())) or not around:
            return None
        top = pop_torch_function_stack()
        if top is not mode:
            push_on_torch_function_stack(top)
            return None
        depth = around - 1
        stepped(optimizer)
        return Pause(args), kwargs

    before = register_optimizer_step_pre_hook(never_compiled(before_step))
    try:
        with (
            replaced(Optimizer, "zero_grad", partial(_unseen, mode=mode)),
            replaced(nn.Module, "zero_grad", partial(_unseen, mode=mode)),
            replaced(Tensor, "backward", partial(_unseen, mode=mode)),
            replaced(record_function, "__enter__", partial(_unlabelled, mode=mode)),
            replaced(ExecutionTraceObserver, "start", _noted),
        ):
            yield
    finally:
        before.remove()
        if depth >= 0:  # a step has raised, and the error ended the cell
            push_on_torch_function_stack(mode)
            depth = -1


_LABELS = ("Optimizer.step#", "Optimizer.zero_grad#")
_traced: list[bool] = []
"""Has an element once a cell has started a trace of torch's own, which no profiler tells of."""


def _noted(start: Callable[[ExecutionTraceObserver], None]) -> Callable:
    @wraps(start)
    def noted(observer: ExecutionTraceObserver) -> None:
        _traced[:] = [True]
        start(observer)

    return noted


def _unlabelled(enter: Callable, mode: TorchFunctionMode) -> Callable:
    """What each `step` and `zero_grad` of an optimizer begins with: it gives the profiler a label
    of them."""
    unseen = _unseen(enter, mode)

    @only_calls_compiled
    @wraps(enter)
    def __enter__(label: record_function) -> record_function:
        if _is_compiling():
            return enter(label)
        depth = len_torch_function_stack()
        has_other_mode = (
            depth > 1
            or (depth == 1 and get_function_stack_at(0) is not mode)
            or len_torch_dispatch_stack()
        )
        is_told = has_other_mode or is_profiler_enabled() or profiler_enabled() or _traced
        if is_told or not label.name.startswith(_LABELS):
            return unseen(label)
        label.run_callbacks_on_exit = False  # then its `__exit__` tells nothing either
        return label

    return __enter__


def _unseen(func: Callable, mode: TorchFunctionMode | None) -> Callable:
    @only_calls_compiled
    @wraps(func)
    def method(*args: Any, **kwargs: Any) -> Any:
        if _is_compiling():
            return func(*args, **kwargs)
        depth = len_torch_function_stack()
        # With arguments it may write (set_to_none=False) or make nodes (create_graph=True).
        if not depth or len(args) != 1 or kwargs:
            return func(*args, **kwargs)
        top = pop_torch_function_stack()
        if top is not mode:
            push_on_torch_function_stack(top)
            return func(*args)
        try:
            return func(*args)
        finally:
            if len_torch_function_stack() == depth - 1:
                push_on_torch_function_stack(top)

    return method


UNSEEN = _unseen(Tensor.backward, None).__code__
"""The code of the frames under which backward runs; their locals are those of a mode's frame."""
