"""The calls of torch while a model runs, with the module and the line that each comes from."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple, Protocol

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from ...recording.compiled import (
    add_forward_hook,
    add_forward_pre_hook,
    only_calls_compiled,
    own_modules,
)
from ...system.user_files import GENERATED, is_user_file


class Call(NamedTuple):
    """One call, by its name in Python. `module` is the path of the innermost module that runs, ""
    the whole model, None outside of it. `file` and `line` are those of the user's code; without
    them, `source` is the line of a forward that torch.fx wrote, if it is one."""

    name: str
    module: str | None
    file: str = ""
    line: int = 0
    source: str = ""

    def __str__(self) -> str:
        if self.module is None:
            where = "in the loss"
        elif self.module:
            where = f"in `{self.module}`"
        else:
            where = f"in `{self.source}`" if self.source else "in the model"
        if self.line:
            where += f" ({self.file}, line {self.line})"
        return f"`{self.name}` {where}"


class Saw(Protocol):
    """Is told of a call that has returned; `call()` says where it comes from."""

    def __call__(
        self,
        call: Callable[[], Call],
        func: Callable,
        args: tuple,
        kwargs: dict[str, Any],
        result: Any,
    ) -> None: ...


@contextmanager
def seen_calls(model: nn.Module, saw: Saw, outermost: FrameType | None = None) -> Iterator[None]:
    """In this context `saw` is told of each call of torch; of those inside a function of torch.nn
    it is not told. Lines are those of frames inside of `outermost`, by default the caller's."""
    running: list[str] = []
    outermost = outermost or sys._getframe(2)  # beyond this frame and contextlib's
    with running_modules(model, running), _Mode(running, saw, outermost):
        yield


@contextmanager
def running_modules(model: nn.Module, running: list[str]) -> Iterator[None]:
    """In this context `running` has the paths of the modules whose forward runs, the innermost
    last."""
    hooks = []
    for path, module, _ in own_modules(model):
        hooks += [
            add_forward_pre_hook(module, lambda *_, path=path: running.append(path)),
            add_forward_hook(module, lambda *_: _end(running), always_call=True),
        ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _end(running: list[str]) -> None:
    running.pop()


class _Mode(TorchFunctionMode):
    def __init__(self, running: list[str], saw: Saw, outermost: FrameType) -> None:
        super().__init__()
        self._running, self._saw, self._outermost = running, saw, outermost

    @only_calls_compiled
    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        frame, running = sys._getframe(1), self._running

        def call() -> Call:
            module = running[-1] if running else None
            return Call(name_of(func), module, *place_of_call(frame, self._outermost))

        self._saw(call, func, args, kwargs, result)
        return result


def name_of(func: Callable) -> str:
    """As it is written in Python: `torch.log`, `F.relu`, `Tensor.div`."""
    name = torch.overrides.resolve_name(func) or getattr(func, "__name__", str(func))
    return name.replace("torch.nn.functional.", "F.").replace("torch.Tensor.", "Tensor.")


def place_of_call(frame: FrameType | None, outermost: FrameType | None) -> tuple[str, int, str]:
    """File and line of the innermost frame of the user's code, or the line of a forward that
    torch.fx wrote."""
    found = frame_of_call(frame, outermost)
    if found is None:
        return "", 0, ""
    file = found.f_code.co_filename
    if is_user_file(file):
        return file, found.f_lineno, ""
    return "", 0, linecache.getline(file, found.f_lineno).partition(";")[0].strip()


def frame_of_call(frame: FrameType | None, outermost: FrameType | None) -> FrameType | None:
    """The innermost frame of the user's code, else of a forward that torch.fx wrote."""
    generated = None
    while frame is not None and frame is not outermost:
        file = frame.f_code.co_filename
        if is_user_file(file):
            return frame
        if generated is None and file.startswith(GENERATED):
            generated = frame
        frame = frame.f_back
    return generated
