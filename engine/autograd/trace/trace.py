"""A finished recording with a position in it, which steps forwards and backwards."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable, Iterable
from typing import Any

import torch

from ...protocol import (
    ErrorReport,
    TraceCall,
    TraceMark,
    TraceMove,
    TraceSnapshot,
    TraceStepSnapshot,
)
from ...recording.argument_values import KeptTensor
from ...recording.recording import Call, Place, Recording, source_line
from ...recording.statement_counts import MAX_TURNS
from ...system.errors import LabError, sendable
from ...tensors.readable import readable
from ...tensors.summary import shown_values
from ..graph.large_snapshots import in_parts
from .texts import kept_in, named_arguments, named_results, short_result, tensors_and_texts

MAX_SOURCE = 100_000
"""The most characters of a file that is sent with the trace."""
_UNSET = ("aten::empty", "aten::new_empty", "aten::resize")
"""Operators that return uninitialised memory."""


class Trace:
    """A finished recording with values, and a position in it.

    `source` is the code that ran as `file`, `error` the error that ended it. For the trace of a
    backward rule, `rule` is the name of its node. `name_of` gives the name of a living tensor.
    `node_of` gives from a node's sequence number the one by which the window knows the node, -1 if
    it does not. `position` is the index of the current call, -1 before the first.
    """

    def __init__(
        self,
        recording: Recording,
        source: str = "",
        file: str = "",
        error: ErrorReport | None = None,
        name_of: Callable[[torch.Tensor], str] = lambda t: "",
        node_of: Callable[[int], int] = lambda sequence: sequence,
        rule: str = "",
    ) -> None:
        self.recording, self.source, self.file, self.error = recording, source, file, error
        self.rule = rule
        self.position = -1
        self._name_of, self._node_of = name_of, node_of
        self._depths = _depths(recording.calls)
        self.marks = mark_calls(recording.calls)
        self._has_lines = any(call.kind == "line" for call in recording.calls)

    @property
    def origin(self) -> int:
        """The first operator that made NaN or inf from finite numbers; -1 without one."""
        calls = self.recording.calls
        made = (
            i for i, mark in enumerate(self.marks) if mark in _MADE_MARKS and calls[i].kind == "op"
        )
        return next(made, -1)

    # -- moving ----------------------------------------------------------------------------------

    def go(self, move: TraceMove, target: int = -1) -> None:
        """Change the position as MoveTraceCommand describes, within the trace. Raises LabError for
        a target that does not exist."""
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
                self.position = min(self._index_after(self.position), last)
            case "out":
                around = self.recording.calls[self.position].parent if self.position >= 0 else -1
                self.position = last if around < 0 else min(self._index_after(around), last)
            case "line":
                self.position = self._next_line()
            case "back_line":
                self.position = self._line_before()
            case "origin":
                if self.origin < 0:
                    raise LabError(
                        "No call made NaN or inf from finite numbers.",
                        hint="Calls that only passed it on are marked in the list of calls.",
                    )
                self.position = self.origin
            case "to":
                if not -1 <= target <= last:
                    raise LabError(
                        f"There is no call {target} in the trace.",
                        hint=f"The trace has {last + 1:,} calls.",
                    )
                self.position = target

    def _index_after(self, index: int) -> int:
        """The first call after `index` that is not inside it."""
        if index < 0:
            return 0
        depth = self._depths[index]
        later = range(index + 1, len(self._depths))
        return next((i for i in later if self._depths[i] <= depth), len(self._depths))

    def _next_line(self) -> int:
        calls = self.recording.calls
        later = range(self.position + 1, len(calls))
        if self._has_lines:
            return next((i for i in later if calls[i].kind == "line"), len(calls) - 1)
        here = calls[self.position].place if self.position >= 0 else None
        return next((i for i in later if calls[i].place not in (None, here)), len(calls) - 1)

    def _line_before(self) -> int:
        calls = self.recording.calls
        earlier = range(self.position - 1, -1, -1)
        if self._has_lines:
            return next((i for i in earlier if calls[i].kind == "line"), -1)
        here = calls[self.position].place if self.position >= 0 else None
        last = next((i for i in earlier if calls[i].place not in (None, here)), -1)
        while last > 0 and calls[last - 1].place == calls[last].place:
            last -= 1
        return last

    # -- snapshots -------------------------------------------------------------------------------

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
            sources=self._sources(numbers),
            rule=sendable(self.rule),
            note=" ".join(_sentence(note) for note in self.recording.notes),
            error=self.error,
            origin=self.origin,
        )
        return in_parts(whole, ("calls", "lines", "modules", "sources"))

    def _sources(self, places: Iterable[Place]) -> dict[str, str]:
        """The texts of all other files that have lines in the trace."""
        if not self._has_lines:
            return {}
        files = dict.fromkeys(file for file, _ in places if file != self.file)
        texts = {file: "".join(linecache.getlines(file)) for file in files}
        return {
            sendable(file): sendable(text)
            for file, text in texts.items()
            if 0 < len(text) <= MAX_SOURCE
        }

    def _call(self, call: Call, mark: TraceMark, numbers: dict[Place, int]) -> TraceCall:
        line = -1 if call.place is None else numbers.setdefault(call.place, len(numbers))
        return TraceCall(
            parent=call.parent,
            kind=call.kind,
            name=sendable(call.name),
            module=sendable(call.module),
            line=line,
            result=sendable(short_result(call)),
            nodes=call.end - call.first,
            writes=call.writes,
            mark=mark,
            turn=call.turn,
        )

    def step_snapshot(self) -> TraceStepSnapshot:
        """The current call with its values."""
        if self.position < 0:
            return TraceStepSnapshot(position=-1)
        call = self.recording.calls[self.position]
        is_line = call.kind == "line"
        tensors, arguments = tensors_and_texts(named_arguments(call), containers=is_line)
        made, results = tensors_and_texts(named_results(call), containers=is_line)
        shown = shown_values(
            [(self._label(name, kept), kept.tensor) for name, kept in (*tensors, *made)]
        )
        values = tuple(value for value in shown[: len(tensors)] if value is not None)
        outputs = tuple(value for value in shown[len(tensors) :] if value is not None)
        missing = {f"{n}: {kept.note}" for n, kept in (*tensors, *made) if kept.tensor is None}
        if is_line and call.turn > MAX_TURNS:
            missing.add(f"values are kept for the first {MAX_TURNS:,} times that the line runs")
        return TraceStepSnapshot(
            position=self.position,
            inputs=values,
            outputs=outputs,
            arguments=_sendable(arguments),
            results=_sendable(results),
            source=call.source,
            nodes=call.end - call.first,
            first_node=self._node_of(call.first) if call.makes_nodes else -1,
            grad_enabled=call.grad_enabled,
            error=sendable(call.error),
            note=sendable(". ".join(sorted(missing))),
        )

    def _label(self, argument: str, kept: KeptTensor) -> str:
        tensor = None if kept.of is None else kept.of()
        name = "" if tensor is None else self._name_of(tensor)
        return sendable(f"{argument} = {name}" if name not in ("", argument) else argument)


# -- NaN and inf ---------------------------------------------------------------------------------

_MADE_MARKS: tuple[TraceMark, ...] = ("made_nan", "made_inf")


def mark_calls(calls: list[Call]) -> list[TraceMark]:
    """A mark for each call. An operator whose arguments were finite made its NaN or inf; a function
    or module made it if a call inside it did."""
    finite: dict[int, TraceMark] = {}
    marks: list[TraceMark] = []
    for call in calls:
        out = _worst(kept_in("", call.result), finite)
        mark: TraceMark = ""
        if call.error:
            mark = "error"
        elif out and not call.name.startswith(_UNSET):
            given = (call.args, tuple(call.kwargs.values()))
            passed_on = _worst(kept_in("", given), finite) or _has_number_not_finite(given)
            mark = "passed_on" if passed_on or call.kind != "op" else out
        marks.append(mark)
    for index in range(len(calls) - 1, -1, -1):  # from the inside out
        parent = calls[index].parent
        if parent >= 0 and marks[index] in _MADE_MARKS and marks[parent] == "passed_on":
            marks[parent] = marks[index]
    return marks


def _worst(values: Iterable[tuple[str, KeptTensor]], known: dict[int, TraceMark]) -> TraceMark:
    """`made_nan` if any value has a NaN, else `made_inf` if any has an infinity, else ""."""
    found: set[TraceMark] = set()
    for _, kept in values:
        if id(kept) not in known:
            known[id(kept)] = _mark_of(kept.tensor)
        found.add(known[id(kept)])
    for mark in _MADE_MARKS:
        if mark in found:
            return mark
    return ""


def _mark_of(t: torch.Tensor | None) -> TraceMark:
    if t is None or not (t.is_floating_point() or t.is_complex()):
        return ""
    dense = readable(t).dense
    with torch.no_grad():
        if dense is not None and dense.layout == torch.strided:
            for dim, stride in enumerate(dense.stride()):
                if stride == 0:  # expanded: one number stands for all
                    dense = dense.narrow(dim, 0, min(1, dense.shape[dim]))
        if dense is None or torch.isfinite(dense).all():
            return ""
        return "made_nan" if torch.isnan(dense).any() else "made_inf"


def _has_number_not_finite(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, list | tuple):
        return any(map(_has_number_not_finite, value))
    return False


def _depths(calls: list[Call]) -> list[int]:
    depths: list[int] = []
    for call in calls:
        depths.append(0 if call.parent < 0 else depths[call.parent] + 1)
    return depths


def _sendable(texts: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((sendable(name), sendable(text)) for name, text in texts)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."
