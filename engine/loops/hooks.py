"""How torch shows the optimizer steps of the user's own code, and the losses before them."""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
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

from ..recording.compiled import never_compiled, only_calls_compiled
from ..system.private_torch import (
    current_graph_task_id,
    disable_current_modes,
    foreach_norm,
    len_torch_dispatch_stack,
    len_torch_function_stack,
    next_sequence,
    peek_interpreter_stack,
)
from .step_losses import Root, StepLosses, made


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
    `due_step`: then, as while it is open, `ended(optimizer, is_missed)` is called, which counts its
    step itself. `is_missed`: it was not shown, since it began while the gate was shut. `known`, if
    given, has optimizers by their ids: the first step of another one opens the gate. Hooks read it
    before they call anything: the code of a function is cold after a step of torch, and costs many
    times what it costs in a loop of its own. So torch's functions are replaced while it is open,
    and on until `rest`.
    """

    def __init__(
        self,
        is_shut: bool = False,
        ended: Callable[[Optimizer, bool], None] | None = None,
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
        self.patch()

    def patch(self) -> None:
        """Replace torch's functions, whether it is open or not. Any thread may."""
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
    losses: StepLosses | None = None,
) -> Iterator[None]:
    """Show each of `watching` the optimizer steps of this thread, and the scalars on which
    `backward` is called. Not shown: what other threads and forked processes do, what torch
    compiles, what a CUDA graph captures, and what runs while `gate` is shut or `unless` returns
    True. `take_backward` gets the calls of `backward` that are not inside another, while the gate
    is open, and returns whether it has run them. `losses` follows all steps and calls of
    `backward`, while the gate is shut as well."""
    gate = gate or Gate()
    get_ident, is_compiling = threading.get_ident, torch.compiler.is_compiling
    thread, forks = get_ident(), _forks.count
    # The steps that run now and are shown: the ids of their optimizers, and whom they are shown.
    stepping: list[tuple[int, list[Steps]]] = []
    saw_loss = [each.saw_loss for each in watching if _has(each, "saw_loss")]
    is_open = True
    # The result of the last GradScaler.scale, the loss that was scaled, and its value.
    scaled: weakref.ref[Tensor] | None = None
    named: weakref.ref[Tensor] | None = None
    unscaled: Tensor | None = None

    may_capture = torch.backends.cuda.is_built()

    def is_capturing() -> bool:
        return (
            may_capture and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
        )

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
        if gate.is_shut:
            known = gate.known
            met = None if known is None else known.get(id(optimizer))
            if known is None or (met is not None and met() is optimizer):
                return
        if get_ident() != thread:
            return
        if gate.is_shut:
            gate.open()
        if is_seen() and not is_capturing():
            has_closure = (args[1] if len(args) > 1 else kwargs.get("closure")) is not None
            _now.stepping = weakref.ref(optimizer)
            now_s = perf_counter()
            shown = [each for each in watching if now_s >= each.shown_from_s]
            stepping.append((id(optimizer), shown))
            for each in shown:
                each.before_step(optimizer, has_closure)

    def after(optimizer: Optimizer, args: tuple, kwargs: dict[str, Any]) -> None:
        if get_ident() != thread:
            return
        shown = None  # what has raised in its step is on the list, too
        while stepping and shown is None:
            key, watched = stepping.pop()
            shown = watched if key == id(optimizer) else None
        is_followed = losses is not None and losses.is_on
        is_counted = gate.is_shut and not is_followed
        if _forks.count != forks or (shown is None and not is_counted and not is_seen()):
            return
        if losses is not None and is_followed:
            losses.end_step(optimizer, gate.steps + 1)
        if shown is not None:
            has_closure = (args[1] if len(args) > 1 else kwargs.get("closure")) is not None
            _now.stepping = None
            for each in shown:
                each.after_step(optimizer, has_closure)
        else:
            if gate.known is not None:
                gate.made, gate.backwards_before = next_sequence(), gate.backwards
            if gate.is_shut and perf_counter() < gate.due_s and gate.steps + 1 < gate.due_step:
                gate.steps += 1
                return
        if gate.ended is not None:
            gate.ended(optimizer, shown is None)

    run_backward = Patch(torch.autograd, "backward")
    scale = Patch(torch.amp.GradScaler, "scale")

    def root_of(tensor: Any, gradient: Tensor | None) -> Root:
        is_scaled = scaled is not None and scaled() is tensor
        if not is_scaled or unscaled is None:
            return Root(tensor, tensor, gradient)
        users = None if named is None else named()
        return Root(unscaled, tensor if users is None else users, gradient)

    def follow(tensors: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        if losses is None or not is_outermost() or is_capturing():
            return
        gradients = args[0] if args else kwargs.get("grad_tensors")
        roots = tensors if isinstance(tensors, list | tuple) else (tensors,)
        if not isinstance(gradients, list | tuple):
            gradients = (gradients,) * len(roots)
        with quiet() if _has_modes() else nullcontext():
            found = [root_of(*each) for each in zip(roots, gradients, strict=False)]
            losses.begin_backward(found, is_named=not gate.is_shut)

    def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
        is_shown = is_seen()
        if is_shown or (gate.is_shut and get_ident() == thread):
            gate.backwards += 1
        if is_shown and not gate.is_shut:
            given = tensors if isinstance(tensors, list | tuple) else (tensors,)
            for tensor in given:
                if isinstance(tensor, Tensor) and tensor.numel() == 1:
                    loss = _without_graph(root_of(tensor, None).scalar)
                    for tell in saw_loss:
                        tell(loss, tensor)
        if is_shown:
            follow(tensors, args, kwargs)
        has_failed = True
        try:
            is_taken = (
                take_backward is not None
                and not gate.is_shut
                and is_open
                and get_ident() == thread
                and _forks.count == forks
                and is_outermost()
                and take_backward(tensors, *args, **kwargs)
            )
            if not is_taken:
                run_backward.original(tensors, *args, **kwargs)
            has_failed = False
        finally:
            if is_shown and losses is not None and is_outermost():
                with quiet() if _has_modes() else nullcontext():
                    losses.end_backward(has_failed)

    def noted_scale(scaler: Any, outputs: Any) -> Any:
        nonlocal scaled, named, unscaled
        result = scale.original(scaler, outputs)
        if isinstance(outputs, Tensor) and is_seen():
            scaled, named = weakref.ref(result), weakref.ref(outputs)
            unscaled = _without_graph(outputs)
        return result

    def noted_init(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
        make.original(optimizer, *args, **kwargs)
        made.add(optimizer)
        if losses is not None and is_open and get_ident() == thread:
            losses.know([optimizer])

    for hook in (before, after, noted_scale, noted_init):
        never_compiled(hook)
    only_calls_compiled(backward)
    handles = (register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after))
    run_backward.wrap(backward)
    scale.wrap(noted_scale)
    make = Patch(Optimizer, "__init__")
    make.wrap(noted_init)
    make.put_on()
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
        for patch in (run_backward, scale, make):
            patch.take_off()


def is_outermost() -> bool:
    """Whether a backward that begins now is the user's: it is not inside another, nor does torch
    compile it."""
    return not torch.compiler.is_compiling() and current_graph_task_id() == -1


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
        norms = list(foreach_norm(gradients))
        scale = getattr(optimizer, "grad_scale", None)  # a fused step unscales them itself
        return norms if scale is None else [norm / scale.to(norm.device) for norm in norms]
    except (RuntimeError, NotImplementedError, TypeError):  # a tensor subclass may have none
        return [torch.tensor(float("nan"))]


@contextmanager
def quiet() -> Iterator[None]:
    """In this context torch builds no graph, and the user's modes do not see what runs."""
    with torch.DisableTorchFunction(), torch.no_grad():
        if len_torch_dispatch_stack() == 0:
            yield
        else:
            with disable_current_modes():
                yield


def is_out_of_reach() -> bool:
    """Whether torch compiles, transforms a function (vmap, grad), or captures a CUDA graph."""
    return (
        torch.compiler.is_compiling()
        or peek_interpreter_stack() is not None
        or (torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())
    )


def _without_graph(tensor: Tensor) -> Tensor:
    if type(tensor) is Tensor and not len_torch_function_stack():
        return tensor.detach()
    with torch.DisableTorchFunction():
        return tensor.detach()


def _has_modes() -> bool:
    return bool(len_torch_function_stack() or len_torch_dispatch_stack())


def _has(steps: Steps, name: str) -> bool:
    return getattr(type(steps), name) is not getattr(Steps, name)
