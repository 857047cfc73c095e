"""Finding the model that an optimizer trains, in a script that does not name it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from torch import nn
from torch.optim import Optimizer

from ..recording.user_files import is_user_file, variables_of


def found_for(optimizer: Optimizer) -> dict[str, nn.Module | Optimizer]:
    """The optimizer and the modules that hold its parameters, by the names that the user's code
    which runs has for them: variables of its frames, or attributes of objects there. Of a module
    and those inside it, the outermost only."""
    parameters = {id(p) for group in optimizer.param_groups for p in group["params"]}
    found: dict[str, nn.Module | Optimizer] = {}
    for name, value in _named(sys._getframe(1)):
        if (
            name in found
            or not name.isidentifier()
            or any(value is known for known in found.values())
        ):
            continue
        is_model = isinstance(value, nn.Module) and any(
            id(p) in parameters for p in value.parameters()
        )
        if is_model or value is optimizer:
            found[name] = value
    models = [module for module in found.values() if isinstance(module, nn.Module)]
    inner = {id(part) for module in models for part in module.modules() if part is not module}
    found = {name: value for name, value in found.items() if id(value) not in inner}
    if not any(value is optimizer for value in found.values()):
        found["optimizer"] = optimizer
    return found


def _named(frame: FrameType | None) -> Iterator[tuple[str, Any]]:
    """What the frames of the user's code name, the innermost first; then what is an attribute of an
    object in them, as in a class that trains."""
    inside: list[Mapping[str, Any]] = []
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            variables = variables_of(frame)
            yield from list(variables.items())
            for value in list(variables.values()):
                if not isinstance(value, nn.Module) and isinstance(
                    attributes := getattr(value, "__dict__", None), dict
                ):
                    inside.append(attributes)
        frame = frame.f_back
    for attributes in inside:
        yield from list(attributes.items())
