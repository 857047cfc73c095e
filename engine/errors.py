"""Exceptions in words: what a room raises, and how any exception becomes an ErrorReport."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from .protocol import ErrorReport, Problem

MAX_TEXT = 20_000
"""Longest message or traceback that is sent, in characters."""


class LabError(Exception):
    """Something the user can put right: what happened, what to try, and where.

    `problems` are the blocks at fault, if any.
    """

    def __init__(self, message: str, hint: str = "", problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(message)
        self.hint = hint
        self.problems = problems


def error_report(
    error: BaseException, is_user_file: Callable[[str], bool] = lambda filename: False
) -> ErrorReport:
    """The exception as plain data.

    `is_user_file` tells the user's own source files by name: `line` is that of the innermost
    frame in one of them (or of a syntax error there), and the traceback starts with the first.
    A LabError has said it all and carries no traceback.
    """
    if isinstance(error, LabError):
        return ErrorReport(type="LabError", message=_clip(str(error)), hint=error.hint)
    frames = traceback.extract_tb(error.__traceback__)
    own = [i for i, frame in enumerate(frames) if is_user_file(frame.filename)]
    line = frames[own[-1]].lineno if own else None
    if isinstance(error, SyntaxError) and is_user_file(error.filename or ""):
        line = error.lineno
        own = [len(frames)]  # no frame of the user's ran
    shown = frames[own[0] :] if own else frames
    text = "".join(
        (["Traceback (most recent call last):\n", *traceback.format_list(shown)] if shown else [])
        + list(traceback.TracebackException.from_exception(error).format_exception_only())
    )
    return ErrorReport(
        type=type(error).__name__,
        message=_clip(_message(error)),
        line=line,
        traceback=_clip(text),
    )


def _message(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return error.msg or "invalid syntax"
    try:
        return str(error)
    except Exception as broken:  # an exception of the user's whose __str__ raises
        return f"<its message could not be made: {type(broken).__name__}>"


def _clip(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    half = MAX_TEXT // 2
    return f"{text[:half]}\n... {len(text) - MAX_TEXT:,} characters left out ...\n{text[-half:]}"
