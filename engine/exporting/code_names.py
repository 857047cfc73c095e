"""The user's code in a training script: its files as modules, its cells as statements, and the
expressions that name what is in them."""

from __future__ import annotations

import argparse
import ast
import builtins
import random
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Subset, TensorDataset

from ..console.elsewhere.statements import Statement, names_in, statements_of, whole
from ..console.journal import Cell
from ..restoring.random_states import States, drawn_from, restoring_line
from ..subjects.python_file import PythonFile
from ..system.errors import LabError

IMPORTED = '''\
def imported(name, path, folder, digest):
    """The file as a module, as `import` runs it."""
    if hashlib.sha256(Path(path).read_bytes()).hexdigest() != digest:
        print(f"{path} has changed since this script was written.", file=sys.stderr)
    sys.path.insert(0, folder)
    if "." in name:
        importlib.import_module(name.rpartition(".")[0])
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    arguments, sys.argv = sys.argv, [path]
    spec.loader.exec_module(module)
    sys.argv = arguments
    return module
'''
_IMPORTED: Mapping[str, object] = {
    "torch": torch, "nn": nn, "F": F, "np": np, "Tensor": Tensor, "DataLoader": DataLoader,
    "TensorDataset": TensorDataset, "Subset": Subset, "Path": Path, "Any": Any, "Mapping": Mapping,
    "random": random, "sys": sys, "argparse": argparse, "partial": partial, "islice": islice,
}  # fmt: skip
"""The names that every script imports, too."""
_OF_THE_LAB = ("lab", "canvas")


