"""Finding the model that an optimizer trains, in a script that does not name it. No code of the
user's runs for it but what their modules have in place of `parameters` and `modules`."""

from __future__ import annotations

import gc
import keyword
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from types import FrameType, ModuleType
from typing import Any

from torch import nn
from torch.optim import Optimizer

from ..system.user_files import is_user_file, variables_of

MAX_UNNAMED = 16
"""Modules that nothing names, of one optimizer."""
_WRAPPED = ("_orig_mod", "module")
"""The names by which modules of torch.compile and DistributedDataParallel hold the one inside."""


def found_for(
    optimizer: Optimizer, taken: Collection[str] = ()
) -> dict[str, nn.Module | Optimizer]:
    """The optimizer and the modules that hold its parameters, by the names that the user's code
    which runs has for them: variables of its frames, or attributes of objects there. Of a module
    and those inside it, the outermost only.

    A module that is deeper in has a name made of its class, `gpt` or `gpt_2`, which is none of
    `taken`. Such modules are sought among all objects of the process, once; a hook in all modules
    would let torch compile again what it has compiled.
    """
    wanted = {id(p) for group in optimizer.param_groups for p in group["params"]}
    names = set(taken)
    named: dict[str, nn.Module | Optimizer] = {}
    for name, value in _named(sys._getframe(1)):
        names.add(name)
        if name in named or not name.isidentifier() or any(value is k for k in named.values()):
            continue
        if value is optimizer or (_is_module(value) and _parameters(value) & wanted):
            named[name] = value
    modules = [value for value in named.values() if isinstance(value, nn.Module)]
    missing = wanted.difference(*map(_parameters, modules))
    if missing:
        holding = [each for each in _all_modules() if _parameters(each) & missing]
        for module in _outermost(holding)[:MAX_UNNAMED]:
            name = _made_name(module, names)
            names.add(name)
            named[name] = module
            modules.append(module)
    outermost = {id(module) for module in _outermost(modules)}
    found = {n: v for n, v in named.items() if v is optimizer or id(v) in outermost}
    if not any(value is optimizer for value in found.values()):
        found["optimizer"] = optimizer
    return found


def _named(frame: FrameType | None) -> Iterator[tuple[str, Any]]:
    """The objects that the frames of the user's code name, the innermost first; then the attributes
    of these objects, as in a class that trains."""
    inside: list[Mapping[str, Any]] = []
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            variables = variables_of(frame)
            yield from list(variables.items())
            for value in list(variables.values()):
                if not issubclass(type(value), nn.Module | ModuleType):
                    inside.append(_attributes(value))
        frame = frame.f_back
    for attributes in inside:
        yield from [item for item in list(attributes.items()) if isinstance(item[0], str)]


def _attributes(value: object) -> dict[str, Any]:
    """The values in the object's `__dict__`; its class may have code of its own there, as a proxy
    of something that is not there yet."""
    with suppress(Exception):
        attributes = object.__getattribute__(value, "__dict__")
        if type(attributes) is dict:
            return attributes
    return {}


def _is_module(value: object) -> bool:
    """As `isinstance`, which would ask the object itself, too: it may warn, or raise."""
    return issubclass(type(value), nn.Module)


def _all_modules() -> list[nn.Module]:
    return [thing for thing in gc.get_objects() if _is_module(thing)]


def _parameters(module: nn.Module) -> set[int]:
    with suppress(Exception):  # of a class of the user's, or of a module that is being made
        return {id(parameter) for parameter in module.parameters()}
    return set()


def _outermost(modules: Iterable[nn.Module]) -> list[nn.Module]:
    """The modules that are not inside another of them."""
    modules = list(modules)
    inner: set[int] = set()
    for module in modules:
        with suppress(Exception):
            inner |= {id(part) for part in module.modules() if part is not module}
    return [module for module in modules if id(module) not in inner]


def _made_name(module: nn.Module, names: Collection[str]) -> str:
    inner = vars(module).get("_modules", {})
    while len(inner) == 1 and (name := next(iter(inner))) in _WRAPPED:
        module = inner[name]
        inner = vars(module).get("_modules", {})
    own = type(module).__name__.lower()
    name, number = own, 1
    while name in names or keyword.iskeyword(name) or not name.isidentifier():
        number += 1
        name = f"{own if own.isidentifier() else 'model'}_{number}"
    return name
