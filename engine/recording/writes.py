"""Who wrote a storage last, and which operation made a view: watched while a cell runs.

A recorder tells of each torch function; the version counters of its arguments before and after the
call are compared. What an optimizer writes is found when the cell ends. Watching keeps no tensor
alive.
"""

from __future__ import annotations

import linecache
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..protocol import WrittenBy
from ..system.errors import sendable
from .call_names import op_name
from .remembered import Remembered

MAX_LINE = 200
MAX_EARLIER = 32
"""How many steps a chain of views that are gone is remembered back."""
Given = Sequence[tuple[Tensor, int | None, bool]]
"""The tensors given to a call: each with its version and whether it required grad before."""

SHARING = frozenset({"detach", "data"})
"""Operations whose result shares memory and is not a view in autograd's sense."""


class OperationPlace(NamedTuple):
    """The operation, and the line of the cell that it ran under."""

    op: str
    cell: str
    line: int | None

    def as_written_by(self) -> WrittenBy:
        text = linecache.getline(self.cell, self.line).strip() if self.line else ""
        return WrittenBy(
            op=self.op,
            cell=sendable(self.cell),
            line=self.line,
            text=sendable(text[:MAX_LINE]),
        )


class Making(NamedTuple):
    """How a tensor came to share memory: an operation made it from `parent`, which `earlier` had
    made (this is kept because the parent in a chain like `x.T[0]` does not live long)."""

    at: OperationPlace
    parent: weakref.ref[Tensor]
    earlier: Making | None
    depth: int

    @property
    def where(self) -> WrittenBy:
        return self.at.as_written_by()


class MakingStep(NamedTuple):
    """One step of a `Making`, written so that it also holds for another call of the same kind:
    `parent` is a place among the call's arguments and results, or a tensor that is none of them."""

    at: OperationPlace
    parent: int | weakref.ref[Tensor]


class Written(NamedTuple):
    """A tensor that was written to, and by what."""

    tensor: weakref.ref[Tensor]
    at: OperationPlace


class _Seen(NamedTuple):
    """A storage's version when it was last looked at, and the write that led to it."""

    version: int
    written_at: OperationPlace | None


class Writes:
    """Remembers the last write to each living storage, and how each living tensor was made."""

    def __init__(self) -> None:
        self._seen = Remembered[_Seen]()  # by the storage
        self._made = Remembered[Making]()
        self.remember = self._made.set
        """Remember how a tensor was made."""
        self._steps: dict[int, tuple[weakref.ref[Optimizer], str, int | None]] = {}
        self._again: dict[object, Sequence[Written]] = {}

    @contextmanager
    def watch(self, cell: str, tensors: Callable[[], Iterable[Tensor]]) -> Iterator[Watch]:
        """Watch the code that runs inside; `cell` is the file name of its frames. Its recorder must
        tell the yielded Watch of each write, each view and each optimizer's step.

        A write that no torch function call showed (backward adding into a `.grad`) is found
        afterwards, among `tensors()`, and remembered without an operation.
        """
        try:
            yield Watch(self, cell)
        finally:
            with torch.DisableTorchFunction():
                self._look_at_steps()
                self._look_at_repeats()
                for t in tensors():
                    self._look_at(t, cell)
            self._forget_the_dead()

    def last_write(self, t: Tensor) -> WrittenBy | None:
        """The last write to the storage under `t`; None where there was none since it was made."""
        with torch.DisableTorchFunction():
            storage = storage_of(t)
        seen = self._seen.get(storage)
        return None if seen is None or seen.written_at is None else seen.written_at.as_written_by()

    def making(self, t: Tensor) -> Making | None:
        """The operation by which `t` shares another tensor's memory; None if none was seen."""
        return self._made.get(t)

    def wrote(self, t: Tensor, version: int, at: OperationPlace) -> None:
        storage = storage_of(t)
        if storage is not None:
            self._seen.set(storage, _Seen(version, at))

    def made(self, t: Tensor, parent: Tensor, at: OperationPlace) -> None:
        earlier = self.making(parent)
        if earlier is not None and earlier.depth >= MAX_EARLIER:
            earlier = None
        depth = 0 if earlier is None else earlier.depth + 1
        self.remember(t, Making(at, weakref.ref(parent), earlier, depth))

    def making_of(
        self, t: Tensor, known: Sequence[Tensor]
    ) -> Making | tuple[MakingStep, ...] | None:
        """How `t`, a result of a call, came to share memory. `known` are the arguments and the
        results of the call: if `t` shares memory with one of these, its steps, the last first."""
        steps, making = [], self.making(t)
        while making is not None:
            parent = making.parent()
            place = next((n for n, each in enumerate(known) if each is parent), making.parent)
            steps.append(MakingStep(making.at, place))
            making = None if isinstance(place, int) else making.earlier
        return (
            tuple(steps) if any(isinstance(parent, int) for _, parent in steps) else self.making(t)
        )

    def made_again(
        self, t: Tensor, made: Making | tuple[MakingStep, ...], known: Sequence[Tensor]
    ) -> None:
        """`t` is the result of another call with these arguments and results, and came about as in
        the first."""
        if isinstance(made, Making):
            self.remember(t, made)
            return
        earlier: Making | None = None
        for at, parent in reversed(made):
            if isinstance(parent, int):
                earlier, parent = self._made.get(known[parent]), weakref.ref(known[parent])
            if earlier is not None and earlier.depth >= MAX_EARLIER:
                earlier = None
            earlier = Making(at, parent, earlier, 0 if earlier is None else earlier.depth + 1)
        if earlier is not None:
            self.remember(t, earlier)

    def wrote_again(self, call: object, written: Sequence[Written]) -> None:
        """A call has written as the one before of its kind did. It is looked at when the cell
        ends."""
        self._again[call] = written

    def stepped(self, optimizer: Optimizer, cell: str, line: int | None) -> None:
        """`optimizer` steps. What it writes is looked for when the cell ends."""
        self._steps[id(optimizer)] = weakref.ref(optimizer), cell, line

    def _look_at_steps(self) -> None:
        """An optimizer's last step has written its tensors, if nothing that was seen did so
        later."""
        for reference, cell, line in self._steps.values():
            optimizer = reference()
            for t in () if optimizer is None else _tensors_of(optimizer):
                self._wrote_last(t, OperationPlace("step", cell, line))
        self._steps.clear()

    def _look_at_repeats(self) -> None:
        """The same for calls that were not looked into."""
        for written in self._again.values():
            for reference, at in written:
                t = reference()
                if t is not None:
                    self._wrote_last(t, at)
        self._again.clear()

    def _wrote_last(self, t: Tensor, at: OperationPlace) -> None:
        version, storage = version_of(t), storage_of(t)
        if version and storage is not None:
            seen = self._seen.get(storage)
            if seen is None or version > seen.version:
                self.wrote(t, version, at)

    def _look_at(self, t: Tensor, cell: str) -> None:
        version, storage = version_of(t), storage_of(t)
        if version is None or storage is None:
            return
        seen = self._seen.get(storage)
        if seen is None:
            self._seen.set(storage, _Seen(version, None))
        elif version > seen.version:
            self.wrote(t, version, OperationPlace("", cell, None))

    def _forget_the_dead(self) -> None:
        self._seen.forget_the_dead()
        self._made.forget_the_dead()


