"""A Python file of the user's, run once as a module, and what it holds that can be worked on."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from types import MethodType, ModuleType
from typing import Any

from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from ..console.output import Output
from ..importing.folder_modules import FolderModules
from ..protocol import FileObject, FileObjectKind
from ..restoring.random_states import States, drawn_from, random_states
from ..system.control import Control
from ..system.errors import LabError
from ..system.signatures import required_parameters, takes_tensors, tensor_methods
from ..system.user_files import keep_source

MAX_IMPORTS = 200
"""The most imported files that are watched."""


Around = Callable[[ModuleType], AbstractContextManager[object]]


@dataclass(frozen=True)
class PythonFile:
    """A file that has run as a module, as `import` would run it: what stands under
    `if __name__ == "__main__":` has not. `root` is the folder to import from, `digest` the SHA-256
    of its source; `imports` has those of the files in its folder, or below, that it has imported.
    `modules` are those files' modules, and its own. `drew`: the states before of the random
    generators that it has drawn from."""

    path: Path
    root: Path
    module: ModuleType
    digest: str
    imports: Mapping[Path, str]
    modules: FolderModules
    drew: States = field(default_factory=dict)

    @property
    def variables(self) -> dict[str, Any]:
        return self.module.__dict__


def run_file(
    path: Path, output: Output, control: Control, around: Around = nullcontext
) -> PythonFile:
    """Run the file as a module. A file in a package runs as a module of that package.

    While its code runs, now or later, its folder (that of the outermost package) is first on
    `sys.path`, and modules beside it are its own: each run of a file imports them again.
    `around(module)` is a context to run it in.

    Raises LabError if the file cannot be read, and whatever its code raises.
    """
    path = path.absolute()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LabError(
            f"{path} cannot be read: {error.strerror}.",
            hint="Put it back, or choose another file.",
        ) from error
    try:
        source = importlib.util.decode_source(data)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise LabError(
            f"{path} is not Python source: {error}.", hint="Choose a Python file in UTF-8."
        ) from error
    root, dotted = _place(path)
    modules = FolderModules(root)
    name = modules.name_of(dotted)
    importlib.invalidate_caches()  # a file may have been written a moment ago
    module = modules.new_module(name, path)
    keep_source(str(path), source)
    before = random_states()
    with (
        output.redirected(),
        modules.current(),
        _as_program(path),
        around(module),
        control.user_code(),
    ):
        for package in _packages(name):
            importlib.import_module(package)
        sys.modules[name] = module
        try:
            exec(compile(source, str(path), "exec"), module.__dict__)
        except BaseException:
            sys.modules.pop(name, None)
            raise
    drew = drawn_from(before, random_states())
    imports = _digests(modules.modules.values(), root, path)
    digest = hashlib.sha256(data).hexdigest()
    return PythonFile(path, root, module, digest, imports, modules, drew)


def objects_in(file: PythonFile) -> tuple[FileObject, ...]:
    """The classes of modules that the file defines, its functions, and the modules, data sets,
    loaders and tensors that it holds, in the order of the file."""
    found = []
    for name, value in file.variables.items():
        kind = None if name.startswith("_") else _kind_of(value, file.module.__name__)
        if kind is not None:
            shown = value if isinstance(value, type) else type(value)
            found.append(
                FileObject(
                    name,
                    kind,
                    shown.__name__,
                    required_parameters(value),
                    takes_tensors=takes_tensors(value),
                    is_bare=isinstance(value, nn.Module) and _is_bare(value),
                    methods=tensor_methods(value) if isinstance(value, nn.Module) else (),
                )
            )
    return tuple(found)


def _kind_of(value: object, module: str) -> FileObjectKind | None:
    if isinstance(value, type):
        is_own = issubclass(value, nn.Module) and value.__module__ == module
        return "class" if is_own else None
    if isinstance(value, nn.Module):
        return "module"
    if isinstance(value, Dataset | DataLoader):
        return "data"
    if isinstance(value, tuple | list) and value and all(isinstance(v, Tensor) for v in value):
        return "data"
    if inspect.isfunction(value) and value.__module__ == module:
        return "function"
    return "function" if isinstance(value, MethodType | partial) else None


def _is_bare(module: nn.Module) -> bool:
    return next(chain(module.parameters(), module.buffers()), None) is None


# -- where the file stands among modules -----------------------------------------------------------


def _place(path: Path) -> tuple[Path, str]:
    """The folder to import from, and the dotted name of the file's module."""
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").is_file() and root.parent != root:
        parts.insert(0, root.name)
        root = root.parent
    if path.stem == "__init__":
        del parts[-1]
    return root, ".".join(parts)


def _packages(name: str) -> list[str]:
    """The packages around a module, the outermost first."""
    parts = name.split(".")[:-1]
    return [".".join(parts[: n + 1]) for n in range(len(parts))]


def _digests(modules: Iterable[ModuleType], root: Path, but: Path) -> dict[Path, str]:
    """The SHA-256 of the source of each module in `root`, without one of them."""
    found: dict[Path, str] = {}
    for module in modules:
        path = Path(getattr(module, "__file__", None) or "")
        is_wanted = path.suffix == ".py" and path != but and path.is_relative_to(root)
        if is_wanted and len(found) < MAX_IMPORTS:
            with suppress(OSError):  # gone since
                found[path] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


@contextmanager
def _as_program(path: Path) -> Iterator[None]:
    """`sys.argv` is the file, as for `python FILE`."""
    argv, sys.argv = sys.argv, [str(path)]
    try:
        yield
    finally:
        sys.argv = argv
