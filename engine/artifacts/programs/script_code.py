"""The code of a TorchScript archive as text that is parsed and never run: classes and functions by
their names."""

from __future__ import annotations

import ast
import re

_MANGLE = re.compile(r"\.___torch_mangle_\d+")
_LISTS = {"__parameters__": "parameter", "__buffers__": "buffer"}


class ScriptCode:
    """`problem` says why nothing can be read of it; "" if all can."""

    def __init__(self, files: dict[str, ast.Module], problem: str) -> None:
        self.problem = problem
        self._classes: dict[str, ast.ClassDef] = {}
        self._functions: dict[str, ast.FunctionDef] = {}
        for module, tree in files.items():
            for each in tree.body:
                if isinstance(each, ast.ClassDef):
                    self._classes[f"{module}.{each.name}"] = each
                elif isinstance(each, ast.FunctionDef):
                    self._functions[f"{module}.{each.name}"] = each

    @property
    def is_readable(self) -> bool:
        return not self.problem

    def method(self, class_: str, name: str) -> ast.FunctionDef | None:
        body = self._classes[class_].body if class_ in self._classes else []
        found = (each for each in body if isinstance(each, ast.FunctionDef) and each.name == name)
        return next(found, None)

    def function(self, name: str) -> ast.FunctionDef | None:
        return self._functions.get(name)

    def roles(self, class_: str) -> dict[str, str]:
        """Which attributes of a class are parameters and buffers."""
        found = {}
        for each in self._classes[class_].body if class_ in self._classes else ():
            if not isinstance(each, ast.Assign) or not isinstance(each.targets[0], ast.Name):
                continue
            role = _LISTS.get(each.targets[0].id)
            if role and isinstance(each.value, ast.List):
                found |= {c.value: role for c in each.value.elts if isinstance(c, ast.Constant)}
        return found

    def finals(self, class_: str) -> dict[str, object]:
        """Constants of a class: `eps : Final[float] = 1e-05`."""
        return {
            each.target.id: each.value.value
            for each in (self._classes[class_].body if class_ in self._classes else ())
            if isinstance(each, ast.AnnAssign)
            and isinstance(each.target, ast.Name)
            and isinstance(each.value, ast.Constant)
        }

    @staticmethod
    def class_name(name: str) -> str:
        """The name of a class as its author wrote it."""
        return _MANGLE.sub("", name).rpartition(".")[2][:200]
