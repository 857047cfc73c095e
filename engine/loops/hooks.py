"""How torch shows the optimizer steps of the user's own code, and the losses before them."""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils._python_dispatch import _disable_current_modes

from ..compiled import never_compiled, only_calls_compiled


class Passed(NamedTuple):
    """`steps` have ended that were not shown. `made`: the number of the next node when the last of
    them ended; `has_begun`: `backward` was called since."""

    steps: int
    made: int
    has_begun: bool


class Steps:
    """The methods that the hooks call, if a class has them of its own. `has_closure`: the step
    computes its loss and its gradients itself, with a closure. `root` is what backward is called
    on, `loss` its value without a graph, as it was before a GradScaler scaled it."""

    shown_from_s = -inf
    """Only steps that begin after this time, of `perf_counter`, are shown. Hooks read it before
    they call anything, for the same reason as they read a `Gate`."""

    def needed_from(self) -> tuple[float, float]:
        """The time, of `perf_counter`, and the number of steps from now, at which it needs to be
        shown each step again: at the first of both. See `Rest`."""
        return self.shown_from_s, inf

    def count(self, passed: Passed) -> None:
        """Steps have passed that were not shown."""

    def begin_step(self) -> None:
        """The step that begins now is shown, the one before it was not."""

    def before_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        return

    def after_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        return

    def saw_loss(self, loss: Tensor, root: Tensor) -> None:
        return


class Patch:
    """A function of torch's that is replaced from time to time: `original` is called by what is in
    its place. What others put in its place meanwhile stays."""

    def __init__(self, owner: object, name: str) -> None:
        self._owner, self._name = owner, name
        self.original: Callable[..., Any] = getattr(owner, name)
        self._wrapper: Callable[..., Any] | None = None
        self._is_on = False

    def wrap(self, wrapper: Callable[..., Any]) -> None:
        """What is to be in its place."""
        self._wrapper = functools.wraps(self.original)(wrapper)

    def put_on(self) -> None:
        """Any thread may, at any time."""
        now = getattr(self._owner, self._name)
        if not self._is_on and now is not self._wrapper:
            self.original = now
            setattr(self._owner, self._name, self._wrapper)
        self._is_on = True

    def take_off(self) -> None:
        """Unless another's is above it by now: that one calls it. For one thread."""
        if self._is_on and getattr(self._owner, self._name) is self._wrapper:
            setattr(self._owner, self._name, self.original)
            self._is_on = False


class Gate:
    """While it is shut, steps are only counted, until one ends after `due_s`, or is number
    `due_step`: then, as while it is open, `ended(optimizer)` is called, which counts its step
    itself. `known`, if given, has optimizers by their ids: the first step of another one opens it.
    Hooks read it before they call anything: the code of a function is cold after a step of torch,
    and costs many times what it costs in a loop of its own. So torch's functions are replaced while
    it is open, and on until `rest`.
    """

    def __init__(
        self,
        is_shut: bool = False,
        ended: Callable[[Optimizer], None] | None = None,
        known: Mapping[int, weakref.ref[Optimizer]] | None = None,
    ) -> None:
        self.is_shut = is_shut
        self.due_s, self.due_step = 0.0, inf
        self.steps = 0
        self.ended = ended
        self.known = known
        self.backwards = 0
        """Calls of `backward`, while torch's functions are replaced."""
        self.backwards_before = 0
        """Those before the last step had ended."""
        self.made = 0
        """The number of the next node when it ended."""
        self.patches: list[Patch] = []

    def open(self) -> None:
        """Any thread may. In the step that runs now it may be too late."""
        self.is_shut = False
        for patch in self.patches:
            patch.put_on()

    def rest(self) -> None:
        """Let torch's functions be its own again. For the thread whose steps these are."""
        for patch in self.patches:
            patch.take_off()


class _Forks:
    """`count`: the number of forks between the process that imported this and the one that runs."""

    count = 0

    def add(self) -> None:
        self.count += 1


class _Now:
    """`stepping`: the optimizer whose step runs, if it is shown."""

    stepping: weakref.ref[Optimizer] | None = None


_now = _Now()
next_sequence: Callable[[], int] = torch.autograd._get_sequence_nr  # pyright: ignore
"""The number that the next node of this thread's graphs gets."""


def is_stepping(optimizer: Optimizer) -> bool:
    """Whether the last step that was shown is one of this optimizer, and has not ended."""
    return _now.stepping is not None and _now.stepping() is optimizer


_forks = _Forks()  # os.getpid() in every step would be a system call
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forks.add)


