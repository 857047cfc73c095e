"""LabError, which rooms raise; CodeExit, in which an exit of the user's code is raised; and
ErrorReport, into which any exception is turned."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from traceback import FrameSummary, StackSummary, TracebackException

from ..project.problems import Problem
from ..protocol import ErrorReport

MAX_TEXT = 20_000
"""The longest message or traceback that is sent, in characters."""


_MODULE = os.path.join("torch", "nn", "modules", "module.py")
"""The end of the path of the file whose code calls modules."""
_OUR_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class LabError(Exception):
    """An error that the user can correct: what happened, what to try, and where.

    `problems` are those of the blocks at fault, if any.
    """

    def __init__(self, message: str, hint: str = "", problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(message)
        self.hint = hint
        self.problems = problems


class CodeExit(Exception):
    """The user's code raised what ends a process, `left_by`: SystemExit, or another BaseException
    that is neither an Exception nor an interrupt."""

    def __init__(self, left_by: BaseException) -> None:
        super().__init__(_words_of_exit(left_by)[0])
        self.left_by = left_by
        self.hint = _words_of_exit(left_by)[1]

    @property
    def is_success(self) -> bool:
        """Whether it is an exit() without a code, or with code 0."""
        return isinstance(self.left_by, SystemExit) and self.left_by.code in (None, 0)


def as_exception(error: BaseException) -> Exception:
    """The error, in a CodeExit if it is one that ends a process."""
    return error if isinstance(error, Exception) else CodeExit(error)


def _words_of_exit(error: BaseException) -> tuple[str, str]:
    """What happened, and what to try."""
    if not isinstance(error, SystemExit):
        name = type(error).__name__
        return f"{error}" or f"The code raised {name}.", f"Only {name} left the code: it is over."
    usage = _usage_error(error)
    if usage:
        return f"The code wants command-line arguments, and has none here.\n{usage}", (
            "Give its arguments default values, call parse_args with a list of them,"
            ' parse_args(["--name", "value"]), or move it under `if __name__ == "__main__":`.'
        )
    if isinstance(error.code, str):
        return error.code, "The code ended itself by sys.exit(…) with this message."
    code = "" if error.code is None else repr(error.code)
    return f"The code ended itself: sys.exit({code}).", (
        "Take the call of exit(), quit() or sys.exit() out, or move it under"
        ' `if __name__ == "__main__":`. What it printed may say why: a program for the command line'
        " ends so when arguments are missing."
    )


def _usage_error(error: SystemExit) -> str:
    """The usage text and the message of the argparse parser that has raised this; else ""."""
    step = error.__traceback__
    while step is not None:
        frame = step.tb_frame
        parser = frame.f_locals.get("self") if frame.f_code.co_name == "error" else None
        if isinstance(parser, argparse.ArgumentParser):
            usage = argparse.ArgumentParser.format_usage(parser)
            return f"{usage}{parser.prog}: error: {frame.f_locals.get('message', '')}"
        step = step.tb_next
    return ""


def error_report(
    error: BaseException, is_user_file: Callable[[str], bool] = lambda filename: False
) -> ErrorReport:
    """The exception as plain data.

    `is_user_file` tells by name whether a source file is the user's. `line` is that of the
    innermost frame in such a file, or of a syntax error in one; the traceback starts with the first
    such frame, or without one with the first call of a module. A LabError needs no traceback and
    has none.
    """
    exited = error if isinstance(error, CodeExit) else None
    error = error if exited is None else exited.left_by
    told = TracebackException.from_exception(error)
    line: int | None = None
    for frame in told.stack:
        if is_user_file(frame.filename):
            line = frame.lineno
    if isinstance(error, LabError):
        return ErrorReport("LabError", _clip(str(error)), error.hint, line)
    message = str(told) if exited is None else str(exited)
    if isinstance(error, SyntaxError):
        message = error.msg or "invalid syntax"
        if is_user_file(error.filename or ""):
            line = error.lineno
    _keep_users_frames(told, is_user_file, interrupted=isinstance(error, KeyboardInterrupt))
    return ErrorReport(
        type=type(error).__name__,
        message=_clip(message),
        hint="" if exited is None else exited.hint,
        line=line,
        traceback=_clip("".join(told.format())),
    )


def sendable(text: str) -> str:
    """`text` with lone surrogates escaped, which UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _keep_users_frames(
    told: TracebackException, is_user_file: Callable[[str], bool], interrupted: bool
) -> None:
    """Drop frames that are not about the user's code, also from the exceptions that led to this
    one.

    These are the frames before the user's first one, and frames of this program between the user's
    (the recorder calls torch on a cell's behalf). A model may be of torch's own layers alone: then
    its first call is where the user's code begins. After an interrupt, the frames after the user's
    last one are dropped too, since it may strike anywhere. A syntax error in a user's file comes
    before any frame of it.
    """
    chain, seen = [told], set()
    while chain:
        link = chain.pop()
        if id(link) in seen:
            continue
        seen.add(id(link))
        own = [i for i, frame in enumerate(link.stack) if is_user_file(frame.filename)]
        first = own[:1] or [i for i, f in enumerate(link.stack) if f.filename.endswith(_MODULE)][:1]
        if first:
            end = own[-1] + 1 if interrupted and own else None
            frames = link.stack[first[0] : end]
            link.stack = StackSummary.from_list(without_ours(frames))
        elif is_user_file(getattr(link, "filename", None) or ""):
            link.stack = StackSummary()
        chain += [cause for cause in (link.__cause__, link.__context__) if cause is not None]


def is_ours(filename: str) -> bool:
    """Whether a source file is this program's."""
    return filename.startswith(_OUR_FOLDER)


def without_ours(frames: list[FrameSummary]) -> list[FrameSummary]:
    """Drop frames of this program. A function of torch's in Python is called twice where the
    recorder sees it: it hands itself to `handle_torch_function`, which calls the recorder, which
    calls it again. The first call and `handle_torch_function` are dropped too."""
    kept: list[FrameSummary] = []
    for frame in frames:
        if not is_ours(frame.filename):
            kept.append(frame)
        elif kept and kept[-1].name == "handle_torch_function":
            del kept[-2:]
        elif kept and kept[-1].name == "_showwarnmsg":  # a filter makes the warning an error
            del kept[-1]
    return kept


def _clip(text: str) -> str:
    if len(text) > MAX_TEXT:
        half = MAX_TEXT // 2
        left_out = f"{len(text) - MAX_TEXT:,} characters left out"
        text = f"{text[:half]}\n... {left_out} ...\n{text[-half:]}"
    return sendable(text)
