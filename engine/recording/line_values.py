"""A value as a line of code had it: tensors kept, the rest in a few words, at a bounded cost.

None of the user's own code runs for it: no `__repr__`, no property, no `__iter__`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx

from .argument_values import KeptTensor, OtherArgument

MAX_ITEMS = 8
MAX_DEPTH = 3
MAX_CHARACTERS = 80
MAX_BITS = 256

MISSING = object()
"""Stands for a name that has no value."""

CTX_NAMES = {
    "to_save": "saved_tensors",
    "dirty_tensors": "dirty_tensors",
    "non_differentiable": "non_differentiable",
}
"""Methods of ctx that a Function's forward calls (`save_for_backward`, `mark_dirty`,
`mark_non_differentiable`), and our names for them."""
_CTX_FACTS = frozenset({*CTX_NAMES, "needs_input_grad"})
_TENSOR_FACTS = frozenset({"shape", "dtype", "device", "requires_grad", "is_leaf", "ndim"})
_PLAIN = (
    type(None), bool, float, complex, range, type(...),
    torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size,
)  # fmt: skip


def is_a(value: object, *kinds: type) -> bool:
    """As isinstance, by the real type: `__class__` of the object is not asked."""
    return issubclass(type(value), kinds)


def is_data(value: object) -> bool:
    """Whether `value` is shown where a line only reads it: not so for functions and objects."""
    if is_a(value, Tensor, int, str, bytes, np.ndarray, np.generic, *_PLAIN):
        return True
    return is_a(value, tuple, list, dict, set, frozenset)


def glimpse(value: Any, keep: Callable[[Tensor], KeptTensor], depth: int = MAX_DEPTH) -> Any:
    """`value` with `keep(t)` for each tensor, down to a bounded depth."""
    if is_a(value, Tensor):
        return keep(value)
    if type(value) in _PLAIN or type(value) is OtherArgument:
        return value
    if is_a(value, int):
        bits = int.bit_length(value)
        return int.__int__(value) if bits <= MAX_BITS else OtherArgument(f"an int of {bits:,} bits")
    if is_a(value, str, bytes):
        text = repr(value[:MAX_CHARACTERS]) if type(value) in (str, bytes) else type(value).__name__
        return OtherArgument(text + "…" if len(value) > MAX_CHARACTERS else text)
    if is_a(value, np.ndarray):
        return OtherArgument(f"array {tuple(value.shape)} {value.dtype}")
    if is_a(value, np.generic):
        return OtherArgument(f"{value.dtype}({value})")
    if is_a(value, tuple, list, dict):
        return _container(value, keep, depth)
    return OtherArgument(_words(value))


def _container(value: Any, keep: Callable[[Tensor], KeptTensor], depth: int) -> Any:
    size = len_of(value)
    if not depth:
        return OtherArgument(f"{type(value).__name__} of {size:,}")
    more = [OtherArgument(f"… {size - MAX_ITEMS:,} more")] if size > MAX_ITEMS else []
    if is_a(value, dict):
        items = {
            _key(key): glimpse(item, keep, depth - 1)
            for key, item in islice(dict.items(value), MAX_ITEMS)
        }
        return {**items, **dict.fromkeys(more, OtherArgument(""))}
    seen = [glimpse(item, keep, depth - 1) for item in islice(items_of(value), MAX_ITEMS)]
    return [*seen, *more] if is_a(value, list) else (*seen, *more)


def _key(key: object) -> Any:
    return key if type(key) in (str, int, bool, float) else OtherArgument(_words(key))


def _words(value: object) -> str:
    """`class Gelu`, `function f`, `set of 3`; else the name of its type."""
    if is_a(value, type):
        return f"class {type.__dict__['__name__'].__get__(value)}"
    if is_a(value, ModuleType):
        return "module"
    if is_a(value, set, frozenset):
        return f"{type(value).__name__} of {len_of(value):,}"
    return type(value).__name__


def len_of(value: Any) -> int:
    base = next(kind for kind in (tuple, list, dict, set, frozenset) if is_a(value, kind))
    return base.__len__(value)


def items_of(value: Any) -> Iterator[Any]:
    base = next(kind for kind in (tuple, list, dict, set, frozenset) if is_a(value, kind))
    return iter(dict.items(value)) if base is dict else base.__iter__(value)


# -- names ---------------------------------------------------------------------------------------


def attribute(value: object, name: str) -> Any:
    """The value of an attribute that can be read without running code of the user: one in the
    object's own `__dict__`, or a property of torch that has no side effect. Else MISSING."""
    if is_a(value, FunctionCtx) and name in _CTX_FACTS:
        return getattr(value, name, MISSING)
    if is_a(value, Tensor):
        is_told = name in _TENSOR_FACTS or (name == "grad" and getattr(value, "is_leaf", False))
        return getattr(value, name) if is_told else MISSING
    if is_a(value, ModuleType):
        return MISSING
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return MISSING
    if type(own) is not dict:  # a class
        return MISSING
    if name in own:
        return own[name]
    if is_a(value, nn.Module):
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in own.get(kind, ()):
                return own[kind][name]
    return MISSING
