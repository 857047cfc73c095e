"""A few words on a value that is no tensor: the first describer that fits has the word.

Tensors, numbers and texts that a value holds are named with it; of anything else that it holds
only the class is.
"""

from __future__ import annotations

import dataclasses
import enum
import numbers
from collections.abc import Callable, Iterable, Mapping, Sized
from itertools import islice
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from ..protocol import shape_text
from .tensor_report import or_none

MAX_TEXT = 80
MAX_INSIDE = 8
"""So many things that a value holds are named at most."""
_MAX_BRIEF = 16
_TABLES = ("pandas", "polars")


def words_of(value: object) -> str:
    """ "" if there is nothing to say. Raises what the value's own methods raise."""
    with torch.DisableTorchFunctionSubclass():  # of tensors that it holds
        return next(words(value) for fits, words in DESCRIBERS if fits(value))


def _is_a(*kinds: type) -> Callable[[object], bool]:
    return lambda value: issubclass(type(value), kinds)  # not what `__class__` says


def _is_frame(value: object) -> bool:
    kind = type(value)
    return kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] in _TABLES


def _module(module: Any) -> str:
    return f"{sum(p.numel() for p in module.parameters()):,} parameters"


def _optimizer(optimizer: Any) -> str:
    count = sum(len(group["params"]) for group in optimizer.param_groups)
    return f"lr {optimizer.param_groups[0]['lr']:g}, {count:,} parameter tensors"


def _text(text: Any) -> str:
    return repr(text[:MAX_TEXT])


def _frame(frame: Any) -> str:
    rows, columns = frame.shape
    names = ", ".join(map(str, islice(frame.columns, MAX_INSIDE)))
    return f"{rows:,} rows × {columns:,} columns: {names}"


def _loader(loader: Any) -> str:
    size = loader.batch_size
    return f"{_count(loader, 'batch')}{f' of {size:,}' if size else ''}"


def _dataset(dataset: Any) -> str:
    return _count(dataset, "sample") if isinstance(dataset, Sized) else ""


def _dataclass(value: Any) -> str:
    names = (field.name for field in dataclasses.fields(value))
    return _named((name, getattr(value, name, None)) for name in names)


def _named_tuple(value: Any) -> str:
    return _named(zip(value._fields, value, strict=True))


def _mapping(value: Any) -> str:
    items = dict.items(value)
    named = _named(items) if all(type(key) is str for key, _ in islice(items, MAX_INSIDE)) else ""
    return ": ".join(filter(None, (_count(value, "item"), named)))


def _sequence(value: Any) -> str:
    kinds = (list, tuple)
    held = next(kind.__iter__(value) for kind in kinds if issubclass(type(value), kind))
    inside = ", ".join(map(_brief, islice(held, MAX_INSIDE)))
    return ": ".join(filter(None, (_count(value, "item"), inside)))


def _function(value: Any) -> str:
    return f"function {getattr(value, '__name__', '')}".strip()


def _object(value: Any) -> str:
    """The attributes that its instance has, but for private ones."""
    own = getattr(value, "__dict__", {})
    return _named(own.items() if isinstance(own, Mapping) else ())


DESCRIBERS: tuple[tuple[Callable[[object], bool], Callable[[Any], str]], ...] = (
    (_is_a(nn.Module), _module),
    (_is_a(torch.optim.Optimizer), _optimizer),
    (_is_a(ModuleType), lambda module: module.__name__),
    (_is_a(type), lambda _: "class"),
    (_is_a(str, bytes), _text),
    (_is_a(numbers.Number, np.generic, torch.dtype, torch.device, torch.Size), repr),
    (_is_a(range, slice, enum.Enum), repr),
    (_is_frame, _frame),
    (_is_a(DataLoader), _loader),
    (_is_a(Dataset), _dataset),
    (dataclasses.is_dataclass, _dataclass),
    (_is_a(dict), _mapping),
    (lambda value: issubclass(type(value), tuple) and hasattr(value, "_fields"), _named_tuple),
    (_is_a(list, tuple), _sequence),
    (callable, _function),
    (lambda value: isinstance(value, Sized), lambda value: _count(value, "item")),
    (lambda _: True, _object),
)
"""In order: a dataclass that can be called is a dataclass."""


def _count(value: Sized, what: str) -> str:
    number = len(value)
    plural = f"{what}es" if what.endswith("ch") else f"{what}s"
    return f"{number:,} {what if number == 1 else plural}"


def _named(items: Iterable[tuple[Any, Any]]) -> str:
    shown = ((name, value) for name, value in items if not str(name).startswith("_"))
    return ", ".join(f"{name} {_brief(value)}" for name, value in islice(shown, MAX_INSIDE))


def _brief(value: object) -> str:
    kind = type(value)
    if issubclass(kind, torch.Tensor) or kind is np.ndarray:
        return or_none(lambda: shape_text(value.shape)) or kind.__name__  # pyright: ignore
    if kind in (int, float, complex, bool, type(None)):
        return repr(value)
    if kind is str:
        assert isinstance(value, str)
        return repr(value if len(value) <= _MAX_BRIEF else f"{value[: _MAX_BRIEF - 1]}…")
    return kind.__name__
