"""How often each statement of the user's code has begun to run: the turns of loops."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from .user_files import is_user_file


class Turns:
    """Counts while it is entered, as a context manager, in frames that begin then.

    It listens to Python's line events (`sys.settrace`) in the user's own frames. Where a debugger
    or a coverage tool listens already, that one goes on, and turns are not known (0).
    """

    def __init__(self, files: Callable[[str], bool] = is_user_file) -> None:
        self._is_user_file = files
        self._files: dict[str, _File | None] = {}
        self._listen = self._make_listener()
        self._listens = False

    def __enter__(self) -> Turns:
        self._listens = sys.gettrace() is None
        if self._listens:
            sys.settrace(self._listen)
        return self

    def __exit__(self, *error: Any) -> None:
        if self._listens and sys.gettrace() is self._listen:
            sys.settrace(None)

    def listen(self, on: bool) -> None:
        """Listen on, or not while what runs is none of the user's: each call costs less then."""
        if self._listens and sys.gettrace() is (None if on else self._listen):
            sys.settrace(self._listen if on else None)

    def of(self, frame: FrameType) -> int:
        """Which time the statement runs that `frame` stands in: 1 for the first; 0 if unknown."""
        listener = frame.f_trace
        return listener.turn if isinstance(listener, _Frame) else 0

    def _make_listener(self) -> Callable[[FrameType, str, Any], Any]:
        """What Python calls at each call of a function, torch's own and ours included: these it
        has to let go quickly."""
        files, file_of = self._files, self._file

        def listen(frame: FrameType, event: str, arg: Any) -> _Frame | None:
            name = frame.f_code.co_filename
            file = files[name] if name in files else file_of(name)
            if file is None:
                return None
            known = frame.f_trace
            return known if isinstance(known, _Frame) else _Frame(file)  # a generator goes on

        return listen

    def _file(self, name: str) -> _File | None:
        file = self._files[name] = _File(name) if self._is_user_file(name) else None
        return file


class _File:
    """The first line of the statement that each line belongs to, and how often statements began
    (apart for those inside a comprehension or lambda, which have code of their own)."""

    def __init__(self, name: str) -> None:
        self.counts: dict[tuple[CodeType, int], int] = {}
        self.first_lines: dict[int, int] = {}
        try:
            tree = ast.parse("".join(linecache.getlines(name)))
        except (SyntaxError, ValueError):  # the file has changed since it was read
            return
        for node in ast.walk(tree):  # outer statements come before those inside them
            if isinstance(node, ast.stmt):
                last = node.end_lineno or node.lineno
                self.first_lines.update(dict.fromkeys(range(node.lineno, last + 1), node.lineno))


class _Frame:
    """Listens to one frame. `turn` counts the statement that runs in it."""

    __slots__ = ("_file", "_instruction", "_line", "_statement", "turn")

    def __init__(self, file: _File) -> None:
        self._file = file
        self._line = self._statement = self._instruction = -1
        self.turn = 0

    def __call__(self, frame: FrameType, event: str, arg: Any) -> _Frame:
        if event == "line":
            line, instruction = frame.f_lineno, frame.f_lasti
            statement = self._file.first_lines.get(line, line)
            # A statement over several lines goes back and forth among them, but only a loop jumps
            # back in the code, or comes to the line that it is at.
            begins = statement != self._statement or line == self._line
            if begins or instruction <= self._instruction:
                counts, key = self._file.counts, (frame.f_code, statement)
                self.turn = counts[key] = counts.get(key, 0) + 1
            self._line, self._statement, self._instruction = line, statement, instruction
        return self
