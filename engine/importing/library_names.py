"""Which names stand for modules of Python, or of an installed package."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import BuiltinImporter, FrozenImporter, ModuleSpec, PathFinder
from pathlib import Path

from ..system.program import FOLDER
from ..system.user_files import is_user_file


def comes_first(name: str) -> bool:
    """Whether Python finds this module before it looks into the folder of a script: `sys`, `os`."""
    return any(each.find_spec(name) is not None for each in (BuiltinImporter, FrozenImporter))


def is_library(name: str, path: Sequence[str]) -> bool:
    """Whether a top-level name is that of a module of Python's library, of one that is loaded, or
    of one in a folder of `path`, and none of the user's."""
    if name in sys.stdlib_module_names:
        return True
    loaded = sys.modules.get(name)
    if loaded is not None:
        file = getattr(loaded, "__file__", None)
        return file is None or not is_user_file(file)
    spec = PathFinder.find_spec(name, path)
    if spec is None or spec.origin is None or is_user_file(spec.origin):
        return False
    # Where this program is installed to be edited, its folders are found. They are `tensorlab.app`.
    return spec.origin != str(FOLDER / name / "__init__.py")


def place_of(spec: ModuleSpec) -> str:
    """The file of a module, or the folder of a package without one; "" for other modules."""
    if spec.has_location and spec.origin:
        return spec.origin
    return next(iter(spec.submodule_search_locations or ()), "")


def lies_in(place: str, folders: Iterable[Path]) -> bool:
    """Whether a file or folder is the user's and lies in one of these folders, or below."""
    path = Path(place)
    is_users = bool(place) and is_user_file(place)
    return is_users and any(path.is_relative_to(folder) for folder in folders)
