"""`breakpoint()` in the user's code, and steps from line to line."""

from __future__ import annotations

import os
import pdb
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch

from ..recording.user_files import UsersFrames, is_user_file
from ..tensors.error_help import NO_DEBUGGER

Stop = Callable[[FrameType], None]
"""Holds the code in this frame of the user's."""


@contextmanager
def breakpoints_told() -> Iterator[None]:
    """While this context is open, `breakpoint()` does not stop. The first one says what to use
    instead. A hook of the user's own stays."""
    told = False

    def tell(*args: object, **kwargs: object) -> None:
        nonlocal told
        if not told:
            line = sys._getframe(1).f_lineno
            print(f"breakpoint() in line {line} did not stop. {NO_DEBUGGER}", file=sys.stderr)
        told = True

    with _hooked(tell):
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

    set_trace = pdb.set_trace
    with _hooked(hold):
        pdb.set_trace = hold
        try:
            yield
        finally:
            if pdb.set_trace is hold:
                pdb.set_trace = set_trace


@contextmanager
def _hooked(hook: Callable[..., None]) -> Iterator[None]:
    """Have `hook` for `breakpoint()`, unless the user has a hook."""
    before = sys.breakpointhook
    if before is sys.__breakpointhook__:
        sys.breakpointhook = hook
    try:
        yield
    finally:
        if sys.breakpointhook is hook:
            sys.breakpointhook = before


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
