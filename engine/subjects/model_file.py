"""A model in a file of torch's own: TorchScript, or a program of torch.export. Nothing that Python
would run is taken from the file."""

from __future__ import annotations

import ast
import json
import os
import pickle
import re
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn

from ..project.other_files import model_in
from ..system.errors import LabError
from ..system.private_torch import functions_of_sizes

_WEIGHTS_ONLY = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
_OPERATORS = ("torch.ops.", "_operator.", "math.", "torch.sym_")
_SIZES = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.keyword,
    ast.Name, ast.Load, ast.Constant, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
"""Parts of an expression over sizes: `Max(1, Symbol('s0', integer=True) // 2)`."""
_FUNCTIONS = {
    "Symbol", "Integer", "Float", "Rational", "Add", "Mul", "Pow", "Abs", "Max", "Min", "Mod",
    "And", "Or", "Not", "Eq", "Ne", "Ge", "Gt", "Le", "Lt", "Equality", "Unequality",
    "GreaterThan", "StrictGreaterThan", "LessThan", "StrictLessThan",
}  # fmt: skip
_NAME_OR_NUMBER = re.compile(r"\w+|-?\d+(\.\d+)?(e[+-]?\d+)?")
_HINT = "Ask its author for the Python source and a state_dict."


def load_model(path: Path) -> nn.Module:
    """The module on the CPU. Raises LabError for a file that cannot be read, that holds no model,
    or that only Python could load."""
    kind = model_in(path)
    if kind is None:
        raise LabError(
            f"{path.name} holds no model that can be opened without running Python: no TorchScript"
            " and no program of torch.export.",
            hint="A state_dict is loaded into a subject; a whole pickled module is refused,"
            " because its file may run anything.",
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch.jit is deprecated; its files stay
            return _script(path) if kind == "script" else _program(path)
    except pickle.UnpicklingError as error:
        raise _refused(path, "its tensors are pickled objects that would run code") from error
    except LabError:
        raise
    except Exception as error:  # the readers meet damaged bytes with errors of any kind
        raise LabError(
            f"{path.name} cannot be opened: {type(error).__name__}: {error}",
            hint="It may be damaged, or written by a newer torch.",
        ) from error


def _script(path: Path) -> nn.Module:
    return torch.jit.load(str(path), map_location="cpu")


def _program(path: Path) -> nn.Module:
    """The program's module. It keeps the mode in which it was exported: train() and eval() set
    flags that its operators do not read."""
    _check(path)
    with _weights_only():
        program = torch.export.load(path)
    module = program.module(check_guards=False)  # guards are Python source of the file
    for name in ("train", "eval"):  # of the instance, where they raise
        module.__dict__.pop(name, None)
    return module


def _check(path: Path) -> None:
    """Refuse a program in which torch would look up other functions than operators, or evaluate
    other texts than sizes. Raises LabError."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if any("/aotinductor/" in name for name in names):
            raise _refused(path, "it holds compiled code")
        graphs = [json.loads(archive.read(n)) for n in names if n.endswith(".json")]
    for graph in graphs:
        for key, text in _texts(graph):
            if key == "target" and text.startswith("torch") and not text.startswith(_OPERATORS):
                raise _refused(path, f"it calls {text}, which is not an operator")
            if key == "expr_str" and not _is_size(text):
                raise _refused(path, f"“{text}” is not a size")


def _texts(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a JSON value, with the name that it stands under."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, key)


def _is_size(text: str) -> bool:
    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval")))
    except (SyntaxError, ValueError, RecursionError):
        return False
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return (
        all(isinstance(node, _SIZES) for node in nodes)
        and all(isinstance(called, ast.Name) and _is_of_sizes(called.id) for called in calls)
        and all(_NAME_OR_NUMBER.fullmatch(text) for text in texts if isinstance(text, str))
    )


def _is_of_sizes(function: str) -> bool:
    return function in _FUNCTIONS or function in functions_of_sizes()


def _refused(path: Path, why: str) -> LabError:
    return LabError(f"{path.name} was refused: {why}.", hint=_HINT)


@contextmanager
def _weights_only() -> Iterator[None]:
    """torch.export.load falls back to full pickles; in this context torch.load never does."""
    before = os.environ.get(_WEIGHTS_ONLY)
    os.environ[_WEIGHTS_ONLY] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_WEIGHTS_ONLY]
        else:
            os.environ[_WEIGHTS_ONLY] = before
