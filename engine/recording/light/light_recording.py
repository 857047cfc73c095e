"""The functions of torch that made nodes, as a light recorder notes them."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from operator import attrgetter, itemgetter

from ...system.private_torch import next_sequence
from ..recording import Call, Place
from .patterns import Noted, Repeat, call_noted

FIRST_TURNS = 2
MAX_REPEATS = 2_000
"""The newest calls that were not looked into, which are remembered."""


class LightRecording:
    """Functions that made nodes, noted as a tuple each; a `Call` is made of one when it is asked
    for. A long loop takes no more memory than a short one: when there are `max_calls`, the older
    half is folded to the first FIRST_TURNS calls of a function at a line and in a module.

    `classes` has the class name of each module path, `notes` say what is not in the recording.
    `repeats` are the newest calls of modules that were not looked into.
    """

    def __init__(self, max_calls: int = sys.maxsize) -> None:
        self.classes: dict[str, str] = {}
        self.notes: list[str] = []
        self.end = sys.maxsize
        self.noted: list[Noted] = []
        self.dropped = 0
        """The number of entries that `fold` has removed from the front of `noted`."""
        self.repeats: deque[Repeat] = deque(maxlen=MAX_REPEATS)
        self.max_calls = max_calls
        self._first: list[Noted] = []  # of what was folded
        self._turns: dict[tuple[str, str, Place | None], int] = {}
        self._ordered: list[Noted] = []
        self._firsts: list[int] = []
        self._newest: Noted | None = None
        self._asked_for: dict[int, Call] = {}

    @property
    def calls(self) -> list[Call]:
        return [call_noted(index, each) for index, each in enumerate(self._in_order())]

    def __len__(self) -> int:
        return len(self._first) + len(self.noted)

    def fold(self) -> None:
        """Make room for new calls."""
        half = len(self.noted) // 2
        self.dropped += half
        turns, first = self._turns, self._first
        for each in self.noted[:half]:
            key = each[2:5]
            turn = turns.get(key, 0)
            if turn < FIRST_TURNS and len(first) < self.max_calls // 2:
                turns[key] = turn + 1
                first.append(each)
        del self.noted[:half]

    @property
    def is_folded(self) -> bool:
        return bool(self._first)

    @property
    def span(self) -> tuple[int, int]:
        """[first, end) of its nodes' sequence numbers; open at the end until the recorder exits."""
        noted = self._in_order()
        return (noted[0][0], self.end) if noted else (0, 0)

    def call_of(self, sequence: int) -> Call | None:
        """The function that made the node of this sequence number: none is inside another."""
        return self.calls_of((sequence,))[0]

    def calls_of(self, sequences: Iterable[int]) -> list[Call | None]:
        """`call_of` each of these: the order of the calls is looked at once for all of them."""
        noted, firsts, known = self._in_order(), self._firsts, self._asked_for
        found: list[Call | None] = []
        for sequence in sequences:
            place = bisect_right(firsts, sequence) - 1
            if place < 0 or noted[place][1] <= sequence:
                repeat = self._repeat_of(sequence)
                call = None if repeat is None else repeat.call_of(sequence)
            else:
                call = known.get(place)
                if call is None:
                    call = known[place] = call_noted(place, noted[place])
            found.append(call)
        return found

    def chain_of(self, sequence: int) -> list[Call]:
        call = self.call_of(sequence)
        return [] if call is None else [call]

    def _repeat_of(self, sequence: int) -> Repeat | None:
        newest = self.repeats[-1] if self.repeats else None
        if newest is None or newest.first <= sequence:
            repeat = newest  # most nodes that are asked for are its
        else:
            place = bisect_right(self.repeats, sequence, key=attrgetter("first")) - 1
            repeat = self.repeats[place] if place >= 0 else None
        return repeat if repeat is not None and sequence < repeat.end else None

    def break_off(self) -> None:
        """Other code will run in the middle of a module's call that is not looked into: what the
        call runs after that is not known."""
        if self.repeats and self.repeats[-1].end == sys.maxsize:
            repeat = self.repeats[-1]
            repeat.known_to = min(repeat.known_to, next_sequence())

    def _in_order(self) -> list[Noted]:
        """The noted calls by the number of their first node. (A custom Function is noted after
        those that its forward calls.)"""
        first, noted, ordered = self._first, self.noted, self._ordered
        newest = noted[-1] if noted else None
        if len(ordered) != len(first) + len(noted) or self._newest is not newest:
            self._ordered = sorted((*first, *noted), key=itemgetter(0))
            self._firsts = [first for first, *_ in self._ordered]
            self._newest = newest
            self._asked_for.clear()
        return self._ordered
