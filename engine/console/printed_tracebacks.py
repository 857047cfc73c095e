"""Tracebacks that the user's code prints, logs or reads show no frames of this program."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import Any

from ..system.errors import is_ours, without_ours

_READ = "_extract_from_extended_frame_gen"
"""The method by which all of Python's `traceback` reads frames."""


@contextmanager
def tracebacks_of_users_frames() -> Iterator[None]:
    """While this context is open, `traceback` leaves out the frames of this program among the
    user's, and those that this context was entered under. What begins with a frame of this program
    stays whole: an error of ours that is logged."""
    known = traceback.StackSummary.__dict__.get(_READ)
    if not isinstance(known, classmethod) or hasattr(known.__func__, "leaves_out"):
        yield  # code inside other code: a cell while a run is paused
        return

    outer = _names_under(sys._getframe(1))

    @wraps(known.__func__)
    def read(kind: type, *args: Any, **kwargs: Any) -> traceback.StackSummary:
        frames = known.__func__(kind, *args, **kwargs)
        count = _same(outer, frames[::-1])  # of a stack, the innermost is read first
        if count:
            frames[:] = without_ours(frames[::-1][count:])[::-1]
        elif frames and not is_ours(frames[0].filename):
            frames[:] = without_ours(frames)
        return frames

    read.leaves_out = True  # pyright: ignore[reportAttributeAccessIssue]
    ours = classmethod(read)
    setattr(traceback.StackSummary, _READ, ours)
    if threading.excepthook is threading.__excepthook__:  # which reads frames by itself
        threading.excepthook = _print_of_thread
    try:
        yield
    finally:
        if threading.excepthook is _print_of_thread:
            threading.excepthook = threading.__excepthook__
        if traceback.StackSummary.__dict__.get(_READ) is ours:
            setattr(traceback.StackSummary, _READ, known)


def _names_under(frame: FrameType | None) -> list[tuple[str, str]]:
    """The files and functions that run, the outermost first."""
    names = []
    while frame is not None:
        names.append((frame.f_code.co_filename, frame.f_code.co_name))
        frame = frame.f_back
    return names[::-1]


def _same(names: list[tuple[str, str]], frames: list[traceback.FrameSummary]) -> int:
    """The number of frames that both begin with."""
    pairs = enumerate(zip(names, frames, strict=False))
    other = (i for i, (name, frame) in pairs if name != (frame.filename, frame.name))
    return next(other, min(len(names), len(frames)))


def _print_of_thread(ended: threading.ExceptHookArgs) -> None:
    """As Python prints what ended a thread."""
    error = ended.exc_value
    if error is None or isinstance(error, SystemExit):
        return
    name = threading.get_ident() if ended.thread is None else ended.thread.name
    text = "".join(traceback.format_exception(error))
    print(f"Exception in thread {name}:\n{text}", end="", file=sys.stderr, flush=True)
