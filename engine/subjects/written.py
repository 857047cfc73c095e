"""How Python writes the modules, parameters and buffers of a module."""

from __future__ import annotations

from itertools import islice
from keyword import iskeyword
from typing import Any

from torch import nn

_INDEXED = (nn.Sequential.__getitem__, nn.ModuleList.__getitem__, nn.ParameterList.__getitem__)


def written(module: nn.Module, path: str) -> str:
    """The Python after the module's name that reaches a part of it: `.encoder[0].weight` for the
    path `encoder.0.weight`, and nothing for the module itself."""
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
