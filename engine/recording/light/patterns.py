"""Notes of calls of torch, and of calls of modules that are like earlier ones."""

from __future__ import annotations

import sys
import weakref
from bisect import bisect_right
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace
from torch import Tensor

from ..argument_values import TinyValues
from ..gradient_cuts import GradientCuts
from ..recording import Call, GradientCut, Place, Slot
from ..writes import Making, MakingStep, Written

Noted = tuple[int, int, str, str, Place | None, tuple[Slot, ...], TinyValues | None]
"""The note of a call: its `first`, `end`, `name`, `module`, `place`, `slots` and `tiny`."""


class Result(NamedTuple):
    """The origin of a tensor that a call returns: the views that lead to it, and why it requires no
    grad. `is_cut_here`: the cut names this tensor; `is_tiny`: its numbers are noted."""

    made: Making | tuple[MakingStep, ...] | None = None
    cut: GradientCut | None = None
    is_cut_here: bool = False
    is_tiny: bool = False


class Pattern(NamedTuple):
    """The operations of one call. `given` says of each tensor among its arguments why it requires
    no grad, if it requires none; `kinds` has the names of the call's nodes by their place in it;
    `written` are the tensors that it wrote to and that outlive it."""

    first: int
    end: int
    module: str
    noted: list[Noted]
    given: tuple[GradientCut | None, ...]
    kinds: dict[int, str]
    results: tuple[Result, ...]
    written: list[Written]
    plain_nodes: int = -1
    """The number of its nodes, if it returns one tensor of which nothing need be told but `made`,
    and has written to none."""
    made: Making | None = None
    """How this tensor came to share memory."""

    def is_of(self, nodes: int, noted: list[Noted]) -> bool:
        """Whether a call that made `nodes` nodes, and for which `noted` was noted, ran the same
        functions."""
        return nodes == self.end - self.first and [each[2:5] for each in self.noted] == [
            each[2:5] for each in sorted(noted, key=itemgetter(0))
        ]


@dataclass(eq=False, slots=True)
class Alike:
    """Calls of one module from one line with arguments of the same kinds."""

    title: str
    place: Place | None
    calls: int = 0
    misses: int = 0
    is_unfit: bool = False
    state: tuple[weakref.ref[Tensor], ...] | None = None
    pattern: Pattern | None = None


class Repeat(Struct, eq=False, gc=False):  # many are kept, and none is in a cycle
    """A call that was not looked into, with these tensors among its arguments. Its nodes have the
    numbers from `first` to before `end`; what was made from number `known_to` on is not known."""

    alike: Alike
    pattern: Pattern
    given: tuple[weakref.ref[Tensor], ...]
    first: int
    cuts: GradientCuts
    end: int = sys.maxsize
    known_to: int = sys.maxsize
    tiny: tuple[tuple[int, TinyValues], ...] = ()

    @property
    def is_as_expected(self) -> bool:
        pattern = self.pattern
        is_running = self.end == sys.maxsize
        return is_running or self.end - self.first == pattern.end - pattern.first

    def call_of(self, sequence: int) -> Call:
        """The call that made the node of this number, as that of the pattern did; the call of the
        module where that is not known."""
        pattern, alike = self.pattern, self.alike
        place = sequence - self.first
        asked = pattern.first + place
        found = bisect_right(pattern.noted, asked, key=itemgetter(0)) - 1
        is_known = sequence < self.known_to and self.is_as_expected
        if not is_known or found < 0 or asked >= pattern.noted[found][1]:
            return Call(
                -1, -1, "module", alike.title, pattern.module, alike.place, self.first, self.end
            )
        noted = pattern.noted[found]
        call = call_noted(-1, (*noted[:6], dict(self.tiny).get(sequence)))
        call.first += self.first - pattern.first
        call.end += self.first - pattern.first
        call.slots = tuple(map(self._slot_now, call.slots))
        call.is_like, call.node = True, pattern.kinds.get(place, "")
        return call

    def _slot_now(self, slot: Slot) -> Slot:
        """The slot of this call that corresponds to a slot of the pattern."""
        if isinstance(slot, GradientCut):
            for before, given in zip(self.pattern.given, self.given, strict=True):
                t = given()
                if before is not None and slot.tensor is before.tensor:
                    if t is None or t.requires_grad:
                        return replace(slot, tensor=given)
                    return self.cuts.why(t)
        return slot


def call_noted(index: int, noted: Noted) -> Call:
    first, end, name, module, place, slots, tiny = noted
    call = Call(index, -1, "function", name, module, place, first, end, slots)
    call.tiny = tiny
    return call
