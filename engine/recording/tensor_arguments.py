"""The tensors among a call's arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Parameter

from ..system.private_torch import OpOverloadPacket
from .writes import Given, version_of


def given_tensors(args: Iterable[Any], kwargs: Mapping[str, Any]) -> Given:
    given = []
    try:
        for value in (*args, *kwargs.values()) if kwargs else args:
            kind = type(value)
            if kind is Tensor or kind is Parameter:
                given.append((value, value._version, value.requires_grad))
            elif kind not in _PLAIN:
                break
        else:
            return given
    except RuntimeError:  # tensors of the inference mode have no version
        pass
    return [(t, version_of(t), t.requires_grad) for t in tensors_of(args, kwargs)]


def is_tensor(value: object) -> bool:
    """As isinstance, which takes long for a Parameter and for a plain number."""
    kind = type(value)
    return kind is Tensor or kind is Parameter or (kind not in _PLAIN and isinstance(value, Tensor))


def tensors_of(args: Iterable[Any], kwargs: Mapping[str, Any]) -> Iterator[Tensor]:
    for value in (*args, *kwargs.values()) if kwargs else args:
        if is_tensor(value):
            yield value
        elif type(value) in (list, tuple):
            yield from (item for item in value if is_tensor(item))


def in_order(name: str, kwargs: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Keyword arguments in the order in which torch's function `name` takes them; None where there
    are several tensors and that order is not known."""
    if sum(is_tensor(value) for value in kwargs.values()) < 2:
        return kwargs
    order = _order(name, frozenset(kwargs))
    return None if order is None else {key: kwargs[key] for key in order}


@lru_cache(maxsize=1_024)
def _order(name: str, keywords: frozenset[str]) -> tuple[str, ...] | None:
    packet = getattr(torch.ops.aten, name, None)
    if not isinstance(packet, OpOverloadPacket):
        return None
    for overload in packet.overloads():
        arguments = [each.name for each in getattr(packet, overload)._schema.arguments]
        # What an operator calls `self` is `input` in Python.
        known = ["input" if each == "self" else each for each in arguments]
        if keywords <= set(known):
            return tuple(each for each in known if each in keywords)
    return None


def statistics(func: Any, args: tuple) -> tuple[Any, ...]:
    """The running statistics among a normalisation's arguments: they are given no gradient."""
    if func is F.batch_norm or func is F.instance_norm:
        return args[1:3]
    return args[3:5] if func is torch.batch_norm or func is torch.instance_norm else ()


def tensor_arguments(func: Any, args: tuple, kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """The values that the call gave for each tensor argument of the operator's schema, lists
    opened."""
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


_PLAIN = frozenset({type(None), bool, int, float, str, slice, torch.dtype, torch.Size})
"""Types that are neither tensors nor hold some."""
