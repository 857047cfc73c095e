"""What a script calls: `watch`, `log`, `hold` and `backward`. Without a window they cost next to
nothing, and nothing that goes wrong in them reaches the user's code."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from ..loops.backward_calls import backward_calls
from ..loops.logged import histogram as histogram
from ..loops.logged import image as image
from ..system.program import version
from ..system.user_files import variables_of
from .figures import Found
from .opening import has_display, open_window
from .telling import shielded
from .watching import Watching

_watching: Watching | None = None


def watch(
    model: nn.Module | None = None,
    optimizer: Optimizer | None = None,
    *,
    name: str = "",
    host: str = "",
    port: int = 0,
    wait: bool = False,
    spawn: bool = False,
    discover: bool = False,
) -> None:
    """Let windows attach to this process, and show them the model and the optimizer by name.

    `name` is the model's there, and the process's if this is the first call (else those of the
    variable, and of the script or notebook). With `host` it listens on TCP, on the loopback
    interface, for `port`. `spawn` opens a window, if there is a display; `wait`: go on when one has
    attached.
    `discover` finds the models of the optimizers that step. Call it in the thread that trains:
    steps in other threads are not drawn. The objects are not kept alive.
    """
    global _watching
    with shielded("watch"):
        watching, is_new = _watching, False
        if watching is None or watching.about.pid != os.getpid():
            is_new = True
            watching = _watching = Watching(name, version(), host, port)
        if discover:
            watching.discover()
        variables = variables_of(sys._getframe(1))
        if model is not None:
            watching.name(name or _name_of(model, variables) or "model", model)
        if optimizer is not None:
            watching.name(_name_of(optimizer, variables) or "optimizer", optimizer)
        if is_new:  # a window that comes is told what is watched
            _say_where(watching)
            if spawn and has_display():
                open_window(*_where(watching))
    if wait and _watching is not None:
        _watching.wait()


def log(step: int | None = None, **figures: Any) -> None:
    """Draw these figures: numbers, or tensors of one element. Of a larger tensor, and of
    `histogram(tensor)`, the elements are drawn over the steps; of `image(tensor)` the images are
    shown.
    What is logged after `optimizer.step()` is drawn at that step, and what is logged before it at
    the step that comes, as this process counts them; or both at `step`, unless these figures were
    drawn further on.
    Of a number that is logged in each of many short steps, that of some steps and the last one are
    drawn; on other devices than the CPU, the last one may not be.
    In a script in which no optimizer of torch's steps, a call that logs a figure again begins the
    next step: number `step`, if that is larger than the one before. Without such calls its steps
    are not drawn.
    """
    watching = _watching
    if watching is None:
        return
    if watching.session is not None or not watching.has_stepped:
        watching.log(figures, step)


def hold(when: object = True) -> None:
    """Hold the script here while a window looks at its variables, if one is attached. `when` is a
    condition, or a function that gives one. Only the thread that has called `watch` is held."""
    watching = _watching
    if watching is None or not watching.may_hold():
        return
    with shielded("hold"):
        if bool(when() if callable(when) else when):
            watching.hold(sys._getframe(1))


class backward:
    """`with lab.backward(loss):` runs `loss.backward()`, and lets the window step it if one is
    attached. If the body calls `loss.backward()` itself, with arguments of its own, that one is
    stepped."""

    def __init__(self, loss: Tensor, **arguments: Any) -> None:
        self._loss, self._arguments = loss, arguments
        self._stack = ExitStack()

    def __enter__(self) -> None:
        self._has_run = False
        if _watching is not None:
            self._stack.enter_context(_watching.stepping_backward())
        self._stack.enter_context(backward_calls(self._note))

    def _note(self, tensors: Any, *args: Any, **kwargs: Any) -> bool:
        roots = tensors if isinstance(tensors, list | tuple) else (tensors,)
        self._has_run |= any(root is self._loss for root in roots)
        return False

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with self._stack:
            if kind is None and not self._has_run:
                self._loss.backward(**self._arguments)


def _newest() -> Mapping[str, Tensor]:
    session = None if _watching is None else _watching.session
    return {} if session is None else session.steps.logged.newest()


logged = Found(_newest)
"""Copies of the newest tensors that were logged while a window is attached, by name."""


def tell_exit_code(code: int) -> None:
    """This process is about to end with this code."""
    if _watching is not None:
        _watching.exit_code = code


def _say_where(watching: Watching) -> None:
    print("Tensor Lab: tensorlab attach", *_where(watching), file=sys.stderr)


def _where(watching: Watching) -> tuple[object, ...]:
    """What `tensorlab attach` is given."""
    listener = watching.listener
    return (listener.address, "--key", listener.key) if listener.key else (watching.about.pid,)


def _name_of(thing: object, variables: Mapping[str, Any]) -> str:
    return next((name for name, value in variables.items() if value is thing), "")
