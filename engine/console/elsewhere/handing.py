"""Values of the console, handed to another process of the lab.

Functions and classes of cells are defined there again, by their statements. Other values are
pickled; one that cannot be pickled is made again by the statements that made it here.
"""

from __future__ import annotations

import ast
import inspect
import io
import pickle
import pickletools
from collections.abc import Iterable, Mapping
from types import ModuleType

import msgspec
import torch

from ...system.control import Control
from ...system.errors import LabError
from ..namespace import Namespace
from ..output import Output
from .statements import names_in, statements_making

_MAIN = "__main__"
"""The module of the functions and classes of cells."""
_HINT = "Make it in a cell of its own, of what can be made again; or train in one process."


class Handed(msgspec.Struct, frozen=True):
    """`first`: values that need no class of the cells, pickled; `definitions`: Python that defines
    functions and classes; `then`: the other values; `made`: Python that makes those that cannot be
    pickled. They are taken in this order."""

    first: bytes
    definitions: str
    then: bytes
    made: str


def handed(namespace: Namespace, names: Iterable[str]) -> bytes:
    """The statements and values from which another process gets these names. Raises LabError that
    tells why it cannot."""
    with namespace.as_main():
        return msgspec.msgpack.encode(_Handing(namespace).of(names))


def take(namespace: Namespace, data: bytes, output: Output, control: Control) -> None:
    """Give the names their values in this process's console. Raises LabError if they cannot have
    them here."""
    given = msgspec.msgpack.decode(data, type=Handed)
    with namespace.as_main():
        namespace.variables.update(_loaded(given.first))
    _run(namespace, given.definitions, output, control)
    with namespace.as_main():
        try:
            namespace.variables.update(_loaded(given.then))
        except Exception as error:  # classes of the user's code may raise anything
            raise LabError(
                "The values of the console cannot be made in another process:"
                f" {type(error).__name__}: {error}",
                hint=_HINT,
            ) from error
    _run(namespace, given.made, output, control)


def _run(namespace: Namespace, source: str, output: Output, control: Control) -> None:
    if not source:
        return
    error, _ = namespace.run(source, "<cell>", output, control)
    if error is not None:
        raise LabError(
            "The statements of the console raised an error in another process:"
            f" {type(error).__name__}: {error}",
            hint=_HINT,
        ) from error


class _Handing:
    """Collects what some names need, and what that needs."""

    def __init__(self, namespace: Namespace) -> None:
        self._cells = namespace.journal.sources
        self._variables = {
            name: value
            for name, value in namespace.variables.items()
            if namespace.initial.get(name, _NOTHING) is not value
        }
        self._values: dict[str, object] = {}
        self._definitions: list[str] = []
        self._made: list[str] = []

    def of(self, names: Iterable[str]) -> Handed:
        wanted, seen = [*names], set[str]()
        while wanted:
            name = wanted.pop()
            if name not in seen and name in self._variables:
                wanted += self._take(name, self._variables[name])
            seen.add(name)
        first, then = self._in_two()
        return Handed(first, self._sorted(self._definitions), then, self._sorted(self._made))

    def _take(self, name: str, value: object) -> Iterable[str]:
        """The names that this one needs."""
        if isinstance(value, ModuleType):
            self._definitions.append(f"import {value.__name__} as {name}")
            return ()
        is_code = inspect.isfunction(value) or inspect.isclass(value)
        if is_code and value.__module__ == _MAIN:
            return self._made_again(name, self._definitions, f"it is a {type(value).__name__}")
        try:
            needed = _classes_in(pickle.dumps(value))
        except Exception as error:  # objects of the user's code may raise anything
            return self._made_again(name, self._made, f"it cannot be pickled ({error})")
        self._values[name] = value
        return needed

    def _made_again(self, name: str, among: list[str], why: str) -> Iterable[str]:
        found = statements_making(name, self._cells)
        if not found:
            raise LabError(
                f"Another process cannot have `{name}` of the console: {why}, and no cell that ran"
                " to its end makes it.",
                hint=_HINT,
            )
        among += (each.text for each in found)
        return set().union(*(each.reads for each in found))

    def _in_two(self) -> tuple[bytes, bytes]:
        """The values that need no class of the cells, and the others; each part in one pickle, so
        that what they share is shared there, too."""
        of_cells = {n: v for n, v in self._values.items() if _classes_in(pickle.dumps(v))}
        others = {n: v for n, v in self._values.items() if n not in of_cells}
        return _saved(others), _saved(of_cells)

    def _sorted(self, texts: list[str]) -> str:
        """Each once, in the order of the cells; imports of modules come first."""
        whole = "\n".join(self._cells)
        return "\n".join(sorted(dict.fromkeys(texts), key=lambda text: whole.rfind(text)))


_NOTHING = object()


def _saved(values: Mapping[str, object]) -> bytes:
    """The values as torch.save writes them: tensors that share a storage share it there, too."""
    buffer = io.BytesIO()
    torch.save(dict(values), buffer)
    return buffer.getvalue()


def _loaded(data: bytes) -> Mapping[str, object]:
    return torch.load(io.BytesIO(data), weights_only=False)  # this program wrote it


def _classes_in(data: bytes) -> set[str]:
    """The names of cells that a pickle refers to: classes and functions."""
    found, texts = set[str](), list[str]()
    for code, argument, _ in pickletools.genops(data):
        if isinstance(argument, str):
            texts.append(argument)
        if code.name == "STACK_GLOBAL" and _MAIN in texts[-2:]:
            found.add(texts[-1].split(".")[0])
    return found


def names_of(expressions: Iterable[str], source: str = "") -> frozenset[str]:
    """The names that expressions, and code, read from around them."""
    trees = [ast.parse(text, mode="eval") for text in expressions if text]
    return frozenset().union(*map(names_in, [*trees, ast.parse(source)]))
