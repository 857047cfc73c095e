"""What stands in a field for an operand: a variable, a number, or a shape that need not exist."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import torch

from ..errors import LabError
from .namespace import Namespace

MAX_DIMS = 8
MAX_ELEMENTS = 1 << 60

_SHAPE = re.compile(r"\(\s*\)|[(\[]?\s*-?\d+\s*(?:[,x×]\s*-?\d+\s*)*,?\s*[)\]]?")
_NUMBER = re.compile(r"-?\d+\.\d*(?:e-?\d+)?")
_EXAMPLES = "Write a variable's name (x), or a shape such as (8, 1, 6, 1); () is a scalar."


@dataclass(frozen=True)
class Operand:
    """`text` as typed. `tensor` is the live tensor, None for a typed shape; it may be a
    parameter and of any layout: go through `readable` for its data."""

    text: str
    shape: tuple[int, ...]
    tensor: torch.Tensor | None = None

    @property
    def dtype(self) -> torch.dtype:
        return torch.get_default_dtype() if self.tensor is None else self.tensor.dtype

    def blank(self) -> torch.Tensor:
        """A tensor of this shape and dtype over one element, for asking torch what it makes of
        the shape: all strides are 0, so that it costs nothing at any size."""
        return torch.zeros((), dtype=self.dtype).expand(self.shape)


def operand(namespace: Namespace, text: str) -> Operand:
    """Raises LabError where `text` is neither a shape nor the expression of a tensor or number."""
    text = text.strip()
    if not text:
        raise LabError("An operand is empty.", hint=_EXAMPLES)
    if _SHAPE.fullmatch(text):
        return Operand(text, typed_shape(text))
    if _NUMBER.fullmatch(text):
        return Operand(text, (), torch.tensor(float(text)))
    value = namespace.resolve(text)
    if isinstance(value, bool | int | float | complex):
        return Operand(text, (), torch.tensor(value))
    if isinstance(value, torch.Size):
        return Operand(text, checked_shape(tuple(value), text))
    return Operand(text, *_shape_and_tensor(namespace, text))


def tensor_operand(namespace: Namespace, text: str) -> Operand:
    """As `operand`, for live tensors only."""
    return Operand(text, *_shape_and_tensor(namespace, text))


def typed_shape(text: str) -> tuple[int, ...]:
    """`(8, 1, 6, 1)`, `8 x 1 x 6` or `8` as a shape. Raises LabError on an impossible one."""
    return checked_shape(tuple(int(size) for size in re.findall(r"-?\d+", text)), text)


def checked_shape(shape: tuple[int, ...], text: str) -> tuple[int, ...]:
    if len(shape) > MAX_DIMS:
        raise LabError(
            f"`{text}` has {len(shape)} dimensions.", hint=f"Up to {MAX_DIMS} can be shown."
        )
    if any(size < 0 for size in shape):
        raise LabError(
            f"`{text}` has a negative size.", hint="Sizes are 0 or more; -1 only means one in view."
        )
    if math.prod(max(size, 1) for size in shape) > MAX_ELEMENTS:
        raise LabError(f"`{text}` is larger than any tensor.", hint="Try smaller sizes.")
    return shape


def _shape_and_tensor(namespace: Namespace, text: str) -> tuple[tuple[int, ...], torch.Tensor]:
    tensor = namespace.tensor(text)
    if tensor.is_nested:
        raise LabError(
            f"`{text}` is nested: its parts differ in shape.",
            hint="Take one part, such as x[0], and look at that.",
        )
    try:
        shape = tuple(int(size) for size in tensor.shape)
    except Exception as error:  # a parameter that is not initialised has no shape
        raise LabError(f"`{text}` has no shape yet: {error}") from error
    return checked_shape(shape, text), tensor
