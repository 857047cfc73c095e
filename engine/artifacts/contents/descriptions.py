"""Descriptions of the objects in a pickle: globals, objects, storages and tensors, none of which is
made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True)
class Global:
    """A class, function or constant that a pickle names. `value` is torch's dtype, or the dtype of
    a class of storages."""

    name: str
    value: Any = None


@dataclass(eq=False)
class OtherObject:
    """An object of a class that has no other description here."""

    name: str
    state: Any = None


@dataclass(frozen=True)
class StorageOf:
    """A storage in the file: its key, and how many elements of which dtype it has."""

    key: str
    dtype: torch.dtype
    count: int


@dataclass(frozen=True)
class TensorOf:
    """A tensor of a storage, whose numbers are the conjugates or the negatives of the stored ones
    where torch has put that off. Without a storage it has no numbers that can be read: `note` says
    why; `inner` are the tensors that it is made of."""

    storage: StorageOf | None
    dtype: torch.dtype
    shape: Any
    start: Any = 0
    stride: Any = None
    is_conjugate: bool = False
    is_negative: bool = False
    is_parameter: bool = False
    note: str = ""
    inner: Mapping[str, TensorOf] = field(default_factory=dict)


class NotAPickle(Exception):
    """The bytes are no pickle, or damaged."""
