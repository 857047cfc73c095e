"""Recordings of forward: calls, and which of them made a node of the autograd graph.

Every node takes the next sequence number of its thread when it is made, so the numbers read before
and after a call (`torch.autograd._get_sequence_nr()`) bracket exactly the nodes that it made.
"""

from __future__ import annotations

import linecache
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import torch
from msgspec import Struct

from ..protocol import CutReason, SourceLine
from ..system.errors import sendable
from .argument_values import TinyValues

MAX_LINE = 200
_BRACKETING = ("module", "function")
"""Kinds of calls that hold their nodes in brackets; an operator's are in `Recording.made_by`."""

Place = tuple[str, int]
"""A file's name and a line in it, from 1."""


Kind = Literal["line", "module", "function", "op"]


class GradientCut(Struct, frozen=True, gc=False):  # many are kept, and none is in a cycle
    """Why a tensor requires no grad: the gradient ends here.

    `tensor` is the one to name: the frozen parameter, the data, the result of `detach()`.
    `place` is the line that made it so.
    """

    reason: CutReason
    tensor: weakref.ref[torch.Tensor]
    place: Place | None = None


Slot = GradientCut | bool
"""A tensor argument: True requires grad, False is not a tensor (`bias=None`, a number), else why it
requires none."""


@dataclass(eq=False, slots=True)
class Call:
    """One call of a module, a torch function or an operator (`"aten::mul.Tensor"`), or one line
    of the user's code with all that ran in it.

    `parent` is the index of the call around it, -1 for none. `module` is the dotted path of the
    innermost module around it; for a module, its own. The nodes that it made have the sequence
    numbers [first, end). `slots` are its tensor arguments (lists opened) where some require no
    grad. `turn` is how often the statement at `place` had started; 0 where that is not known.

    `func`, `args`, `kwargs` and `result` are set when values are kept, with `KeptTensor` for each
    tensor. For a line, `kwargs` has the names that it read and `result` the names that it bound
    or changed, with their values. `error` is what it raised. `tiny` is the result of a few
    numbers of a function that made one node; it is set when no values are kept.

    `is_like`: the call was not looked at; this is told from an earlier one. `node` is the kind of
    node that was asked for there.
    """

    index: int
    parent: int
    kind: Kind
    name: str
    module: str
    place: Place | None
    first: int
    end: int
    slots: tuple[Slot, ...] = ()
    grad_enabled: bool = True
    writes: bool = False
    func: Any = None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    error: str = ""
    turn: int = 0
    tiny: TinyValues | None = None
    is_like: bool = False
    node: str = ""

    @property
    def source(self) -> SourceLine | None:
        """The innermost line of the user's code that the call ran under."""
        return None if self.place is None else source_line(self.place)

    @property
    def makes_nodes(self) -> bool:
        return self.end > self.first

    def holds(self, sequence: int) -> bool:
        return self.first <= sequence < self.end


