"""Counts how often each statement of the user's code has started, and tells a watcher of lines."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Protocol

from ..system.user_files import is_user_file
from .statements import Statement, Statements

MAX_TURNS = 1_000
"""The watcher is called in this many turns of a statement only, so that a loop of millions of turns
takes little longer."""


class LineWatcher(Protocol):
    """An object that StatementCounts calls at the lines of the user's code: when a line begins and,
    if `at.call` was set then, when it ends."""

    def begins(self, frame: FrameType, at: FrameListener) -> None: ...
    def ends(self, frame: FrameType, at: FrameListener, goes_on: int) -> None:
        """A line has ended, and the frame continues at another line."""

    def raises(self, frame: FrameType, at: FrameListener, error: BaseException) -> None:
        """The line raised `error`, which this frame may still catch."""

    def leaves(self, frame: FrameType, at: FrameListener, value: Any) -> None:
        """The frame returns, yields or has raised."""


class StatementCounts:
    """A context manager: counts the statements of frames that begin inside it, and tells `watcher`.

    It listens to Python's line events (`sys.settrace`) in frames of the user's files, where the
    file's text can be read. Where a debugger or a coverage tool listens already, that one goes on
    listening, and counts are not known (0).
    """

    def __init__(self, files: Callable[[str], bool] = is_user_file) -> None:
        self.watcher: LineWatcher | None = None
        self._is_user_file = files
        self._files: dict[str, _File | None] = {}
        self._listen = self._make_listener()
        self._listens = self._is_on = False
        self.was_cut = False
        """Python has sent no line events for a while: the stack was full, or the code called
        sys.settrace."""

    def __enter__(self) -> StatementCounts:
        self._listens = sys.gettrace() is None
        self.was_cut = False
        self.listen(True)
        return self

    def __exit__(self, *error: Any) -> None:
        self.listen(False)

    def listen(self, on: bool) -> None:
        """Switch listening on or off. Off while our own code runs: its calls cost less then."""
        if not self._listens:
            return
        now = sys.gettrace()
        self.was_cut |= self._is_on and now is not self._listen
        if now is None or now is self._listen:
            sys.settrace(self._listen if on else None)
            self._is_on = on

    def of(self, frame: FrameType) -> int:
        """The turn of the statement that runs in `frame`: 1 for the first; 0 if not known."""
        at = listener_of(frame)
        return 0 if at is None else at.turn

    def _make_listener(self) -> Callable[[FrameType, str, Any], Any]:
        """The function for `sys.settrace`. Python calls it at every call, also inside torch, so it
        must return quickly for files that are not the user's."""
        files, file_of = self._files, self._file

        def listen(frame: FrameType, event: str, arg: Any) -> FrameListener | None:
            name = frame.f_code.co_filename
            file = files[name] if name in files else file_of(name)
            if file is None:
                return None
            known = frame.f_trace
            if isinstance(known, FrameListener):  # the frame of a generator, continued
                return known
            return FrameListener(file, self.watcher)

        return listen

    def _file(self, name: str) -> _File | None:
        is_read = self._is_user_file(name) and bool(linecache.getlines(name))
        file = self._files[name] = _File(name) if is_read else None
        return file


def listener_of(frame: FrameType) -> FrameListener | None:
    """The listener of this frame, if it has one."""
    at = frame.f_trace
    return at if isinstance(at, FrameListener) else None


class _File:
    """How often each statement of a file began. A comprehension or lambda has counts of its own."""

    def __init__(self, name: str) -> None:
        self.counts: dict[tuple[CodeType, int], int] = {}
        self.statements = Statements(name)


class FrameListener:
    """Listens to one frame. `turn` counts the statement that runs in it.

    The watcher sets `call`, the recorded call of the line (None: not recorded), and `before`, the
    values that the line's names had when it began.
    """

    __slots__ = (
        "_file", "_instruction", "_line", "_statement", "_watcher", "before", "call", "turn",
    )  # fmt: skip

    def __init__(self, file: _File, watcher: LineWatcher | None) -> None:
        self._file = file
        self._watcher = watcher
        self._line = self._statement = self._instruction = -1
        self.turn = 0
        self.call: Any = None
        self.before: dict[str, Any] = {}

    @property
    def statement(self) -> Statement:
        """The statement that runs."""
        return self._file.statements.at(self._statement)

    def first_line(self, line: int) -> int:
        """The line at which the statement that contains `line` begins."""
        return self._file.statements.first_line(line)

    def has_gone_on(self, frame: FrameType) -> bool:
        """Whether the frame has come to another statement since Python's last line event. If so,
        that statement is counted, and `turn` is its turn."""
        line: int | None = frame.f_lineno  # some instructions have no line
        if line is None or self.first_line(line) == self._statement:
            return False
        self._stand_at(frame, self.first_line(line))
        return True

    def __call__(self, frame: FrameType, event: str, arg: Any) -> FrameListener:
        try:
            if event == "line":
                self._at_line(frame)
            elif self.call is not None and self._watcher is not None:
                if event == "exception":
                    self._watcher.raises(frame, self, arg[1])
                elif event == "return":
                    self._watcher.leaves(frame, self, arg)
        except RecursionError:  # the stack is too deep for us, not for the user: stop watching
            self.call, self.before = None, {}
        return self

    def _at_line(self, frame: FrameType) -> None:
        line, instruction = frame.f_lineno, frame.f_lasti
        statement = self._file.statements.first_line(line)
        # Line events of one statement jump among its lines. It begins again only where the code
        # jumps back, or the same line comes again: that is a loop.
        begins = statement != self._statement or line == self._line
        if begins or instruction <= self._instruction:
            if self.call is not None and self._watcher is not None:
                self._watcher.ends(frame, self, statement)
            self._stand_at(frame, statement)
            if self.turn <= MAX_TURNS + 1 and self._watcher is not None:
                self._watcher.begins(frame, self)
        self._line, self._instruction = line, instruction

    def _stand_at(self, frame: FrameType, statement: int) -> None:
        counts, key = self._file.counts, (frame.f_code, statement)
        self.turn = counts[key] = counts.get(key, 0) + 1
        self._statement = statement
