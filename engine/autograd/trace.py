"""What torch ran, call by call, to step through in time: forth and back, into modules or over."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from ..errors import LabError, sendable
from ..protocol import (
    ErrorReport,
    TraceCall,
    TraceMark,
    TraceMove,
    TraceSnapshot,
    TraceStepSnapshot,
)
from ..tensors.readable import readable
from .backward_pass import shown_values
from .kept import Kept, Other
from .parts import in_parts
from .recording import Call, Place, Recording, source_line

MAX_TEXT = 80
_UNSET = ("aten::empty", "aten::new_empty", "aten::resize")
"""Operators whose results are whatever the memory held."""


class Trace:
    """A finished recording with values, and a place in it.

    `source` is the code that ran under the name `file`, `error` what ended it. `name_of` tells
    what a living tensor is called, `node_of` the sequence number that the window knows a node by
    (-1: none). `position` is the call that the trace stands at, -1 at first.
    """

    def __init__(
        self,
        recording: Recording,
        source: str = "",
        file: str = "",
        error: ErrorReport | None = None,
        name_of: Callable[[torch.Tensor], str] = lambda t: "",
        node_of: Callable[[int], int] = lambda sequence: sequence,
    ) -> None:
        self.recording, self.source, self.file, self.error = recording, source, file, error
        self.position = -1
        self._name_of, self._node_of = name_of, node_of
        self._depths = _depths(recording.calls)
        self.marks = mark_calls(recording.calls)

    @property
    def origin(self) -> int:
        """The first operator that made NaN or inf from finite numbers; -1 without one."""
        calls = self.recording.calls
        made = (i for i, mark in enumerate(self.marks) if mark in _MADE and calls[i].kind == "op")
        return next(made, -1)

    # -- moving ----------------------------------------------------------------------------------

    def go(self, move: TraceMove, target: int = -1) -> None:
        """Move as MoveTraceCommand says; at either end nothing moves. Raises LabError where there
        is nothing to go to."""
        last = len(self.recording.calls) - 1
        match move:
            case "step":
                self.position = min(self.position + 1, last)
            case "back":
                self.position = max(self.position - 1, -1)
            case "start":
                self.position = -1
            case "end":
                self.position = last
            case "over":
                self.position = min(self._after(self.position), last)
            case "out":
                around = self.recording.calls[self.position].parent if self.position >= 0 else -1
                self.position = last if around < 0 else min(self._after(around), last)
            case "line":
                self.position = self._next_line()
            case "origin":
                if self.origin < 0:
                    raise LabError(
                        "No call made NaN or inf from finite numbers.",
                        hint="Those that only passed them on are marked in the list of calls.",
                    )
                self.position = self.origin
            case "to":
                if not -1 <= target <= last:
                    raise LabError(
                        f"There is no call {target} in the trace.", hint=f"It has {last + 1:,}."
                    )
                self.position = target

    def _after(self, index: int) -> int:
        """The first call after `index` that is not inside it."""
        if index < 0:
            return 0
        depth = self._depths[index]
        later = range(index + 1, len(self._depths))
        return next((i for i in later if self._depths[i] <= depth), len(self._depths))

    def _next_line(self) -> int:
        calls = self.recording.calls
        here = calls[self.position].place if self.position >= 0 else None
        later = range(self.position + 1, len(calls))
        return next((i for i in later if calls[i].place not in (None, here)), len(calls) - 1)

    # -- what the window is told -----------------------------------------------------------------

    def snapshots(self) -> list[TraceSnapshot]:
        """The tree of calls, in parts."""
        numbers: dict[Place, int] = {}
        calls = tuple(
            self._call(call, mark, numbers)
            for call, mark in zip(self.recording.calls, self.marks, strict=True)
        )
        classes = {sendable(p): sendable(name) for p, name in self.recording.classes.items()}
        whole = TraceSnapshot(
            calls=calls,
            lines=tuple(source_line(place) for place in numbers),
            modules=classes,
            source=sendable(self.source),
            file=sendable(self.file),
            note=" ".join(_sentence(note) for note in self.recording.notes),
            error=self.error,
            origin=self.origin,
        )
        return in_parts(whole, ("calls", "lines", "modules"))

    def _call(self, call: Call, mark: TraceMark, numbers: dict[Place, int]) -> TraceCall:
        line = -1 if call.place is None else numbers.setdefault(call.place, len(numbers))
        return TraceCall(
            parent=call.parent,
            kind=call.kind,
            name=sendable(call.name),
            module=sendable(call.module),
            line=line,
            result=sendable(_short(call.result)),
            nodes=call.end - call.first,
            writes=call.writes,
            mark=mark,
            turn=call.turn,
        )

    def step_snapshot(self) -> TraceStepSnapshot:
        """The call that the trace stands at, with its values."""
        if self.position < 0:
            return TraceStepSnapshot(position=-1)
        call = self.recording.calls[self.position]
        tensors: list[tuple[str, Kept]] = []
        arguments: list[tuple[str, str]] = []
        for name, value in _named_arguments(call):
            found = list(_kept(name, value))
            tensors += found
            if not found:
                arguments.append((sendable(name), sendable(_text(value))))
        results = list(_kept("result", call.result))
        if not results and call.result is not None:
            arguments.append(("result", sendable(_text(call.result))))
        shown = shown_values(
            [(self._label(name, kept), kept.tensor) for name, kept in (*tensors, *results)]
        )
        values = tuple(value for value in shown[: len(tensors)] if value is not None)
        outputs = tuple(value for value in shown[len(tensors) :] if value is not None)
        missing = {f"{n}: {kept.note}" for n, kept in (*tensors, *results) if kept.tensor is None}
        return TraceStepSnapshot(
            position=self.position,
            inputs=values,
            outputs=outputs,
            arguments=tuple(arguments),
            source=call.source,
            nodes=call.end - call.first,
            first_node=self._node_of(call.first) if call.makes_nodes else -1,
            grad_enabled=call.grad_enabled,
            error=sendable(call.error),
            note=sendable(". ".join(sorted(missing))),
        )

    def _label(self, argument: str, kept: Kept) -> str:
        tensor = None if kept.of is None else kept.of()
        name = "" if tensor is None else self._name_of(tensor)
        return sendable(f"{argument} = {name}" if name else argument)


# -- NaN and inf ---------------------------------------------------------------------------------

_MADE: tuple[TraceMark, ...] = ("made_nan", "made_inf")


def mark_calls(calls: list[Call]) -> list[TraceMark]:
    """What each call did to the numbers. An operator makes NaN or inf when only finite numbers
    went in; a function or module does when a call inside it did."""
    finite: dict[int, TraceMark] = {}
    marks: list[TraceMark] = []
    for call in calls:
        out = _worst(_kept("", call.result), finite)
        mark: TraceMark = ""
        if call.error:
            mark = "error"
        elif out and not call.name.startswith(_UNSET):
            given = (call.args, tuple(call.kwargs.values()))
            passed_on = _worst(_kept("", given), finite) or _has_number_not_finite(given)
            mark = "passed_on" if passed_on or call.kind != "op" else out
        marks.append(mark)
    for index in range(len(calls) - 1, -1, -1):  # from the inside out
        parent = calls[index].parent
        if parent >= 0 and marks[index] in _MADE and marks[parent] == "passed_on":
            marks[parent] = marks[index]
    return marks


def _worst(values: Iterable[tuple[str, Kept]], known: dict[int, TraceMark]) -> TraceMark:
    """`made_nan` where any holds a NaN, else `made_inf` where any holds an infinity, else ""."""
    found: set[TraceMark] = set()
    for _, kept in values:
        if id(kept) not in known:
            known[id(kept)] = _look(kept.tensor)
        found.add(known[id(kept)])
    for mark in _MADE:
        if mark in found:
            return mark
    return ""


def _look(t: torch.Tensor | None) -> TraceMark:
    if t is None or not (t.is_floating_point() or t.is_complex()):
        return ""
    dense = readable(t).dense
    with torch.no_grad():
        if dense is None or torch.isfinite(dense).all():
            return ""
        return "made_nan" if torch.isnan(dense).any() else "made_inf"


def _has_number_not_finite(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, list | tuple):
        return any(map(_has_number_not_finite, value))
    return False


# -- arguments and texts -------------------------------------------------------------------------


def _depths(calls: list[Call]) -> list[int]:
    depths: list[int] = []
    for call in calls:
        depths.append(0 if call.parent < 0 else depths[call.parent] + 1)
    return depths


def _named_arguments(call: Call) -> Iterator[tuple[str, Any]]:
    names = _parameter_names(call)
    single = len(call.args) == 1
    for place, value in enumerate(call.args):
        if place < len(names):
            yield names[place], value
        else:
            yield ("input" if single else f"input {place + 1}"), value
    yield from call.kwargs.items()


def _parameter_names(call: Call) -> list[str]:
    if call.kind == "op":
        return [argument.name for argument in call.func._schema.arguments]
    if call.kind == "module" or not callable(call.func):
        return []
    try:
        parameters = inspect.signature(call.func).parameters.values()
    except (TypeError, ValueError):  # most functions of torch are written in C++
        return []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in positional]


def _kept(name: str, value: Any) -> Iterator[tuple[str, Kept]]:
    """The tensors in a value, with what each is called."""
    if isinstance(value, Kept):
        yield name, value
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from _kept(f"{name}[{place}]", item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _kept(f"{name}[{key!r}]", item)


def _short(value: Any) -> str:
    """A result in a few words: `(32, 10) float32`."""
    found = [f"{kept.shape} {kept.dtype}" for _, kept in _kept("", value)]
    if found:
        more = f", {len(found) - 3} more" if len(found) > 3 else ""
        return ", ".join(found[:3]) + more
    return "" if value is None else _text(value)


def _text(value: Any) -> str:
    text = value.text if isinstance(value, Other) else repr(value)
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."