class CodeNames:
    """Collects what expressions and the step need. `cells` are those of the console that ran,
    `variables` its names; `saved` takes what lies beside the script."""

    def __init__(
        self, cells: Sequence[Cell], variables: Mapping[str, Any], saved: dict[str, Any]
    ) -> None:
        self._cells, self._variables, self.saved = cells, variables, saved
        self._files: dict[Path, tuple[str, PythonFile]] = {}
        self._wanted: set[str] = set()
        self._made: dict[str, object] = {}

    def expression(self, text: str, file: PythonFile | None) -> str:
        """The expression as the script writes it: of a file, or of the console."""
        tree = ast.parse(text.strip(), mode="eval")
        if file is None:
            self._wanted |= names_in(tree)
            return text.strip()
        alias = self._alias(file)
        names = {name for name in names_in(tree) if self._is_from_file(file, name)}
        return ast.unparse(_Qualified(alias, names).visit(tree))

    def step(self, source: str, file: PythonFile | None) -> str:
        """The source of a step, after lines for the names of the file that it reads. Raises
        LabError if it needs what only the program has."""
        tree = ast.parse(source)
        own = {name for node in tree.body for name in _bound(node)}
        reads = names_in(tree) - own - {"model"}
        if lost := reads.intersection(_OF_THE_LAB):
            raise LabError(
                f"The step uses `{min(lost)}`, which only the program has: a script cannot.",
                hint="Return the figures from the step, and leave it away.",
            )
        if file is None:
            self._wanted |= reads
            return source
        alias = self._alias(file)
        found = sorted(name for name in reads if self._is_from_file(file, name))
        self._made |= {name: file.variables.get(name) for name in {*found, *own} - {"step"}}
        lines = "".join(f"{name} = {alias}.{name}\n" for name in found)
        return f"{lines}\n\n{source}" if lines else source

    def source(self) -> str:
        """The lines that import the files, and the statements of the cells. Raises LabError for
        what no cell has made, and for files that import other modules by one name."""
        parts = [IMPORTED, ""] if self._files else []
        taken = self._imported_by_files()
        for alias, file in self._files.values():
            name = file.module.__name__
            is_taken = taken.setdefault(name, str(file.path)) != str(file.path)
            name = alias if is_taken or name.startswith("tensorlab") else name
            given = (name, str(file.path), str(file.root), file.digest)
            parts += self.restoring(file.drew)
            parts += [f"{alias} = imported(", *(f"    {each!r}," for each in given), ")", ""]
        return "\n".join([*parts, *self._statements()])

    def _imported_by_files(self) -> dict[str, str]:
        """The files of the modules that the files have imported, by the modules' names. Raises
        LabError if a name stands for two: a script has one module of a name."""
        found: dict[str, tuple[str, Path]] = {}
        for _, file in self._files.values():
            for name, module in file.modules.loaded().items():
                place = getattr(module, "__file__", None)
                if module is file.module or place is None:
                    continue
                known, by = found.setdefault(name, (place, file.path))
                if known != place:
                    raise LabError(
                        f"{by} and {file.path} each import a `{name}` of their own, and a script"
                        " has only one.",
                        hint=f"Give {known} or {place} another name.",
                    )
        return {name: place for name, (place, _) in found.items()}

    def restoring(self, states: States) -> list[str]:
        """The lines that set generators back to these states."""
        return [
            restoring_line(name, state, self.saved, "saved")
            for name, state in states.items()
            if name != "cuda"
        ]

    def check(self, own: Iterable[str], model: str) -> None:
        """Raise LabError if the script has names of its own that the user's code has, too; `model`
        is the expression of the subject."""
        taken = {*own, "model"} - ({"model"} if model == "model" else set())
        for name in sorted(self._made.keys() & taken):
            if self._made[name] is not _IMPORTED.get(name, _NOTHING):
                raise LabError(
                    f"The script has a `{name}` of its own, so it cannot have that of your code.",
                    hint=f"Give `{name}` another name.",
                )

    def _statements(self) -> list[str]:
        """A cell that may have drawn random numbers comes whole, the generators as they were."""
        known: list[str | Statement] = []
        drew: dict[int, States] = {}
        for cell in self._cells:
            known.append(cell.source)
            if cell.before != cell.after or _SETS_STATE.search(cell.source):
                known[-1] = whole(cell.source)
                drew[id(known[-1])] = drawn_from(cell.before, cell.after)
        found = statements_of(self._wanted, known)
        self._made |= {name: self._variables.get(name) for name in found.makes - {"step"}}
        has = {*_IMPORTED, "model"}
        if missing := [name for name in found.missing if name not in has]:
            raise LabError(
                f"No cell that ran makes `{missing[0]}`: the script cannot have it.",
                hint=f"Make `{missing[0]}` in a cell.",
            )
        lines: list[str] = []
        for each in found.used:
            lines += [*self.restoring(drew.get(id(each), {})), each.text]
        return lines

    def _is_from_file(self, file: PythonFile, name: str) -> bool:
        """Whether the name stands for something of the file that the script does not have."""
        value = file.variables.get(name, _NOTHING)
        if value is _NOTHING or name.startswith("__"):
            return False
        return value is not _IMPORTED.get(name, _NOTHING) and value is not vars(builtins).get(name)

    def _alias(self, file: PythonFile) -> str:
        known = self._files.get(file.path)
        if known is None:
            alias = re.sub(r"\W", "_", file.path.stem) + "_py"
            if any(alias == other for other, _ in self._files.values()):
                alias = f"{alias}{len(self._files) + 1}"
            known = self._files[file.path] = (alias, file)
        return known[0]


_SETS_STATE = re.compile(r"seed|rng_state|set_?state")
"""A cell with these may draw and yet leave a generator as it was: when it runs a second time."""


class _Qualified(ast.NodeTransformer):
    """Names become attributes of the module that has them."""

    def __init__(self, module: str, names: set[str]) -> None:
        self._module, self._names = module, names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._names:
            return node
        return ast.Attribute(ast.Name(self._module, ast.Load()), node.id, node.ctx)


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return {node.name}
    stored = (each for each in ast.walk(node) if isinstance(each, ast.Name))
    return {each.id for each in stored if isinstance(each.ctx, ast.Store)} | {
        (alias.asname or alias.name).split(".")[0]
        for each in ast.walk(node)
        if isinstance(each, ast.Import | ast.ImportFrom)
        for alias in each.names
    }


_NOTHING = object()
