"""Backward and optimizers run unseen: most torch calls of a training loop are theirs."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.profiler import record_function
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode

from ..modes import replaced

_depth: Callable[[], int] = torch._C._len_torch_function_stack  # pyright: ignore
_mode_at: Callable[[int], TorchFunctionMode] = torch._C._get_function_stack_at  # pyright: ignore
_push: Callable[[TorchFunctionMode], None] = torch._C._push_on_torch_function_stack
_pop: Callable[[], TorchFunctionMode] = torch._C._pop_torch_function_stack


class _Pause(tuple):
    """The arguments of a step, whose frame holds them: the pause ends with this frame. (torch's
    hook after a step is not called where the step raises.)"""

    over: Callable[[], None]

    def __del__(self) -> None:
        self.over()


@contextmanager
def training_unseen(
    mode: TorchFunctionMode,
    is_user_file: Callable[[str], bool],
    stepped: Callable[[Optimizer], None],
) -> Iterator[None]:
    """Take `mode` off the stack during backward and while an optimizer steps or forgets its
    gradients, and tell `stepped` of each step.

    Not so for an optimizer whose `step` the user wrote, nor for a step with a closure, which runs
    the user's code; nor where another mode is above, which may be the user's.
    """
    thread = threading.get_ident()
    users: dict[type, bool] = {}
    depth = -1  # of the stack without `mode`, during a pause

    def pause() -> bool:
        nonlocal depth
        here = _depth() - 1
        if here < 0 or _mode_at(here) is not mode or threading.get_ident() != thread:
            return False
        _pop()
        depth = here
        return True

    def resume() -> None:
        nonlocal depth
        if depth >= 0 and _depth() == depth and threading.get_ident() == thread:
            _push(mode)
            depth = -1

    def before_step(optimizer: Optimizer, args: tuple, kwargs: dict[str, Any]) -> Any:
        kind = type(optimizer)
        is_users = users.get(kind)
        if is_users is None:
            code = inspect.unwrap(kind.step).__code__
            is_users = users[kind] = is_user_file(code.co_filename)
        if is_users or len(args) > 1 or any(kwargs.values()) or not pause():
            return None
        stepped(optimizer)
        pausing = _Pause(args)
        pausing.over = resume
        return pausing, kwargs

    def unseen(original: Callable) -> Callable:
        return _unseen(original, pause, resume)

    before = register_optimizer_step_pre_hook(before_step)
    try:
        with (
            replaced(Optimizer, "zero_grad", unseen),
            replaced(nn.Module, "zero_grad", unseen),
            replaced(Tensor, "backward", unseen),
            replaced(record_function, "__enter__", unseen),  # what each step begins with
        ):
            yield
    finally:
        before.remove()
        if depth >= 0:  # a step has raised, and the error ended the cell
            _push(mode)
            depth = -1


def _unseen(func: Callable, pause: Callable[[], bool], resume: Callable[[], None]) -> Callable:
    @wraps(func)
    def method(*args: Any, **kwargs: Any) -> Any:
        # With arguments it may write (set_to_none=False) or make nodes (create_graph=True).
        pauses = len(args) == 1 and not kwargs and pause()
        try:
            return func(*args, **kwargs)
        finally:
            if pauses:
                resume()

    return method


UNSEEN = _unseen(Tensor.backward, lambda: False, lambda: None).__code__
"""The code of the frames under which backward runs; their locals are those of a mode's frame."""
