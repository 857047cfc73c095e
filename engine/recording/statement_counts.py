"""The user's lines as they run: how often each statement has begun, and whom that is told."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Protocol

from .statements import Statement, Statements
from .user_files import is_user_file

MAX_TURNS = 1_000
"""Times of a statement after which its beginning is not told any more: a loop of millions of turns
shall not take much longer."""


class Watcher(Protocol):
    """Is told of the lines of the user's code. One that it has made no `call` for ends untold."""

    def begins(self, frame: FrameType, at: Running) -> None: ...
    def ends(self, frame: FrameType, at: Running, goes_on: int) -> None:
        """The frame goes on at another line."""

    def raises(self, frame: FrameType, at: Running, error: BaseException) -> None:
        """What it raises may be caught in this frame."""

    def leaves(self, frame: FrameType, at: Running, value: Any) -> None:
        """The frame returns, yields or has raised."""


class Turns:
    """Counts while it is entered, as a context manager, in frames that begin then; tells
    `watcher`, where there is one.

    It listens to Python's line events (`sys.settrace`) in the user's own frames, of files whose
    text there is. Where a debugger
    or a coverage tool listens already, that one goes on, and turns are not known (0).
    """

    def __init__(self, files: Callable[[str], bool] = is_user_file) -> None:
        self.watcher: Watcher | None = None
        self._is_user_file = files
        self._files: dict[str, _File | None] = {}
        self._listen = self._make_listener()
        self._listens = self._is_on = False
        self.was_cut = False
        """Python has stopped telling for a while: it does where the stack is full, or the code has
        asked it to."""

    def __enter__(self) -> Turns:
        self._listens = sys.gettrace() is None
        self.was_cut = False
        self.listen(True)
        return self

    def __exit__(self, *error: Any) -> None:
        self.listen(False)

    def listen(self, on: bool) -> None:
        """Listen on, or not while what runs is none of the user's: each call costs less then."""
        if not self._listens:
            return
        now = sys.gettrace()
        self.was_cut |= self._is_on and now is not self._listen
        if now is None or now is self._listen:
            sys.settrace(self._listen if on else None)
            self._is_on = on

    def of(self, frame: FrameType) -> int:
        """Which time the statement runs that `frame` stands in: 1 for the first; 0 if unknown."""
        at = running(frame)
        return 0 if at is None else at.turn

    def _make_listener(self) -> Callable[[FrameType, str, Any], Any]:
        """What Python calls at each call of a function, torch's own and ours included: these it
        has to let go quickly."""
        files, file_of = self._files, self._file

        def listen(frame: FrameType, event: str, arg: Any) -> Running | None:
            name = frame.f_code.co_filename
            file = files[name] if name in files else file_of(name)
            if file is None:
                return None
            known = frame.f_trace
            if isinstance(known, Running):  # a generator goes on
                return known
            return Running(file, self.watcher)

        return listen

    def _file(self, name: str) -> _File | None:
        is_read = self._is_user_file(name) and bool(linecache.getlines(name))
        file = self._files[name] = _File(name) if is_read else None
        return file


def running(frame: FrameType) -> Running | None:
    """What listens to this frame, if its lines are listened to."""
    at = frame.f_trace
    return at if isinstance(at, Running) else None


class _File:
    """How often each statement of a file began (apart for those inside a comprehension or lambda,
    which have code of their own)."""

    def __init__(self, name: str) -> None:
        self.counts: dict[tuple[CodeType, int], int] = {}
        self.statements = Statements(name)


class Running:
    """Listens to one frame. `turn` counts the statement that runs in it.

    `call` and `before` are the watcher's to set: the recorded call of the line, None where there
    is none, and the values that its names had when it began.
    """

    __slots__ = (
        "_file", "_instruction", "_line", "_statement", "_watcher", "before", "call", "turn",
    )  # fmt: skip

    def __init__(self, file: _File, watcher: Watcher | None) -> None:
        self._file = file
        self._watcher = watcher
        self._line = self._statement = self._instruction = -1
        self.turn = 0
        self.call: Any = None
        self.before: dict[str, Any] = {}

    @property
    def statement(self) -> Statement:
        """The one that runs."""
        return self._file.statements.at(self._statement)

    def first_line(self, line: int) -> int:
        """Where the statement over a line of this file begins."""
        return self._file.statements.first_line(line)

    def has_gone_on(self, frame: FrameType) -> bool:
        """Whether the frame stands in another statement than Python told last: `turn` is of that
        one from now on."""
        line: int | None = frame.f_lineno  # there are instructions of no line
        if line is None or self.first_line(line) == self._statement:
            return False
        self._stand_at(frame, self.first_line(line))
        return True

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Running:
        try:
            if event == "line":
                self._at_line(frame)
            elif self.call is not None and self._watcher is not None:
                if event == "exception":
                    self._watcher.raises(frame, self, arg[1])
                elif event == "return":
                    self._watcher.leaves(frame, self, arg)
        except RecursionError:  # the user's code has room yet, we have none: it goes on unwatched
            self.call, self.before = None, {}
        return self

    def _at_line(self, frame: FrameType) -> None:
        line, instruction = frame.f_lineno, frame.f_lasti
        statement = self._file.statements.first_line(line)
        # A statement over several lines goes back and forth among them, but only a loop jumps
        # back in the code, or comes to the line that it is at.
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