@contextmanager
def steps_shown(
    *watching: Steps,
    gate: Gate | None = None,
    unless: Callable[[], bool] = lambda: False,
    take_backward: Callable[..., bool] | None = None,
) -> Iterator[None]:
    """Show each of `watching` the optimizer steps of this thread, and the scalars on which
    `backward` is called. Not shown: what other threads and forked processes do, what torch
    compiles, what a CUDA graph captures, and what runs while `gate` is shut or `unless` returns
    True. `take_backward` gets the calls of `backward` that are not inside another, while the gate
    is open, and returns whether it has run them."""
    gate = gate or Gate()
    get_ident, is_compiling = threading.get_ident, torch.compiler.is_compiling
    thread, forks = get_ident(), _forks.count
    stepping: list[Steps] = []  # those that the step that runs now is shown
    saw_loss = [each.saw_loss for each in watching if _has(each, "saw_loss")]
    is_open = True
    # The result of the last GradScaler.scale, and the loss that was scaled.
    scaled: weakref.ref[Tensor] | None = None
    unscaled: Tensor | None = None

    is_shown = False  # the step that runs now
    may_capture = torch.backends.cuda.is_built()

    def is_seen() -> bool:
        return (
            is_open
            and not unless()
            and get_ident() == thread
            and not is_compiling()
            and _forks.count == forks
        )

    # `args` of both begins with the optimizer.
    def before(optimizer: Optimizer, args: tuple, kwargs: dict[str, Any]) -> None:
        nonlocal is_shown
        if gate.is_shut:
            known = gate.known
            met = None if known is None else known.get(id(optimizer))
            if known is None or (met is not None and met() is optimizer):
                return
        if get_ident() != thread:
            return
        if gate.is_shut:
            gate.open()
        is_shown = is_seen() and not (
            may_capture and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
        )
        if is_shown:
            has_closure = (args[1] if len(args) > 1 else kwargs.get("closure")) is not None
            _now.stepping = weakref.ref(optimizer)
            stepping.clear()
            now_s = perf_counter()
            for each in watching:
                if now_s >= each.shown_from_s:
                    stepping.append(each)
                    each.before_step(optimizer, has_closure)

    def after(optimizer: Optimizer, args: tuple, kwargs: dict[str, Any]) -> None:
        if get_ident() != thread:
            return
        if gate.is_shut:
            if gate.known is not None:
                gate.made, gate.backwards_before = next_sequence(), gate.backwards
            if perf_counter() < gate.due_s and gate.steps + 1 < gate.due_step:
                gate.steps += 1
                return
        elif is_shown and _forks.count == forks:
            has_closure = (args[1] if len(args) > 1 else kwargs.get("closure")) is not None
            _now.stepping = None
            for each in stepping:
                each.after_step(optimizer, has_closure)
        if gate.ended is not None and _forks.count == forks:
            gate.ended(optimizer)

    run_backward = Patch(torch.autograd, "backward")
    scale = Patch(torch.amp.GradScaler, "scale")

    def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
        if gate.is_shut:
            if get_ident() == thread:
                gate.backwards += 1
            return run_backward.original(tensors, *args, **kwargs)
        if is_seen():
            gate.backwards += 1
            given = tensors if isinstance(tensors, list | tuple) else (tensors,)
            for tensor in given:
                if isinstance(tensor, Tensor) and tensor.numel() == 1:
                    is_scaled = scaled is not None and scaled() is tensor
                    loss = unscaled if is_scaled and unscaled is not None else tensor
                    loss = _without_graph(loss)
                    for tell in saw_loss:
                        tell(loss, tensor)
        is_taken = (
            take_backward is not None
            and is_open
            and get_ident() == thread
            and _forks.count == forks
            and is_outermost()
            and take_backward(tensors, *args, **kwargs)
        )
        return None if is_taken else run_backward.original(tensors, *args, **kwargs)

    def noted_scale(scaler: Any, outputs: Any) -> Any:
        nonlocal scaled, unscaled
        result = scale.original(scaler, outputs)
        if not gate.is_shut and isinstance(outputs, Tensor) and is_seen():
            scaled, unscaled = weakref.ref(result), _without_graph(outputs)
        return result

    for hook in (before, after, noted_scale):
        never_compiled(hook)
    only_calls_compiled(backward)
    handles = (register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after))
    run_backward.wrap(backward)
    scale.wrap(noted_scale)
    gate.patches = [run_backward, scale]
    if not gate.is_shut:
        gate.open()
    try:
        yield
    finally:
        is_open, unscaled = False, None  # the user's code may have kept a wrapper
        for handle in handles:
            handle.remove()
        gate.patches = []  # another thread may open it still
        for patch in (run_backward, scale):
            patch.take_off()


def is_outermost() -> bool:
    """Whether a backward that begins now is the user's: it is not inside another, nor does torch
    compile it."""
    return not torch.compiler.is_compiling() and torch._C._current_graph_task_id() == -1


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
