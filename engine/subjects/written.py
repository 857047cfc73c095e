"""How Python writes the modules, parameters and buffers of a module, and lines that use them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from itertools import islice
from keyword import iskeyword
from typing import Any

import torch
from torch import nn

from ..console.output import Output
from ..control import Control
from ..errors import LabError

_SUBJECT = "__subject__"
"""The name that stands for the module in a line that runs."""
_INDEXED = (nn.Sequential.__getitem__, nn.ModuleList.__getitem__, nn.ParameterList.__getitem__)


def written(module: nn.Module, path: str) -> str:
    """What Python writes after the module to reach a part of it: `.encoder[0].weight` for the path
    `encoder.0.weight`, and nothing for the module itself."""
    owner: Any = module
    text = ""
    for name in path.split(".") if path else ():
        text += _step(owner, name)
        owner = getattr(owner, name)
    return text


def _step(owner: nn.Module, name: str) -> str:
    if name.isidentifier() and not iskeyword(name):
        return f".{name}"
    if getattr(type(owner), "__getitem__", None) in _INDEXED and name.isdecimal():
        at_place = next(islice(owner._modules or owner._parameters, int(name), None), "")
        if at_place == name:
            return f"[{name}]"
    if name in owner._modules:
        return f".get_submodule({name!r})"
    kind = "parameter" if name in owner._parameters else "buffer"
    return f".get_{kind}({name!r})"


def run_line(
    source: str,
    expression: str,
    module: nn.Module,
    variables: Mapping[str, Any],
    output: Output,
    control: Control,
) -> None:
    """Run a line of Python in which `expression` stands for the module, also where the expression
    would make another one. `torch` is there besides the variables; names that the line binds are
    lost. Raises LabError if the line raises."""
    try:
        tree = ast.parse(source, "<line>")
        standing = _Standing(ast.dump(ast.parse(expression.strip(), mode="eval").body))
        standing.visit(tree)
        code = compile(ast.fix_missing_locations(tree), "<line>", "exec")
        with output.redirected(), control.user_code():
            exec(code, {"torch": torch, **variables, _SUBJECT: module})
    except Exception as error:  # user code may raise anything
        raise LabError(
            f"{type(error).__name__}: {error}", hint="The line has not ended."
        ) from error


class _Standing(ast.NodeTransformer):
    """Replaces an expression, told by its dump, by the name of the module."""

    def __init__(self, dump: str) -> None:
        self._dump = dump

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr) and ast.dump(node) == self._dump:
            return ast.Name(_SUBJECT, ast.Load())
        return self.generic_visit(node)
