"""The functions of torch that made nodes, as a light recorder notes them."""

from __future__ import annotations

import sys
from bisect import bisect_right
from operator import itemgetter

from ..argument_values import TinyValues
from ..recording import Call, Place, Slot

FIRST_TURNS = 2


Noted = tuple[int, int, str, str, Place | None, tuple[Slot, ...], TinyValues | None]
"""What is noted of a call: its `first`, `end`, `name`, `module`, `place`, `slots` and `tiny`."""


class LightRecording:
    """Functions that made nodes, noted as a tuple each; a `Call` is made of one when it is asked
    for. A long loop takes no more memory than a short one: when there are `max_calls`, the older
    half is folded to the first FIRST_TURNS calls of a function at a line and in a module.

    `classes` has the class name of each module path, `notes` say what is not in the recording.
    """

    def __init__(self, max_calls: int = sys.maxsize) -> None:
        self.classes: dict[str, str] = {}
        self.notes: list[str] = []
        self.end = sys.maxsize
        self.noted: list[Noted] = []
        self.max_calls = max_calls
        self._first: list[Noted] = []  # of what was folded
        self._turns: dict[tuple[str, str, Place | None], int] = {}
        self._ordered: list[Noted] = []
        self._firsts: list[int] = []
        self._newest: Noted | None = None
        self._asked_for: dict[int, Call] = {}

    @property
    def calls(self) -> list[Call]:
        return [_call(index, each) for index, each in enumerate(self._in_order())]

    def __len__(self) -> int:
        return len(self._first) + len(self.noted)

    def fold(self) -> None:
        """Make room for new calls."""
        half = len(self.noted) // 2
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
        noted = self._in_order()
        place = bisect_right(self._firsts, sequence) - 1
        if place < 0 or noted[place][1] <= sequence:
            return None
        call = self._asked_for.get(place)
        if call is None:
            call = self._asked_for[place] = _call(place, noted[place])
        return call

    def chain_of(self, sequence: int) -> list[Call]:
        call = self.call_of(sequence)
        return [] if call is None else [call]

    def _in_order(self) -> list[Noted]:
        """By number. A custom Function ends after those that its forward calls."""
        newest = self.noted[-1] if self.noted else None
        if len(self._ordered) != len(self) or self._newest is not newest:
            self._ordered = sorted((*self._first, *self.noted), key=itemgetter(0))
            self._firsts = [first for first, *_ in self._ordered]
            self._newest = newest
            self._asked_for.clear()
        return self._ordered


def _call(index: int, noted: Noted) -> Call:
    first, end, name, module, place, slots, tiny = noted
    call = Call(index, -1, "function", name, module, place, first, end, slots)
    call.tiny = None if tiny is None else tiny.tensor()
    return call
