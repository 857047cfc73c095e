"""The tensors among a call's arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from torch import Tensor


def tensors_of(args: Iterable[Any], kwargs: Mapping[str, Any]) -> Iterator[Tensor]:
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor):
            yield value
        elif type(value) in (list, tuple):
            yield from (item for item in value if isinstance(item, Tensor))


def tensor_arguments(func: Any, args: tuple, kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """What stands for each tensor argument of the operator's schema, lists opened."""
    for place, argument in enumerate(func._schema.arguments):
        if "Tensor" not in str(argument.type):
            continue
        value = args[place] if place < len(args) else kwargs.get(argument.name)
        if isinstance(value, list | tuple):
            yield from value
        else:
            yield value


def written(func: Any, args: tuple, kwargs: Mapping[str, Any]) -> Iterator[Tensor]:
    """The tensors that the operator writes to."""
    for place, argument in enumerate(func._schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        value = args[place] if place < len(args) else kwargs.get(argument.name)
        values = value if isinstance(value, list | tuple) else (value,)
        yield from (t for t in values if isinstance(t, Tensor))
