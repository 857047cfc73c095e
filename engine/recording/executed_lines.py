"""Each line of the user's code as a call of its own, with the names that it read and bound."""

from __future__ import annotations

import dis
import inspect
from contextlib import AbstractContextManager
from itertools import chain, islice
from types import CodeType, FrameType
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from .argument_values import Keeper, OtherArgument
from .line_values import (
    CTX_NAMES,
    MAX_ITEMS,
    MISSING,
    attribute,
    glimpse,
    is_a,
    is_data,
    items_of,
    len_of,
)
from .recording import Call
from .statement_counts import MAX_TURNS, FrameListener, listener_of
from .writes import version_of

GOES_ON, RETURNS, YIELDS = "goes on at", "return", "yield"
"""Keys of a line's result that are not names: the next line of a branch, what a function returns
or yields."""
TURNS_NOTE = (
    f"A line that runs more than {MAX_TURNS:,} times is recorded after that only where torch runs"
    " in it, without its names."
)
CUT_NOTE = (
    "Python did not tell of all lines: the stack was full, or the code listens to its lines itself."
)
_RETURNING = {"RETURN_VALUE", "RETURN_CONST"}
_ASKING = {"FOR_ITER", "SEND"}
_INNER = {"<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}


class LineCalls(Protocol):
    """The recorder, as its lines see it: where calls of the kind "line" go."""

    keeper: Keeper

    @property
    def is_full(self) -> bool: ...
    def unseen(self) -> AbstractContextManager[None]: ...
    def note(self, text: str) -> None: ...
    def begin_line(
        self, frame: FrameType, turn: int, line: int, reads: dict[str, Any]
    ) -> Call | None: ...
    def end_line(self, call: Call, result: dict[str, Any]) -> None: ...
    def fail_line(self, call: Call, error: BaseException) -> None: ...


class LineRecorder:
    """Watches the user's lines, and records each as a call of the kind "line" around what it runs.

    The call's `kwargs` are the names that the line read, its `result` the names that it bound or
    changed, with their values after the line. Only names in the line's text are looked at.
    """

    def __init__(self, recorder: LineCalls) -> None:
        self._recorder = recorder
        self._opcodes: dict[CodeType, bytes] = {}

    # -- told by StatementCounts -----------------------------------------------------------------

    def begins(self, frame: FrameType, at: FrameListener) -> None:
        if _opens_class(frame, at):
            return
        if at.turn > MAX_TURNS:
            self._recorder.note(TURNS_NOTE)
            return
        if self._recorder.is_full:
            return
        with self._recorder.unseen(), torch.DisableTorchFunction():
            self._begin_around(frame.f_back)
            values = _values(frame, at)
            at.before = {name: (value, _stamp(value)) for name, value in values.items()}
            reads = set(_reads(frame, at)) - {
                f"{name}.{fact}" for name in values for fact in CTX_NAMES.values()
            }
            keep = self._recorder.keeper.keep
            shown = {
                name: glimpse(value, keep)
                for name, value in values.items()
                if name in reads and is_data(value)
            }
            at.call = self._recorder.begin_line(frame, at.turn, at.statement.line, shown)

    def ends(self, frame: FrameType, at: FrameListener, goes_on: int) -> None:
        more = {GOES_ON: OtherArgument(f"line {goes_on}")} if at.statement.branches else {}
        self._end(frame, at, more)

    def raises(self, frame: FrameType, at: FrameListener, error: BaseException) -> None:
        if isinstance(error, StopIteration) and self._opcode(frame) in _ASKING:
            return  # the end of a for loop, no error
        self._recorder.fail_line(at.call, error)

    def leaves(self, frame: FrameType, at: FrameListener, value: Any) -> None:
        opcode, more = self._opcode(frame), {}
        if opcode == "YIELD_VALUE":
            more = {YIELDS: value}
        elif opcode in _RETURNING and _gives(frame, at):
            more = {RETURNS: value}
        self._end(frame, at, more)

    # -- calls of lines --------------------------------------------------------------------------

    def begin_around(self, frame: FrameType) -> Call | None:
        """The call of the line that runs in `frame`. torch runs in this line, so it is recorded now
        if it was not yet, and so are the lines that called it."""
        at = listener_of(frame)
        if at is None:
            self._begin_around(frame)
            return None
        if at.has_gone_on(frame) and at.call is not None:
            at.before = {}  # another line may have changed the values since
            self._end(frame, at, {})
        if at.call is None:
            self._begin_around(frame)
        return at.call

    def _begin_around(self, frame: FrameType | None) -> None:
        waiting: list[tuple[FrameType, FrameListener]] = []
        while frame is not None:
            at = listener_of(frame)
            if at is not None and at.call is not None:
                break
            if at is not None and at.turn and not _opens_class(frame, at):
                waiting.append((frame, at))
            frame = frame.f_back
        for each, at in reversed(waiting):
            at.call = self._recorder.begin_line(each, at.turn, at.statement.line, {})

    def _end(self, frame: FrameType, at: FrameListener, more: dict[str, Any]) -> None:
        call, at.call = at.call, None
        before, at.before = at.before, {}
        with self._recorder.unseen(), torch.DisableTorchFunction():
            keep = self._recorder.keeper.keep
            found = _changes(frame, at, before, not call.error) if before else {}
            shown = {name: glimpse(value, keep) for name, value in {**found, **more}.items()}
            self._recorder.end_line(call, shown)

    def _opcode(self, frame: FrameType) -> str:
        """The name of the frame's current instruction."""
        code = frame.f_code
        if code not in self._opcodes:
            self._opcodes[code] = code.co_code
        return dis.opname[self._opcodes[code][frame.f_lasti]]


def _opens_class(frame: FrameType, at: FrameListener) -> bool:
    """Whether this is the first line of a class body: it is the line of the `class` statement,
    which is recorded already."""
    code = frame.f_code
    if code.co_flags & inspect.CO_OPTIMIZED or code.co_name == "<module>":
        return False
    return at.statement.line == at.first_line(code.co_firstlineno)


def _gives(frame: FrameType, at: FrameListener) -> bool:
    return at.statement.returns or frame.f_code.co_name == "<lambda>"


# -- names ---------------------------------------------------------------------------------------


def _reads(frame: FrameType, at: FrameListener) -> tuple[str, ...]:
    return at.statement.inner if frame.f_code.co_name in _INNER else at.statement.reads


def _values(frame: FrameType, at: FrameListener) -> dict[str, Any]:
    """The values of the names that the line reads or may bind, and of what a Function's ctx was
    told to save; MISSING for a name without a value."""
    local, outside = frame.f_locals, frame.f_globals
    found: dict[str, Any] = {}
    stores = () if frame.f_code.co_name in _INNER else at.statement.stores
    for name in chain(_reads(frame, at), stores):
        if name not in found:
            found[name] = _find(name, local, outside)
            if is_a(found[name], FunctionCtx):
                for fact, shown in CTX_NAMES.items():
                    found[f"{name}.{shown}"] = _none_if_missing(attribute(found[name], fact))
    return found


def _none_if_missing(value: Any) -> Any:
    return None if value is MISSING else value


def _find(name: str, local: Any, outside: dict[str, Any]) -> Any:
    root, *attributes = name.split(".")
    value = local[root] if root in local else outside.get(root, MISSING)
    for each in attributes:
        if value is MISSING:
            break
        value = attribute(value, each)
    return value


def _changes(
    frame: FrameType, at: FrameListener, before: dict[str, Any], ended_well: bool
) -> dict[str, Any]:
    """The names that the line bound, changed or deleted."""
    bound = set(at.statement.stores) if ended_well and at.statement.binds else set()
    if frame.f_code.co_name in _INNER:
        bound = set()
    found: dict[str, Any] = {}
    for name, value in _values(frame, at).items():
        old, stamp = before.get(name, (MISSING, None))
        if value is MISSING:
            if old is not MISSING and "." not in name:
                found[name] = OtherArgument("deleted")
        elif name in bound or value is not old or not _is_same_stamp(stamp, _stamp(value)):
            found[name] = value
    return found


Stamp = tuple[int | None, tuple[Any, ...]]


def _stamp(value: Any) -> Stamp | None:
    """The stamp of a value, which changes when it is written into: a tensor's version, a
    container's items."""
    if is_a(value, Tensor):
        return version_of(value), ()
    if is_a(value, list, dict, set):
        items = islice(items_of(value), MAX_ITEMS)
        if is_a(value, dict):
            items = chain.from_iterable(items)
        return len_of(value), tuple(items)
    return None


def _is_same_stamp(old: Stamp | None, new: Stamp | None) -> bool:
    if old is None or new is None:
        return old is new
    same = len(old[1]) == len(new[1]) and all(a is b for a, b in zip(old[1], new[1], strict=True))
    return same and old[0] == new[0]
