"""`breakpoint()` in the user's code, and steps from line to line."""

from __future__ import annotations

import os
import pdb
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any

import torch

from ..system.user_files import UsersFrames, is_user_file
from ..tensors.error_help import NO_DEBUGGER

Hook = Callable[..., None]
Stop = Callable[[FrameType], None]
"""Holds the code in this frame of the user's."""


@contextmanager
def breakpoints_told() -> Iterator[None]:
    """While this context is open, `breakpoint()` does not stop. The first one says what to use
    instead. A hook that the user's code has set is not replaced."""
    told = False

    def tell(*args: object, **kwargs: object) -> None:
        nonlocal told
        if not told:
            line = sys._getframe(2).f_lineno
            print(f"breakpoint() in line {line} did not stop. {NO_DEBUGGER}", file=sys.stderr)
        told = True

    with _breakpoints.replaced(tell):
        yield


@contextmanager
def breakpoints_held(stop: Stop, thread: int | None = None) -> Iterator[None]:
    """While this context is open, `breakpoint()` and `pdb.set_trace()` in this thread, or in
    `thread`, call `stop`. A hook of the user's own stays."""
    thread, process = thread or threading.get_ident(), os.getpid()
    frames = UsersFrames()

    def hold(*args: object, **kwargs: object) -> None:
        frame = frames.innermost(2)
        if torch.compiler.is_compiling() or frame is None:
            return
        if threading.get_ident() != thread or os.getpid() != process:
            place = f"line {frame.f_lineno} of {frame.f_code.co_filename.strip('<>')}"
            print(
                f"breakpoint() in {place} did not stop: it holds the main thread only.",
                file=sys.stderr,
            )
            return
        stop(frame)

    with _breakpoints.replaced(hold), _set_traces.replaced(hold):
        yield


class _Replaced:
    """Replaces a function of a module by hooks of ours while there are any. Of several hooks the
    oldest is called. A function that the user's code has put there is not replaced if
    `kept(function)` is true."""

    def __init__(self, owner: ModuleType, name: str, kept: Callable[[object], bool]) -> None:
        self._owner, self._name, self._kept = owner, name, kept
        self._hooks: list[Hook] = []
        self._call = self._run  # one object, known again
        self._before: Hook = getattr(owner, name)

    @contextmanager
    def replaced(self, hook: Hook) -> Iterator[None]:
        now = getattr(self._owner, self._name)
        if now is not self._call and not self._kept(now):
            self._before = now
            setattr(self._owner, self._name, self._call)
        self._hooks.append(hook)
        try:
            yield
        finally:
            self._hooks.remove(hook)
            if not self._hooks and getattr(self._owner, self._name) is self._call:
                setattr(self._owner, self._name, self._before)

    def _run(self, *args: object, **kwargs: object) -> None:
        hook = self._hooks[0] if self._hooks else self._before  # the user's code may have kept it
        hook(*args, **kwargs)


_breakpoints = _Replaced(sys, "breakpointhook", lambda hook: hook is not sys.__breakpointhook__)
_set_traces = _Replaced(pdb, "set_trace", lambda function: False)


class LineSteps:
    """Calls `stop` before the next line that runs in a frame, or in those around it."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._frames: list[FrameType] = []
        self._file = ""

    def begin(self, frame: FrameType) -> None:
        """Stop before the next line of the user's code in this frame; when the frame ends, in the
        one that called it."""
        self.end()
        self._file = frame.f_code.co_filename
        around: FrameType | None = frame
        while around is not None:
            if is_user_file(around.f_code.co_filename):
                around.f_trace = self._trace
                self._frames.append(around)
            around = around.f_back
        sys.settrace(self._enter)

    def end(self) -> None:
        """Stop no more."""
        if self._frames:
            sys.settrace(None)
            for frame in self._frames:
                frame.f_trace = None
            self._frames.clear()

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        """The last expression of a cell has a frame of its own."""
        code = frame.f_code
        is_next = code.co_name == "<module>" and code.co_filename == self._file
        return self._trace if is_next else None

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event != "line":
            return self._trace
        self.end()
        self._stop(frame)
        return frame.f_trace
