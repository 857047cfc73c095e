"""The objects that a function names, and those that a collection holds."""

from __future__ import annotations

import dis
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from types import CodeType, FunctionType, MethodType

from torch import nn

from ..system.user_files import is_user_file

MAX_ELEMENTS = 1000
"""A list, tuple or dict that is longer is data, and not searched for parameters."""


def reached(value: object) -> Iterator[object]:
    """The value, what it names as a function or holds as a collection, and what these name and
    hold in turn; each once."""
    waiting, seen = [value], set[int]()
    while waiting:
        value = waiting.pop(0)
        if id(value) not in seen:
            seen.add(id(value))
            yield value
            waiting += named_in(value).values()


def named_in(value: object) -> Mapping[str, object]:
    """The objects that a function names, and the elements of a collection; nothing of any other
    value. A method names its module, or the attributes of its object, as `self`."""
    if isinstance(value, FunctionType):
        names = _read_globals(value.__code__) if is_user_file(value.__code__.co_filename) else ()
        known = value.__globals__
        read = {name: known[name] for name in names if name in known}
        return {**read, **_closure(value), **defaults_of(value), **(value.__kwdefaults__ or {})}
    if isinstance(value, MethodType):
        owner = value.__self__
        is_whole = isinstance(owner, nn.Module | type)
        owner = owner if is_whole else getattr(owner, "__dict__", {})
        return {"function": value.__func__, "self": owner}
    if isinstance(value, partial):
        given = {str(place): inner for place, inner in enumerate(value.args)}
        return {"function": value.func, **given, **value.keywords}
    if not isinstance(value, list | tuple | dict) or len(value) > MAX_ELEMENTS:
        return {}
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    return {str(key): inner for key, inner in pairs if "." not in str(key)}


@lru_cache(maxsize=256)
def _read_globals(code: CodeType) -> tuple[str, ...]:
    """The names of globals that the code and the functions inside it read, each once."""
    names = [i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"]
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names += _read_globals(inner)
    return tuple(dict.fromkeys(names))


def _closure(function: FunctionType) -> dict[str, object]:
    found: dict[str, object] = {}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in cells:
        with suppress(ValueError):  # a variable that is not bound yet
            found[name] = cell.cell_contents
    return found


def defaults_of(function: FunctionType) -> dict[str, object]:
    """The defaults of the parameters that may be given by place, by name."""
    values = function.__defaults__ or ()
    places = function.__code__.co_argcount
    names = function.__code__.co_varnames[places - len(values) : places]
    return dict(zip(names, values, strict=True))
