"""Reads a pickle as a description: which objects it would make, from which arguments. Nothing that
a pickle names is imported or called; what is more than weights is refused by its name."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import lru_cache
from io import BytesIO
from typing import Any

import torch

from ...system.errors import LabError
from ...system.private_torch import get_allowed_globals
from .constructors import CALLS, JAGGED, pairs
from .descriptions import Global, NotAPickle, OtherObject, StorageOf

MAX_PICKLE_BYTES = 64 * 2**20
MAX_OPERATIONS = 3_000_000
"""A tensor takes about 40."""
MAX_REFUSED = 5
_GETATTR = "builtins.getattr"
MEMORY_FORMAT = "torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING"
"""An enum. Some releases of Python 3.11 pickle a member of it as a call of getattr."""


class MoreThanWeights(Exception):
    """The pickle asks for globals that are more than weights: `names`."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


def refusal(name: str, found: MoreThanWeights) -> LabError:
    """Why a file was refused, and what to do."""
    names = ", ".join(found.names[:MAX_REFUSED])
    more = len(found.names) - MAX_REFUSED
    return LabError(
        f"{name} was refused: its pickle asks for {names}{f' and {more} more' if more > 0 else ''},"
        " which is more than weights and could run any code. Nothing of it was run.",
        hint="Ask its author for a state_dict (torch.save(model.state_dict(), path)) or a"
        " .safetensors file.",
    )


def read_pickle(data: bytes, classes: Callable[[str], bool] = lambda name: False) -> Any:
    """The description of the one pickle in `data`. `classes` tells which other classes may be
    described as OtherObject. Raises MoreThanWeights and NotAPickle."""
    return read_first(BytesIO(data), classes)


def read_first(file: Any, classes: Callable[[str], bool] = lambda name: False) -> Any:
    """The description of the next pickle in a binary file."""
    reader = _Reader(file, classes)
    try:
        value = reader.load()
    except (LabError, MoreThanWeights):
        raise
    except Exception as error:  # damaged bytes fail in many ways
        if reader.refused:
            raise MoreThanWeights(list(reader.refused)) from None
        raise NotAPickle(_words(error)) from error
    if reader.refused:
        raise MoreThanWeights(list(reader.refused))
    return value


def _words(error: Exception) -> str:
    """Why damaged bytes are no pickle; Python's own words would tell how it reads them."""
    if isinstance(error, NotAPickle):
        return str(error)
    if isinstance(error, EOFError | IndexError) or "truncated" in str(error):
        return "it is cut off, or takes a value that it has not made"
    if isinstance(error, UnicodeDecodeError):
        return "it has a name that cannot be decoded as text"
    if isinstance(error, KeyError) or "Memo value" in str(error):
        return "an operation that there is none of, or a value that it has not kept"
    return "its operations do not fit together"


@lru_cache(maxsize=1)
def _torch_allows() -> dict[str, Any]:
    return get_allowed_globals()


class _Counted(dict):
    """The table of what each operation does, which counts how many were looked up."""

    left = MAX_OPERATIONS

    def __getitem__(self, code: int) -> Any:
        self.left -= 1
        if self.left < 0:
            raise LabError(f"The pickle has more than {MAX_OPERATIONS:,} operations.")
        return super().__getitem__(code)


