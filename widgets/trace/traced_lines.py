"""The calls of a trace by line of code, and by turn (a line in a loop runs several times)."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from engine.protocol import TraceSnapshot


class Mark(NamedTuple):
    """Lines to mark (from 1) in a file, the theme's role for them, and a text on the place."""

    lines: tuple[int, ...] = ()
    role: str = "accent"
    text: str = ""
    file: str = ""


class TraceLines:
    """Finds the calls of a line of the traced code. A line is in the traced source, in the model's
    own code (its file is ""), or in one of the files of `trace.sources`."""

    def __init__(self, trace: TraceSnapshot | None = None) -> None:
        self.trace = trace
        self._turns: dict[int, int] = {}
        """How often each of `trace.lines` ran, by its index."""
        self._begins: dict[tuple[str, int], list[int]] = {}
        """The first call of each turn of a line, by file and line."""
        last: dict[int, int] = {}
        for number, call in enumerate(trace.calls if trace is not None else ()):
            if call.line < 0:
                continue
            is_first = call.line not in self._turns
            self._turns[call.line] = max(call.turn, self._turns.get(call.line, 0))
            if is_first or call.turn != last[call.line]:
                assert trace is not None
                place = trace.lines[call.line]
                self._begins.setdefault((self._file(place.file), place.line), []).append(number)
            last[call.line] = call.turn

    def _file(self, file: str) -> str:
        """The file that holds a place."""
        trace = self.trace
        return file if trace is not None and (trace.source or trace.sources) else ""

    def source_of(self, file: str) -> str | None:
        """The text of a file, None if it is not known."""
        trace = self.trace
        if trace is None or not file:
            return None
        return trace.source if trace.source and file == trace.file else trace.sources.get(file)

    def next_call(self, line: int, position: int, file: str = "") -> int | None:
        """The first call of the line's next turn after `position`, or of its first turn after the
        last; None if the line made no calls."""
        begins = self._begins.get((file, line))
        if not begins:
            return None
        return begins[bisect_right(begins, position) % len(begins)]

    def mark(self, position: int) -> Mark:
        """The lines of call `position`; for -1, the line at which the code failed."""
        trace = self.trace
        if trace is None:
            return Mark()
        if position < 0:
            line = trace.error.line if trace.error is not None else None
            if line is None:
                return Mark(text="Before the first call", file=trace.file)
            return Mark((line,), "error", f"The code ended at line {line}", trace.file)
        call = trace.calls[position]
        if call.line < 0:
            return Mark(text="Not made by a line of this code", file=trace.file)
        place = trace.lines[call.line]
        role = "error" if call.mark == "error" else "accent"
        file = self._file(place.file)
        where = f"Line {place.line}{self._turn_words(call.line, call.turn)}"
        if not file or (trace.source and file == trace.file):
            return Mark((place.line,), role, where, file)
        if self.source_of(file) is None:
            return Mark((), role, f"{file}, line {place.line}: {place.text}", trace.file)
        return Mark((place.line,), role, f"{file} · {where}", file)

    def _turn_words(self, line: int, turn: int) -> str:
        turns = self._turns[line]
        return f", {ordinal(turn)} time of {turns:,}" if turn and turns > 1 else ""


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `3rd`, `4th`, `11th`, `21st`."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{'th' if number // 10 % 10 == 1 else ending}"