def _tensors_of(optimizer: Optimizer) -> Iterator[Tensor]:
    """The parameters that have a gradient, and the optimizer's own state of them."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if isinstance(parameter, Tensor) and parameter.grad is not None:
                yield parameter
    for state in optimizer.state.values():
        if isinstance(state, dict):
            yield from (t for t in state.values() if isinstance(t, Tensor))


class Watch:
    """A recorder tells it what torch functions wrote and made; modes are off then."""

    def __init__(self, writes: Writes, cell: str) -> None:
        self._writes = writes
        self._cell = cell
        self.written: list[Written] | None = None
        """Gets what is written from now on."""
        self.making_of, self.made_again = writes.making_of, writes.made_again
        self.wrote_again, self.remember = writes.wrote_again, writes.remember

    def after(self, func: Callable, args: tuple, given: Given, result: object) -> None:
        """Look for all that a torch function with the tensor arguments `given` did."""
        for t, before, _ in given:
            if version_of(t) != before:
                self.wrote(t, func, args)
        for t in result if isinstance(result, list | tuple) else (result,):
            if (
                isinstance(t, Tensor)
                and all(t is not other for other, _, _ in given)
                and (t._is_view() or op_name(func) in SHARING)
            ):
                self.made(t, given[0][0], func, args)

    def wrote(self, t: Tensor, func: Callable, args: tuple) -> None:
        version = version_of(t)
        if version is not None:
            at = self._where(op_name(func, args))
            self._writes.wrote(t, version, at)
            if self.written is not None:
                self.written.append(Written(weakref.ref(t), at))

    def made(self, t: Tensor, parent: Tensor, func: Callable, args: tuple) -> None:
        """`t` shares the memory of `parent`."""
        if self._writes.making(t) is None:
            self._writes.made(t, parent, self._where(op_name(func, args)))

    def viewed(self, t: Tensor, parent: Tensor, op: str, place: tuple[str, int] | None) -> None:
        """As `made`, for a view. `place` is the user's innermost line, if it is known."""
        if self._writes.making(t) is None:
            file, line = place or ("", None)
            if file != self._cell:
                line = self._line()
            self._writes.made(t, parent, OperationPlace(op, self._cell, line))

    def stepped(self, optimizer: Optimizer, place: tuple[str, int] | None) -> None:
        """`place` is the user's innermost line, if it is known."""
        file, line = place or ("", None)
        if file != self._cell:
            line = self._line()
        self._writes.stepped(optimizer, self._cell, line)

    def _where(self, op: str) -> OperationPlace:
        return OperationPlace(op, self._cell, self._line())

    def _line(self) -> int | None:
        """The line of the cell that runs."""
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self._cell:
            frame = frame.f_back
        return None if frame is None else frame.f_lineno


def version_of(t: Tensor) -> int | None:
    """The version counter; None for tensors that have none (made in inference mode)."""
    try:
        return t._version
    except RuntimeError:
        return None


def storage_of(t: Tensor) -> torch.UntypedStorage | None:
    """The storage's Python object, which is one and the same while the storage lives."""
    try:
        return t.untyped_storage()
    except Exception:  # layouts without a storage raise errors of several types
        return None
