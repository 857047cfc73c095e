"""How torch shows the optimizer steps of the user's own code, and the losses before them."""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils._python_dispatch import _disable_current_modes


class Steps:
    """The methods that the hooks call, if a class has them of its own. `has_closure`: the step
    computes its loss and its gradients itself, with a closure. `root` is what backward is called
    on, `loss` its value without a graph, as it was before a GradScaler scaled it."""

    def before_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        return

    def after_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        return

    def saw_loss(self, loss: Tensor, root: Tensor) -> None:
        return


class Gate:
    """While it is shut, hooks return at once. They read it before they call anything: the code of a
    function is cold after a step of torch, and costs many times what it costs in a loop of its own.
    `backward` is the function that was in torch when the gate was made; it is called while the gate
    is shut.
    """

    def __init__(self, is_shut: bool = False) -> None:
        self.is_shut = is_shut
        self.backward = torch.autograd.backward


class _Forks:
    """`count`: the number of forks between the process that imported this and the one that runs."""

    count = 0

    def add(self) -> None:
        self.count += 1


_forks = _Forks()  # os.getpid() in every step would be a system call
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forks.add)


@contextmanager
def steps_shown(
    *watching: Steps, gate: Gate | None = None, unless: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Show each of `watching` the optimizer steps of this thread, and the scalars on which
    `backward` is called. Not shown: what other threads and forked processes do, what torch
    compiles, what a CUDA graph captures, and what runs while `gate` is shut or `unless` returns
    True."""
    gate = gate or Gate()
    get_ident, is_compiling = threading.get_ident, torch.compiler.is_compiling
    thread, forks = get_ident(), _forks.count
    before_step = [each.before_step for each in watching if _has(each, "before_step")]
    after_step = [each.after_step for each in watching if _has(each, "after_step")]
    saw_loss = [each.saw_loss for each in watching if _has(each, "saw_loss")]
    is_open = True
    # The result of the last GradScaler.scale, and the loss that was scaled.
    scaled: weakref.ref[Tensor] | None = None
    unscaled: Tensor | None = None

    is_shown = False  # the step that runs now

    def is_seen() -> bool:
        return (
            is_open
            and not unless()
            and get_ident() == thread
            and not is_compiling()
            and _forks.count == forks
        )

    def before(optimizer: Optimizer, args: tuple, kwargs: dict[str, Any]) -> None:
        nonlocal is_shown
        if not gate.is_shut and is_seen():
            is_shown = not (
                torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
            )
            if is_shown:
                has_closure = _has_closure(args, kwargs)
                for tell in before_step:
                    tell(optimizer, has_closure)

    def after(optimizer: Optimizer, args: tuple, kwargs: dict[str, Any]) -> None:
        if not gate.is_shut and is_shown and is_seen():
            has_closure = _has_closure(args, kwargs)
            for tell in after_step:
                tell(optimizer, has_closure)

    run_backward = torch.autograd.backward
    scale = torch.amp.GradScaler.scale

    @functools.wraps(run_backward)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
        if gate.is_shut:
            return gate.backward(tensors, *args, **kwargs)
        if is_seen():
            given = tensors if isinstance(tensors, list | tuple) else (tensors,)
            for tensor in given:
                if isinstance(tensor, Tensor) and tensor.numel() == 1:
                    is_scaled = scaled is not None and scaled() is tensor
                    loss = unscaled if is_scaled and unscaled is not None else tensor
                    loss = _without_graph(loss)
                    for tell in saw_loss:
                        tell(loss, tensor)
        return run_backward(tensors, *args, **kwargs)

    @functools.wraps(scale)
    def noted_scale(scaler: Any, outputs: Any) -> Any:
        nonlocal scaled, unscaled
        result = scale(scaler, outputs)
        if not gate.is_shut and isinstance(outputs, Tensor) and is_seen():
            scaled, unscaled = weakref.ref(result), _without_graph(outputs)
        return result

    handles = (register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after))
    torch.autograd.backward = backward
    torch.amp.GradScaler.scale = noted_scale  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        is_open, unscaled = False, None  # the user's code may have kept a wrapper
        for handle in handles:
            handle.remove()
        if torch.autograd.backward is backward:
            torch.autograd.backward = run_backward
        if torch.amp.GradScaler.scale is noted_scale:
            torch.amp.GradScaler.scale = scale


def gradient_norms(optimizer: Optimizer) -> list[Tensor]:
    """The 2-norm of each gradient of the optimizer's parameters, 0-dim. One NaN if torch cannot
    compute them for such gradients."""
    gradients = [
        parameter.grad
        for group in optimizer.param_groups
        for parameter in group["params"]
        if parameter.grad is not None
    ]
    if any(gradient.is_sparse for gradient in gradients):
        gradients = [g.coalesce().values() if g.is_sparse else g for g in gradients]
    if not gradients:
        return []
    try:
        norms = list(torch._foreach_norm(gradients))
        scale = getattr(optimizer, "grad_scale", None)  # a fused step unscales them itself
        return norms if scale is None else [norm / scale.to(norm.device) for norm in norms]
    except (RuntimeError, NotImplementedError, TypeError):  # a tensor subclass may have none
        return [torch.tensor(float("nan"))]


@contextmanager
def quiet() -> Iterator[None]:
    """In this context torch builds no graph, and the user's modes do not see what runs."""
    with torch._C.DisableTorchFunction(), torch.no_grad():
        if torch._C._len_torch_dispatch_stack() == 0:
            yield
        else:
            with _disable_current_modes():
                yield


_transforms: Callable[[], object] = torch._C._functorch.peek_interpreter_stack  # pyright: ignore


def is_out_of_reach() -> bool:
    """Whether torch compiles, transforms a function (vmap, grad), or captures a CUDA graph."""
    return (
        torch.compiler.is_compiling()
        or _transforms() is not None
        or (torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())
    )


def _without_graph(tensor: Tensor) -> Tensor:
    if type(tensor) is Tensor and not torch._C._len_torch_function_stack():  # pyright: ignore
        return tensor.detach()
    with torch._C.DisableTorchFunction():
        return tensor.detach()


def _has(steps: Steps, name: str) -> bool:
    return getattr(type(steps), name) is not getattr(Steps, name)


def _has_closure(args: tuple, kwargs: dict[str, Any]) -> bool:
    """`args` begins with the optimizer."""
    return (args[1] if len(args) > 1 else kwargs.get("closure")) is not None
