"""The modules of one folder of the user's: what its code has imported from there."""

from __future__ import annotations

import builtins
import functools
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, TypeVar

from ..system.current_modules import Current, switch
from ..system.errors import is_ours
from .library_names import comes_first, is_library, lies_in, place_of

PREFIX = "tensorlab_file_"
"""Before the name of a module whose own name a library has."""
OWNER = "__tensorlab_modules__"
"""Among the names of each of the user's modules: the FolderModules that it belongs to."""

Item = TypeVar("Item")


class FolderModules:
    """While these modules are current, code finds them in `sys.modules`, and `roots` first on
    `sys.path`, as with `python FILE`. Nothing of this is left when others become current, and
    everything comes back with them.

    `takes_library_names`: where a file in a root has the name of a library that is installed,
    import statements of the user's files take the file, as with `python FILE`. Its module has
    PREFIX before its name: the libraries and the engine keep theirs. Else they take the library.
    """

    def __init__(self, *roots: Path, takes_library_names: bool = True) -> None:
        _follow_users_code()
        self.roots = roots
        self.modules: dict[str, ModuleType] = {}
        self.takes_library_names = takes_library_names
        self._finder = _Finder(self)
        self._lenders: tuple[FolderModules, ...] = ()
        self._renamed: dict[str, bool] = {}
        self._told: set[str] = set()
        self._claimed: set[str] = set()
        self._path: list[str] | None = None  # sys.path as their code has left it
        # While they are current: what was there before.
        self._outer_path: list[str] = []
        self._outer_names: set[str] = set()
        self._outer_modules: dict[str, ModuleType] = {}
        self._lent: dict[str, ModuleType] = {}

    def borrow(self, lenders: Iterable[FolderModules]) -> None:
        """Let code find the modules of others, too, the first ones first, and what lies in their
        roots. What it has imported from the roots of a new lender, it imports again."""
        lenders = tuple(lenders)
        for each in lenders:
            if each not in self._lenders:
                self.modules = {
                    name: module
                    for name, module in self.modules.items()
                    if not _module_lies_in(module, each.roots)
                }
        self._lenders = lenders

    # -- becoming current ------------------------------------------------------------------------

    @contextmanager
    def current(self) -> Iterator[None]:
        """In this context these modules are current; afterwards those from before are again."""
        before = Current.modules
        switch(self)
        try:
            yield
        finally:
            switch(before)

    def become_current(self) -> None:
        """From now on these modules are current."""
        switch(self)

    def iterated(self, begin: Callable[[], Iterator[Item]]) -> Iterator[Item]:
        """The items of an iterator of their code: it begins, and gives each of them, while these
        modules are current."""
        end: Any = object()
        with self.current():
            items: Iterator[Any] = begin()
        while True:
            with self.current():
                item = next(items, end)
            if item is end:
                return
            yield item

    def enter(self) -> None:
        """For `current` and `become_current` only."""
        self._outer_path, self._outer_names = sys.path[:], set(sys.modules)
        roots = [str(root) for root in self.roots]
        if self._path is None:
            self._path = [*roots, *(entry for entry in sys.path if entry not in roots)]
        sys.path[:] = [*self._path, *self._lent_path]
        self._lent = self._all_lent()
        found = {**self._lent, **self.modules}
        self._outer_modules = {}
        self._hide(name for name in self._outer_names if name in found or self._is_claimed(name))
        sys.modules.update(found)
        sys.meta_path.insert(0, self._finder)

    def leave(self) -> None:
        """As `enter`."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        own, lent_path = self.loaded(), self._lent_path
        self._path = [entry for entry in sys.path if entry not in lent_path]
        sys.path[:] = self._outer_path
        for name in (*own, *self._lent):
            sys.modules.pop(name, None)
        sys.modules.update(self._outer_modules)
        self.modules, self._lent, self._outer_modules = own, {}, {}

    def _hide(self, names: Iterable[str]) -> None:
        self._outer_modules |= {name: sys.modules.pop(name) for name in tuple(names)}

    def _is_claimed(self, name: str) -> bool:
        return bool(self._claimed) and name.partition(".")[0] in self._claimed

    def _claim(self, top: str) -> None:
        """A module of the user's that is loaded from elsewhere, under the name of one in a root, is
        not found here."""
        loaded = sys.modules.get(top)
        if top in self._claimed or loaded is None or self._in_roots(top) is None:
            return
        if not _module_lies_in(loaded, self._folders) and not is_library(top, self._library_path):
            self._claimed.add(top)
            self._hide(name for name in sys.modules if self._is_claimed(name))

    @property
    def _lent_path(self) -> list[str]:
        roots = dict.fromkeys(root for each in self._lenders for root in each.roots)
        return [str(root) for root in roots if root not in self.roots]

    def _all_lent(self) -> dict[str, ModuleType]:
        """Each package is of one lender; where these have a file of that name in their own roots,
        of one with such a root."""
        found: dict[str, ModuleType] = {}
        tops = {name.partition(".")[0] for name in self.modules}
        for each in self._lenders:
            is_beside = not set(self.roots).isdisjoint(each.roots)
            new = {
                name: module
                for name, module in each.modules.items()
                if (top := name.partition(".")[0]) not in tops
                and (is_beside or self._in_roots(top) is None)
            }
            found |= new
            tops |= {name.partition(".")[0] for name in new}
        return found

    def loaded(self) -> dict[str, ModuleType]:
        """The modules by now."""
        if Current.modules is not self:
            return self.modules
        new = sys.modules.keys() - self._outer_names - self.modules.keys()
        folders = self._folders
        own = [name for name in self.modules if name in sys.modules]
        own += [name for name in new if _module_lies_in(sys.modules[name], folders)]
        return {
            name: sys.modules[name] for name in own if sys.modules[name] is not self._lent.get(name)
        }

    @property
    def _folders(self) -> list[Path]:
        """Where they are imported from: the roots, and what their code has added to sys.path."""
        outer = {Path(entry).absolute() for entry in self._outer_path}
        added = [Path(entry).absolute() for entry in sys.path]
        return [*self.roots, *(path for path in added if path not in outer)]

    def new_module(self, name: str, path: Path) -> ModuleType:
        """A module of these, which has not run."""
        spec = spec_from_file_location(name, path, loader=_Loader(self, name, str(path)))
        assert spec is not None
        module = module_from_spec(spec)
        vars(module)[OWNER] = self
        return module

    # -- names -----------------------------------------------------------------------------------

    def name_of(self, dotted: str) -> str:
        """The name in `sys.modules` of the module that files of the roots import by this name."""
        top, dot, rest = dotted.partition(".")
        if not self.takes_library_names:
            return dotted
        if top not in self._renamed:
            self._renamed[top] = self._takes_place_of_library(top)
        return f"{PREFIX}{top}{dot}{rest}" if self._renamed[top] else dotted

    def _takes_place_of_library(self, top: str) -> bool:
        if comes_first(top) or top in self.modules:
            return False
        return self._in_roots(top) is not None and is_library(top, self._library_path)

    def _in_roots(self, top: str) -> ModuleSpec | None:
        """The file or package of this name in the roots. A folder without an `__init__.py` gives
        way to a library, in Python too."""
        spec = PathFinder.find_spec(top, [str(root) for root in self.roots])
        return spec if spec is not None and spec.origin is not None else None

    @property
    def _library_path(self) -> Sequence[str]:
        path = self._outer_path if Current.modules is self else sys.path
        roots = {str(root) for root in self.roots}
        return [entry for entry in path if str(Path(entry).absolute()) not in roots]

    # -- imports ---------------------------------------------------------------------------------

    def imported_name(self, name: str) -> str:
        """As `name_of`, while they are current; the user is told, once, where it is not the
        library's."""
        top, found = name.partition(".")[0], self.name_of(name)
        self._claim(top)
        if found != name and top not in self._told:
            self._told.add(top)
            file = self._in_roots(top)
            assert file is not None and file.origin is not None
            place = Path(file.origin)
            named = f"{top}/" if place.stem == "__init__" else place.name
            print(
                f"{named} beside your code has the name of a library: `import {top}` in your files"
                f" takes {named}, as `python FILE` does. If it is not meant, rename {named}.",
                file=sys.stderr,
            )
        return found

    def find_spec(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """For Python's import, while these modules are current."""
        if path is not None:
            return self._ours(PathFinder.find_spec(name, path), name)
        if name.startswith(PREFIX):
            found = self._in_roots(name.removeprefix(PREFIX))
            return None if found is None else self._ours(found, name)
        if comes_first(name):
            return None
        if self._in_roots(name) is not None and is_library(name, self._library_path):
            return PathFinder.find_spec(name, self._library_path)
        return self._ours(PathFinder.find_spec(name), name)

    def _ours(self, spec: ModuleSpec | None, name: str) -> ModuleSpec | None:
        """The module with the builtins of the user's files, if it is one of them."""
        if spec is None or not lies_in(place_of(spec), self._folders):
            return spec
        if type(spec.loader) is not SourceFileLoader or spec.origin is None:
            return spec if spec.name == name else None
        loader = _Loader(self, name, spec.origin)
        places = spec.submodule_search_locations
        return spec_from_file_location(
            name, spec.origin, loader=loader, submodule_search_locations=places
        )


class _Finder(MetaPathFinder):
    def __init__(self, modules: FolderModules) -> None:
        self._modules = modules

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return self._modules.find_spec(fullname, path)


class _Loader(SourceFileLoader):
    """Runs the source as it is now: bytecode of an edit in the same second would be an old one."""

    def __init__(self, modules: FolderModules, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self._modules = modules

    def exec_module(self, module: ModuleType) -> None:
        vars(module)[OWNER] = self._modules
        super().exec_module(module)

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _module_lies_in(module: ModuleType, folders: Iterable[Path]) -> bool:
    file = getattr(module, "__file__", None)
    if isinstance(file, str):
        return lies_in(file, folders)
    spec = getattr(module, "__spec__", None)
    return isinstance(spec, ModuleSpec) and lies_in(place_of(spec), folders)


# -- import statements of the user's code --------------------------------------------------------


def _owner(frame: FrameType | None) -> FolderModules | None:
    """The modules that the innermost frame of a user's file belongs to; None if this program calls
    from inside of it."""
    while frame is not None and not is_ours(frame.f_code.co_filename):
        found = frame.f_globals.get(OWNER)
        if found is not None:
            return found
        frame = frame.f_back
    return None


@functools.cache
def _follow_users_code() -> None:
    """Let an import statement in a module of the user's, and `importlib.import_module` and `reload`
    that it calls, look among the modules that it belongs to."""
    import_statement = builtins.__import__
    import_module, reload = importlib.import_module, importlib.reload

    @functools.wraps(import_statement)
    def import_for_module(
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        modules = None if globals is None else globals.get(OWNER)
        if modules is None:
            return import_statement(name, globals, locals, fromlist, level)
        with modules.current():
            found = name if level else modules.imported_name(name)
            return import_statement(found, globals, locals, fromlist, level)

    @functools.wraps(import_module)
    def import_for_caller(name: str, package: str | None = None) -> ModuleType:
        modules = _owner(sys._getframe(1))
        if modules is None:
            return import_module(name, package)
        with modules.current():
            found = name if name.startswith(".") else modules.imported_name(name)
            return import_module(found, package)

    @functools.wraps(reload)
    def reload_for_caller(module: ModuleType) -> ModuleType:
        modules = _owner(sys._getframe(1))
        with nullcontext() if modules is None else modules.current():
            return reload(module)

    builtins.__import__ = import_for_module
    importlib.import_module, importlib.reload = import_for_caller, reload_for_caller
