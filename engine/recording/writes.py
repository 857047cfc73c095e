"""Who wrote a storage last, and which operation made a view: watched while a cell runs.

The recorder (`recorder`) tells of each torch function; the version counters of its arguments
before and after the call are compared. Watching keeps no tensor alive.
"""

from __future__ import annotations

import linecache
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import sendable
from ..protocol import WrittenBy

MAX_LINE = 200
SHARING = frozenset({"detach", "data"})
"""Operations whose result shares memory and is not a view in autograd's sense."""


@dataclass(frozen=True)
class Making:
    """How a tensor came to share memory: `where.op` made it from `parent`, which `earlier` had made
    (this is kept because the parent in a chain like `x.T[0]` does not live long)."""

    where: WrittenBy
    parent: weakref.ref[Tensor]
    earlier: Making | None


@dataclass(frozen=True)
class _Seen:
    """A storage's version when it was last looked at, and the write that led to it."""

    storage: weakref.ref
    version: int
    written_by: WrittenBy | None


class Writes:
    """Remembers the last write to each living storage, and how each living tensor was made."""

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}
        self._made: dict[int, tuple[weakref.ref[Tensor], Making]] = {}

    @contextmanager
    def watch(self, cell: str, tensors: Callable[[], Iterable[Tensor]]) -> Iterator[Watch]:
        """Watch the code that runs inside; `cell` is the file name of its frames. Its recorder must
        call the yielded Watch `after` each torch function.

        A write that no torch function call showed (backward adding into a `.grad`) is found
        afterwards, among `tensors()`, and remembered without an operation.
        """
        try:
            yield Watch(self, cell)
        finally:
            with torch._C.DisableTorchFunction():
                for t in tensors():
                    self._look_at(t, cell)
            self._forget_the_dead()

    def last_write(self, t: Tensor) -> WrittenBy | None:
        """The last write to the storage under `t`; None where there was none since it was made."""
        with torch._C.DisableTorchFunction():
            storage = storage_of(t)
        seen = self._seen.get(id(storage))
        return seen.written_by if seen is not None and seen.storage() is storage else None

    def making(self, t: Tensor) -> Making | None:
        """The operation by which `t` shares another tensor's memory; None if none was seen."""
        found = self._made.get(id(t))
        return found[1] if found is not None and found[0]() is t else None

    def wrote(self, t: Tensor, version: int, where: WrittenBy) -> None:
        storage = storage_of(t)
        if storage is not None:
            self._seen[id(storage)] = _Seen(weakref.ref(storage), version, where)

    def made(self, t: Tensor, parent: Tensor, where: WrittenBy) -> None:
        making = Making(where, weakref.ref(parent), self.making(parent))
        self._made[id(t)] = (weakref.ref(t), making)

    def _look_at(self, t: Tensor, cell: str) -> None:
        version, storage = version_of(t), storage_of(t)
        if version is None or storage is None:
            return
        seen = self._seen.get(id(storage))
        if seen is None or seen.storage() is not storage:
            self._seen[id(storage)] = _Seen(weakref.ref(storage), version, None)
        elif version > seen.version:
            self.wrote(t, version, WrittenBy(op="", cell=sendable(cell)))

    def _forget_the_dead(self) -> None:
        self._seen = {key: seen for key, seen in self._seen.items() if seen.storage() is not None}
        self._made = {key: made for key, made in self._made.items() if made[0]() is not None}


class Watch:
    """Gets from a recorder each torch function with tensor arguments."""

    def __init__(self, writes: Writes, cell: str) -> None:
        self._writes = writes
        self._cell = cell

    def after(
        self,
        func: Callable,
        args: tuple,
        given: Sequence[tuple[Tensor, int | None, bool]],
        result: object,
    ) -> None:
        """`given` has each tensor of the call, and its version before it; modes are off."""
        for t, before, _ in given:
            version = version_of(t)
            if version is not None and version != before:
                self._writes.wrote(t, version, self._where(func, args))
        for t in result if isinstance(result, list | tuple) else (result,):
            if (
                isinstance(t, Tensor)
                and all(t is not other for other, _, _ in given)
                and (t._is_view() or op_name(func) in SHARING)
                and self._writes.making(t) is None
            ):
                self._writes.made(t, given[0][0], self._where(func, args))

    def _where(self, func: Callable, args: tuple) -> WrittenBy:
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self._cell:
            frame = frame.f_back
        line = frame.f_lineno if frame is not None else None
        text = linecache.getline(self._cell, line).strip() if line else ""
        return WrittenBy(
            op=op_name(func, args),
            cell=sendable(self._cell),
            line=line,
            text=sendable(text[:MAX_LINE]),
        )


def op_name(func: Callable, args: tuple = ()) -> str:
    """What people call a torch function: `add_`, `|=`, `[0, 1:] =`, and `T` for the property."""
    name = getattr(func, "__name__", "") or str(func)
    if name in ("__get__", "__set__"):
        return getattr(getattr(func, "__self__", None), "__name__", name)
    if name in ("__getitem__", "__setitem__"):
        index = index_text(args[1]) if len(args) > 1 else "…"
        return f"[{index}]" if name == "__getitem__" else f"[{index}] ="
    return _OPERATORS.get(name, name)


def index_text(index: object) -> str:
    """An index as it is typed; a tensor or list in it is `…`."""
    if type(index) is tuple:
        return ", ".join(map(index_text, index)) if index else "()"
    if index is Ellipsis:
        return "..."
    if index is None or type(index) in (int, bool):
        return str(index)
    if type(index) is slice:
        ends = ("" if end is None else index_text(end) for end in (index.start, index.stop))
        text = ":".join(ends)
        return text if index.step is None else f"{text}:{index_text(index.step)}"
    return "…"


_OPERATORS = {
    "__iand__": "&=",
    "__ior__": "|=",
    "__ixor__": "^=",
    "__ilshift__": "<<=",
    "__irshift__": ">>=",
}
"""Operators that torch calls by the names of methods: `+=` is add_."""


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
