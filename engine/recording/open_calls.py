"""The calls that are running: begins and ends them in a recording, and counts their nodes."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..system.private_torch import next_sequence
from .recording import Call, Kind, Place, Recording


class OpenCalls:
    """Calls nest: the last that began is the first to end. At most `max_calls` are recorded."""

    def __init__(self, recording: Recording, max_calls: int) -> None:
        self.max_calls = max_calls
        self._recording = recording
        self._open: list[Call] = []
        self._seen = 0  # the sequence number at the last event
        self._unclaimed: list[int] = []  # new nodes that belong to no operator yet

    @property
    def innermost(self) -> Call | None:
        return self._open[-1] if self._open else None

    @property
    def is_full(self) -> bool:
        """No more calls are recorded."""
        return len(self._recording.calls) >= self.max_calls

    def start(self) -> None:
        """Begin: nodes made before this belong to no call."""
        self._seen = next_sequence()

    def clear(self) -> None:
        """End all open calls."""
        self._open.clear()

    def begin(self, kind: Kind, name: str, module: str, place: Place | None, turn: int) -> Call:
        """Record a call inside the innermost one."""
        calls, around, now = self._recording.calls, self.innermost, next_sequence()
        if kind != "op":
            self._seen = now
            self._unclaimed.clear()
        call = Call(
            index=len(calls),
            parent=-1 if around is None else around.index,
            kind=kind,
            name=name,
            module=module,
            place=place,
            first=now,
            end=now,
            grad_enabled=torch.is_grad_enabled(),
            turn=turn,
        )
        self._recording.add(call)
        self._open.append(call)
        return call

    def end(self, call: Call) -> None:
        """End `call` and all calls inside it. A function in which torch computed nothing (a
        property, a size) is forgotten."""
        if call not in self._open:
            return
        while self._open.pop() is not call:
            pass
        if call.kind == "op":
            return
        call.end = self._seen = next_sequence()
        self._unclaimed.clear()
        is_last = self._recording.calls[-1] is call
        if is_last and call.kind == "function" and not call.makes_nodes and not call.error:
            self._recording.drop_last()

    def fail(self, call: Call, error: BaseException) -> None:
        call.error = f"{type(error).__name__}: {error}".partition("\n")[0]

    def close_inside(self, line: Call | None) -> None:
        """End the lines inside `line`, the innermost that runs: Python did not tell of their
        end."""
        for call in reversed(self._open):
            if call is line:
                return
            if call.kind == "line" and line in self._open:
                while self._open[-1] is not line:
                    self.end(self._open[-1])
                return

    def take_node(self, may_have_made: Callable[[], bool]) -> int | None:
        """The node of the operator that begins now. autograd makes the node before it calls the
        operator, so it is the newest node that no other operator has taken. (Saved tensors may
        be cloned or packed in between.)"""
        now = next_sequence()
        self._unclaimed.extend(range(self._seen, now))
        self._seen = now
        return self._unclaimed.pop() if self._unclaimed and may_have_made() else None

    def mark_write(self) -> None:
        """The innermost call writes in place, and so does the function around it."""
        self._open[-1].writes = True
        if len(self._open) > 1 and self._open[-2].kind == "function":
            self._open[-2].writes = True