@dataclass(eq=False)
class Recording:
    """The calls of one thread, in the order in which they began.

    `made_by` maps a node's sequence number to the index of the operator that made it; functions
    and modules hold theirs in brackets. `classes` has the class name of each module path, `notes`
    say in words what is not in the recording.
    """

    calls: list[Call] = field(default_factory=list)
    classes: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    made_by: dict[int, int] = field(default_factory=dict)
    end: int = 0
    _brackets: list[Call] = field(default_factory=list, repr=False)
    _firsts: list[int] = field(default_factory=list, repr=False)

    def add(self, call: Call) -> None:
        self.calls.append(call)
        if call.kind in _BRACKETING:
            self._brackets.append(call)
            self._firsts.append(call.first)

    def drop_last(self) -> None:
        """Forget the last call: nothing ran in it."""
        if self.calls.pop().kind in _BRACKETING:
            self._brackets.pop()
            self._firsts.pop()

    def call_of(self, sequence: int) -> Call | None:
        """The innermost call that made the node of this sequence number."""
        return self.calls_of((sequence,))[0]

    def calls_of(self, sequences: Iterable[int]) -> list[Call | None]:
        """`call_of` each of these."""
        made_by, firsts, brackets = self.made_by, self._firsts, self._brackets
        found: list[Call | None] = []
        for sequence in sequences:
            number = made_by.get(sequence)
            if number is not None:
                call = self.calls[number]
            else:
                # Calls nest, so what was open when the node was made is the last call that had
                # started by then, or around it.
                place = bisect_right(firsts, sequence) - 1
                call = brackets[place] if place >= 0 else None
            found.append(None if call is None else self._holding(call, sequence))
        return found

    def chain_of(self, sequence: int) -> list[Call]:
        """All calls of torch that ran while the node was made, the outermost first."""
        chain: list[Call] = []
        call = self.call_of(sequence)
        while call is not None:
            chain.append(call)
            call = None if call.parent < 0 else self._holding(self.calls[call.parent], sequence)
        return chain[::-1]

    def _holding(self, call: Call, sequence: int) -> Call | None:
        """The call, or else the innermost one around it, that made the node."""
        while call.kind == "line" or not call.first <= sequence < call.end:
            if call.parent < 0:
                return None
            call = self.calls[call.parent]
        return call

    @property
    def span(self) -> tuple[int, int]:
        """[first, end) of its nodes' sequence numbers; `end` is set when the recorder exits."""
        if not self._brackets:
            return 0, 0
        return self._brackets[0].first, self.end

    def cut(self, length: int) -> None:
        """Forget all calls from number `length` on."""
        del self.calls[length:]
        self._brackets = [call for call in self._brackets if call.index < length]
        self._firsts = [call.first for call in self._brackets]
        self.made_by = {node: made for node, made in self.made_by.items() if made < length}

    def drop_values(self) -> None:
        """Let go of all arguments and results."""
        for call in self.calls:
            call.func, call.args, call.kwargs, call.result = None, (), {}, None
            call.tiny = None

    def __len__(self) -> int:
        return len(self.calls)


class Recorded(Protocol):
    """A recording, light or with all values, as those see it who look for the calls of nodes."""

    classes: dict[str, str]

    @property
    def span(self) -> tuple[int, int]: ...
    def call_of(self, sequence: int) -> Call | None: ...
    def calls_of(self, sequences: Iterable[int]) -> list[Call | None]: ...
    def chain_of(self, sequence: int) -> list[Call]: ...
    def __len__(self) -> int: ...


class Recordings:
    """Recordings of one thread, one after the other: the newest `max_calls` calls of them."""

    def __init__(self, max_calls: int = 100_000) -> None:
        self.max_calls = max_calls
        self.running: Recorded | None = None
        """The recording that goes on."""
        self._ended: list[Recorded] = []

    def add(self, recording: Recorded) -> None:
        if not len(recording):
            return
        ended = self._ended
        ended.append(recording)
        total = sum(map(len, ended))
        while total > self.max_calls and len(ended) > 1:
            total -= len(ended.pop(0))

    @property
    def kept(self) -> list[Recorded]:
        running = self.running
        return [*self._ended, running] if running is not None and len(running) else self._ended

    @property
    def classes(self) -> dict[str, str]:
        return {path: name for each in self.kept for path, name in each.classes.items()}


def find_recording(recordings: Sequence[Recorded], sequence: int) -> Recorded | None:
    """The recording whose span holds a sequence number; `recordings` are in the order they ran."""
    for newest in recordings[-1:]:  # most nodes are its
        first, end = newest.span
        if first <= sequence:
            return newest if sequence < end else None
    place = bisect_right(recordings, sequence, key=lambda each: each.span[0]) - 1
    return recordings[place] if place >= 0 and sequence < recordings[place].span[1] else None


def source_line(place: Place) -> SourceLine:
    """The line as a view shows it."""
    file, line = place
    text = linecache.getline(file, line).strip()
    return SourceLine(sendable(file), line, sendable(text[:MAX_LINE]))