class _Reader(pickle._Unpickler):
    """Python's own machine, in which each operation that would call something makes a description
    instead."""

    stack: list[Any]
    append: Callable[[Any], None]
    pop_mark: Callable[[], list[Any]]
    readline: Callable[[], bytes]

    def __init__(self, file: Any, classes: Callable[[str], bool]) -> None:
        super().__init__(file, encoding="utf-8")
        self.refused: dict[str, None] = {}
        self._classes = classes
        self.dispatch = _Counted(_OPERATIONS)  # pyright: ignore[reportAttributeAccessIssue]

    def find_class(self, module: str, name: str) -> Any:
        module = "builtins" if module == "__builtin__" else module
        full = f"{module}.{name}"
        if self._classes(full) or (full == _GETATTR and self._classes(MEMORY_FORMAT)):
            return Global(full)
        if full in JAGGED:
            return Global(full)
        allowed = _torch_allows().get(full)
        if allowed is None:
            self.refused.setdefault(ascii(full)[1:-1][:200])
            return Global(full)
        dtype = allowed if isinstance(allowed, torch.dtype) else getattr(allowed, "dtype", None)
        if full == "torch.storage.UntypedStorage":
            dtype = torch.uint8
        return Global(full, dtype if isinstance(dtype, torch.dtype) else None)

    def persistent_load(self, pid: Any) -> Any:
        if not (isinstance(pid, tuple) and len(pid) >= 5 and pid[0] == "storage"):
            raise NotAPickle("a persistent id that is not a storage")
        kind, key, count = pid[1], pid[2], pid[4]
        if not (isinstance(kind, Global) and isinstance(kind.value, torch.dtype)):
            raise NotAPickle("a storage of no dtype")
        if type(count) is not int or not 0 <= count < 2**60 or not isinstance(key, str):
            raise NotAPickle("a storage of no size")
        if len(pid) > 5 and isinstance(pid[5], tuple):  # a view of another storage, before 0.4
            raise NotAPickle("a storage that is a view of another")
        return StorageOf(key, kind.value, count)

    # -- operations --------------------------------------------------------------------------------

    def call(self) -> None:
        args = self.stack.pop()
        self.stack[-1] = self._called(self.stack[-1], args)

    def _called(self, function: Any, args: Any) -> Any:
        if not isinstance(function, Global) or not isinstance(args, tuple):
            raise NotAPickle("a call of what is not a function")
        if function.name in self.refused:
            return OtherObject(function.name)
        if function.name == _GETATTR:
            return self._member(*args)
        if function.name == "torch._tensor._rebuild_from_type_v2":
            return self._called(args[0], args[2])
        make = CALLS.get(function.name)
        if make is not None:
            return make(*args)
        if self._classes(function.name):
            return OtherObject(function.name, args)
        raise NotAPickle(f"a call of {function.name}")

    def _member(self, of: Any = None, name: Any = None, *_: Any) -> OtherObject:
        """The result of getattr: a member of the one enum; all else is refused."""
        if not (isinstance(of, Global) and of.name == MEMORY_FORMAT and isinstance(name, str)):
            self.refused.setdefault(_GETATTR)
        return OtherObject(MEMORY_FORMAT, (name,))

    def make(self) -> None:
        args = self.stack.pop()
        kind = self.stack.pop()
        if not isinstance(kind, Global) or not isinstance(args, tuple):
            raise NotAPickle("an object of no class")
        if self._classes(kind.name) or kind.name in self.refused:
            self.stack.append(OtherObject(kind.name, args or None))
        else:
            self.stack.append(self._called(kind, args))

    def make_with_names(self) -> None:
        self.stack.pop()
        self.make()

    def build(self) -> None:
        state = self.stack.pop()
        made = self.stack[-1]
        if isinstance(made, OtherObject):
            made.state = state

    def set_item(self) -> None:
        value = self.stack.pop()
        key = self.stack.pop()
        self._put_items([key, value])

    def set_items(self) -> None:
        self._put_items(self.pop_mark())

    def _put_items(self, items: list[Any]) -> None:
        into = self.stack[-1]
        if isinstance(into, OtherObject):  # of a class that is refused
            return
        if not isinstance(into, dict):
            raise NotAPickle("items for what is not a dict")
        into.update(pairs(items))

    def dict_of(self) -> None:
        items = self.pop_mark()  # from here on, `append` is that of the stack below the mark
        self.append(pairs(items))

    def append_all(self) -> None:
        self._extend(self.pop_mark())

    def append_one(self) -> None:
        self._extend([self.stack.pop()])

    def _extend(self, items: list[Any]) -> None:
        into = self.stack[-1]
        if isinstance(into, OtherObject):
            return
        if not isinstance(into, list):
            raise NotAPickle("items for what is not a list")
        into += items

    def empty_set(self) -> None:
        self.append([])

    def frozen_set(self) -> None:
        items = self.pop_mark()
        self.append(items)

    def instance(self) -> None:
        module = self.readline()[:-1].decode("ascii")
        name = self.readline()[:-1].decode("ascii")
        self._instance(self.find_class(module, name), self.pop_mark())

    def object_of(self) -> None:
        args = self.pop_mark()
        self._instance(args.pop(0), args)

    def _instance(self, kind: Any, args: list[Any]) -> None:
        name = kind.name if isinstance(kind, Global) else "?"
        self.append(self._member(*args) if name == _GETATTR else OtherObject(name))

    def extension(self) -> None:
        raise NotAPickle("a class by its number")


_OPERATIONS: dict[int, Callable[[Any], None]] = {
    **pickle._Unpickler.dispatch,
    pickle.REDUCE[0]: _Reader.call,
    pickle.NEWOBJ[0]: _Reader.make,
    pickle.NEWOBJ_EX[0]: _Reader.make_with_names,
    pickle.BUILD[0]: _Reader.build,
    pickle.SETITEM[0]: _Reader.set_item,
    pickle.SETITEMS[0]: _Reader.set_items,
    pickle.DICT[0]: _Reader.dict_of,
    pickle.APPEND[0]: _Reader.append_one,
    pickle.APPENDS[0]: _Reader.append_all,
    pickle.ADDITEMS[0]: _Reader.append_all,
    pickle.EMPTY_SET[0]: _Reader.empty_set,
    pickle.FROZENSET[0]: _Reader.frozen_set,
    pickle.INST[0]: _Reader.instance,
    pickle.OBJ[0]: _Reader.object_of,
    pickle.EXT1[0]: _Reader.extension,
    pickle.EXT2[0]: _Reader.extension,
    pickle.EXT4[0]: _Reader.extension,
}
