"""The names of modules that run: dotted paths, as in `named_modules()`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from types import CodeType, FrameType

from torch import nn

from .compiled import own_modules, own_path

NameOf = Callable[[nn.Module], str]
"""The path of a module; empty where it is not known."""

_Reference = Callable[[], nn.Module | None]
"""A weak reference to a module."""

MAX_KNOWN = 1_000
"""How many modules are known before the dead among them are forgotten."""

_Site = tuple[str, CodeType | None, int]
"""A name, and the instruction of the user's code under which a module of this name ran."""


class ModulePaths:
    """The stack of the modules that run, and their paths; `classes` receives their class names.

    A module that `names` does not know is named after the one around it (`net.layers.0`), or by
    its class where it stands alone. Paths are found when they are asked for. Modules are not kept
    alive: one that is made anew in each turn of a loop takes the name of the turn before.
    """

    def __init__(
        self,
        names: Mapping[nn.Module, str] | NameOf | None,
        classes: dict[str, str],
        users_frame: Callable[[], FrameType | None] = lambda: None,
    ) -> None:
        self._names = names
        self._classes = classes
        self._users_frame = users_frame
        self.running: list[nn.Module | None] = []  # None is a scope
        self._paths: list[str | None] = []  # None is not found yet
        self._known: dict[tuple[int, int], tuple[_Reference, _Reference, str]] = {}
        self._alone: dict[_Site, tuple[_Reference, str]] = {}
        self._counts: dict[str, int] = {}
        self._limit = MAX_KNOWN

    @property
    def current(self) -> str:
        paths = self._paths
        if not paths:
            return ""
        path = paths[-1]
        return path if path is not None else self._find()

    def of(self, module: nn.Module) -> str:
        """The path of a module that would be entered now."""
        around = self.running[-1] if self.running else None
        known = self._known.get((id(around), id(module)))
        if known is not None and known[0]() is module and known[1]() is around:
            return known[2]
        self.enter(module)
        path = self.current
        self.leave(module)
        return path

    def enter(self, module: nn.Module) -> None:
        self.running.append(module)
        self._paths.append(None)

    def leave(self, module: nn.Module) -> None:
        """Leave a module, and with it those inside that an exception ended."""
        running = self.running
        if running and running[-1] is module:
            del running[-1], self._paths[-1]
            return
        for depth in range(len(running) - 1, -1, -1):
            if running[depth] is module:
                del running[depth:], self._paths[depth:]
                return

    def enter_scope(self, path: str, title: str) -> None:
        self._classes[path] = title
        self.running.append(None)
        self._paths.append(path)

    def leave_scope(self) -> None:
        while self.running.pop() is not None:
            self._paths.pop()
        self._paths.pop()

    def clear(self) -> None:
        self.running.clear()
        self._paths.clear()
        self._known.clear()
        self._alone.clear()
        self._counts.clear()

    def _find(self) -> str:
        """Find the paths of all that run."""
        around, path_around = None, ""
        for depth, module in enumerate(self.running):
            path = self._paths[depth]
            if path is None:
                assert module is not None
                path = self._paths[depth] = self._known_path(module, around, path_around)
            around = around if module is None else module
            path_around = path
        return path_around

    def _known_path(self, module: nn.Module, around: nn.Module | None, path_around: str) -> str:
        key = id(around), id(module)
        known = self._known.get(key)
        if known is not None and known[0]() is module and known[1]() is around:
            return known[2]
        if len(self._known) >= self._limit:
            self._forget_the_dead()
        path = self._path_of(module, around, path_around)
        outer = _nothing if around is None else weakref.ref(around)
        self._known[key] = weakref.ref(module), outer, path
        self._tell_classes(module, path)
        return path

    def _forget_the_dead(self) -> None:
        self._known = {key: each for key, each in self._known.items() if each[0]() is not None}
        self._limit = max(MAX_KNOWN, 2 * len(self._known))

    def _path_of(self, module: nn.Module, around: nn.Module | None, path_around: str) -> str:
        if around is not None:
            inside = next((n for n, m in around.named_modules() if m is module), None)
            if inside:
                inside = own_path(inside)
                return f"{path_around}.{inside}" if inside else path_around
        name = ""
        if isinstance(self._names, Mapping):
            name = self._names.get(module, "")
        elif self._names is not None:
            name = self._names(module)
        if name:
            return name
        name = type(module).__name__
        return self._path_alone(module, f"{path_around}.{name}" if path_around else name)

    def _path_alone(self, module: nn.Module, name: str) -> str:
        """`name`, with a number if another module has it."""
        frame = self._users_frame()
        site = (name, None, 0) if frame is None else (name, frame.f_code, frame.f_lasti)
        last = self._alone.get(site)
        if last is not None and frame is not None and last[0]() is None:
            path = last[1]
        else:
            count = self._counts[name] = self._counts.get(name, 0) + 1
            path = name if count == 1 else f"{name} {count}"
        self._alone[site] = weakref.ref(module), path
        return path

    def _tell_classes(self, module: nn.Module, path: str) -> None:
        for name, inner, _ in own_modules(module):
            self._classes.setdefault(f"{path}.{name}" if name else path, type(inner).__name__)
        self._classes[path] = type(module).__name__


_nothing = type(None)
"""Gives the module around one that stands alone, and takes no Python function for it."""
