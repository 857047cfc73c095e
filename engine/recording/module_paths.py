"""What the modules that run are called: dotted paths, as in `named_modules()`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import nn

NameOf = Callable[[nn.Module], str]
"""The path of a module; empty where it is not known."""


class ModulePaths:
    """The stack of the modules that run, and their paths; `classes` receives their class names.

    A module that `names` does not know is named after the one around it (`net.layers.0`), or by
    its class where it stands alone.
    """

    def __init__(
        self, names: Mapping[nn.Module, str] | NameOf | None, classes: dict[str, str]
    ) -> None:
        self._names = names
        self._classes = classes
        self._running: list[tuple[nn.Module | None, str]] = []
        self._known: dict[tuple[int, int], tuple[nn.Module, str]] = {}

    @property
    def current(self) -> str:
        return self._running[-1][1] if self._running else ""

    def enter(self, module: nn.Module) -> None:
        around = next((m for m, _ in reversed(self._running) if m is not None), None)
        known = self._known.get((id(around), id(module)))
        if known is None:
            path = self._path_of(module, around)
            known = self._known[id(around), id(module)] = module, path
            self._tell_classes(module, path)
        self._running.append((module, known[1]))

    def leave(self, module: nn.Module) -> None:
        """Also leaves those inside that an exception ended."""
        if any(each is module for each, _ in self._running):
            while self._running.pop()[0] is not module:
                pass

    def enter_scope(self, path: str, title: str) -> None:
        self._classes[path] = title
        self._running.append((None, path))

    def leave_scope(self) -> None:
        while self._running.pop()[0] is not None:
            pass

    def clear(self) -> None:
        self._running.clear()
        self._known.clear()

    def _path_of(self, module: nn.Module, around: nn.Module | None) -> str:
        if around is not None:
            inside = next((n for n, m in around.named_modules() if m is module), "")
            if inside:
                return f"{self.current}.{inside}"
        name = ""
        if isinstance(self._names, Mapping):
            name = self._names.get(module, "")
        elif self._names is not None:
            name = self._names(module)
        if name:
            return name
        name = type(module).__name__
        path = f"{self.current}.{name}" if self._running else name
        taken = {known for _, known in self._known.values()}
        count = 2
        while path in taken:
            path, count = f"{path.split(' ')[0]} {count}", count + 1
        return path

    def _tell_classes(self, module: nn.Module, path: str) -> None:
        for name, inner in module.named_modules():
            self._classes.setdefault(f"{path}.{name}" if name else path, type(inner).__name__)
        self._classes[path] = type(module).__name__
