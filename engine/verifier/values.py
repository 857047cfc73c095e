"""The inputs and outputs of a model as plain values, and how far two outputs are apart."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from msgspec import Struct
from torch import Tensor

from .jobs import Entry

_TOLERANCES = {
    torch.float64: (1e-7, 1e-9),
    torch.float32: (1e-3, 1e-5),
    torch.float16: (1e-2, 1e-3),
    torch.bfloat16: (5e-2, 1e-2),
}
"""By dtype: the relative tolerance, and the absolute one as a share of the largest number of the
output (of 1, if that is larger)."""


class Case(Struct):
    """A call of the live model: its arguments, its outputs one after the other, and which of these
    are drawn at random. `seed` is set before the call."""

    batch_size: int
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: list[Tensor]
    drawn: list[bool]
    seed: int = 0


class ModuleCall(Struct):
    """A call of a module inside the live model. `number` counts the calls of the same module."""

    path: str
    number: int
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: list[Tensor]


class Difference(NamedTuple):
    """How far one output of the program is from the live model's: the largest absolute and the
    largest relative difference of its elements, and whether each element is within the
    tolerance."""

    absolute: float
    relative: float
    agrees: bool


def write(path: Path, items: list[Any]) -> None:
    """Write cases or calls, so that `read_cases` and `read_calls` read them without pickles."""
    fields = [{name: getattr(item, name) for name in item.__struct_fields__} for item in items]
    torch.save(fields, path)


def read_cases(path: str) -> list[Case]:
    return [Case(**fields) for fields in torch.load(path, weights_only=True)]


def read_calls(path: str) -> list[ModuleCall]:
    return [ModuleCall(**fields) for fields in torch.load(path, weights_only=True)]


def is_plain(value: Any) -> bool:
    """Whether a value is of tensors, numbers and texts in tuples, lists and dicts."""
    if type(value) in (tuple, list):
        return all(map(is_plain, value))
    if type(value) is dict:
        return all(isinstance(key, str | int) for key in value) and all(
            map(is_plain, value.values())
        )
    return value is None or isinstance(value, Tensor | bool | int | float | str)


def leaves(value: Any) -> list[Tensor]:
    """The tensors and numbers in an output, one after the other; numbers as tensors."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, bool | int | float):
        return [torch.tensor(value)]
    if isinstance(value, Mapping):
        return [leaf for item in value.values() for leaf in leaves(item)]
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in leaves(item)]
    if fields := getattr(value, "__dataclass_fields__", None):
        return [leaf for name in fields for leaf in leaves(getattr(value, name))]
    return []


def difference(expected: Tensor, found: Tensor) -> Difference:
    """How far `found` is from `expected`. NaNs are equal, and so are infinities of one sign; either
    is infinitely far from any other number."""
    if expected.shape != found.shape:
        return Difference(math.inf, math.inf, False)
    if expected.numel() == 0:
        return Difference(0.0, 0.0, True)
    wide = torch.complex128 if expected.is_complex() else torch.float64
    x, y = (t.detach().to_dense().cpu().to(wide).reshape(-1) for t in (expected, found))
    same = (x == y) | (x.isnan() & y.isnan())
    apart = (x - y).abs().masked_fill(same, 0.0).nan_to_num(math.inf, math.inf)
    size = x.abs().nan_to_num(0.0, 0.0)
    relative = torch.where(apart == 0, 0.0, apart / size)
    of_size, of_all = _TOLERANCES.get(expected.dtype, (1e-3, 1e-5))
    if not (expected.is_floating_point() or expected.is_complex()):
        of_size = of_all = 0.0
    allowed = of_size * size + of_all * max(1.0, float(size.max()))
    return Difference(float(apart.max()), float(relative.max()), bool((apart <= allowed).all()))


def entry(tensor: Tensor) -> Entry:
    """The tensor described: its dtype, its shape and a digest of its bits."""
    raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    digest = hashlib.sha256(raw.numpy()).hexdigest()  # pyright: ignore[reportArgumentType]
    return Entry(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), digest)
