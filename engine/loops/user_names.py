"""The names that the user's code which runs has for its objects."""

from __future__ import annotations

import ast
import linecache
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from ..recording.compiled import own_path
from ..system.user_files import UsersFrames, is_user_file, variables_of

MAX_INSIDE = 64
"""Lists, tuples and dicts with more elements are not looked into."""
MAX_TEXT = 40
"""The most characters of an expression that stands for a name."""


class UserNames:
    """Looks at `variables()`, those of the code's module, then at those of the frames that run, the
    outermost first: a function gets one object after the other by one name. After each variable it
    looks at what is in it, by attributes and by keys: `agent.optimizer`, `models[0]`. A name that
    it has told is not told for another object, as long as the first has a name."""

    def __init__(self, variables: Callable[[], Mapping[str, object]]) -> None:
        self._variables = variables
        self._frames = UsersFrames()
        self._told: dict[str, weakref.ref[Any]] = {}

    def of(self, thing: object) -> str:
        """The name of an object, or of a parameter in a module; "" if it has none."""
        if isinstance(thing, nn.Parameter):
            return self.parameters().get(id(thing), "")
        named = (name for name, value in self._named() if value is thing)
        return next((name for name in named if self._is_free(name, thing)), "")

    def of_loss(self, root: Tensor) -> str:
        """The name of a tensor on which backward is called now, else the expression on which it
        is called; "" if that cannot be read."""
        for scope in self._scopes():
            for name, value in scope.items():
                if value is root and name != "_":
                    return name
        return self._text_of_root()

    def modules(self) -> dict[str, nn.Module]:
        """The modules that have a name; of several names the first."""
        found: dict[str, nn.Module] = {}
        seen: set[int] = set()
        for name, value in self._named():
            if not issubclass(type(value), nn.Module) or id(value) in seen or name in found:
                continue
            if self._is_free(name, value):
                seen.add(id(value))
                found[name] = value  # pyright: ignore[reportArgumentType]
        return found

    def optimizers(self) -> list[Optimizer]:
        """The optimizers that have a name."""
        return [value for _, value in self._named() if issubclass(type(value), Optimizer)]  # pyright: ignore

    def parameters(self) -> dict[int, str]:
        """The names of the parameters in these modules, and of those that are variables
        themselves, by their ids."""
        found: dict[int, str] = {}
        for name, module in self.modules().items():
            with suppress(Exception):  # of a class of the user's, or of a module that is being made
                for path, parameter in module.named_parameters(name):
                    found.setdefault(id(parameter), own_path(path))
        for name, value in self._named():
            if issubclass(type(value), nn.Parameter):
                found.setdefault(id(value), name)
        return found

    def _scopes(self) -> Iterator[Mapping[str, object]]:
        frame = self._frames.innermost()
        while frame is not None:
            if is_user_file(frame.f_code.co_filename):
                yield variables_of(frame)
            frame = frame.f_back
        yield dict(self._variables())

    def _named(self) -> Iterator[tuple[str, object]]:
        """Variables in the order in which they were made, so that `for each in models` has not its
        own name for each, and after each what is in it."""
        for scope in reversed(list(self._scopes())):
            for name, value in scope.items():
                if name.isidentifier() and name != "_" and not name.startswith("__"):
                    yield name, value
                    yield from _inside(name, value)

    def _is_free(self, name: str, thing: Any) -> bool:
        """Whether a name is not that of another object; it is this one's from now on."""
        told = self._told.get(name)
        other = None if told is None else told()
        is_others = other is not None and other is not thing
        if is_others and any(value is other for each, value in self._named() if each != name):
            return False
        self._told[name] = weakref.ref(thing)
        return True

    def _text_of_root(self) -> str:
        frame = self._frames.innermost()
        if frame is None:
            return ""
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        with suppress(SyntaxError, ValueError):
            calls = [
                node.func.value
                for node in ast.walk(ast.parse(line))
                if isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "backward"
            ]
            text = ast.unparse(calls[0]) if len(calls) == 1 else ""
            return text if len(text) <= MAX_TEXT else ""
        return ""


def _inside(name: str, value: object) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    if kind in (list, tuple, dict):
        assert isinstance(value, list | tuple | dict)
        if len(value) <= MAX_INSIDE:
            items = value.items() if isinstance(value, dict) else enumerate(value)
            yield from [(f"{name}[{key!r}]", inside) for key, inside in items if _is_key(key)]
    elif not issubclass(kind, nn.Module | ModuleType | type | Tensor):
        with suppress(Exception):  # its class may have code of its own there
            attributes = object.__getattribute__(value, "__dict__")
            if type(attributes) is dict:
                for key, inside in list(attributes.items()):
                    yield f"{name}.{key}", inside
                    if type(inside) in (list, tuple, dict):
                        yield from _inside(f"{name}.{key}", inside)


def _is_key(key: object) -> bool:
    return type(key) in (int, str)
