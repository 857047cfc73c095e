"""The operand in a field: a variable's tensor, a number, or just a shape."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property

import torch

from ...console.namespace import Namespace
from ...protocol import ErrorReport
from ...system.errors import LabError, error_report
from ...tensors.error_help import explain_error
from ...tensors.readable import readable

Shape = tuple[int, ...]
NAMES = "abcd"
MAX_DIMS = 8
MAX_ELEMENTS = 1 << 60

_SHAPE = re.compile(r"\(\s*\)|[(\[]?\s*-?\d+\s*(?:[,x×]\s*-?\d+\s*)*,?\s*[)\]]?")
_NUMBER = re.compile(r"-?\d+\.\d*(?:e-?\d+)?")
_EXAMPLES = "Write a variable's name (x), or a shape such as (8, 1, 6, 1); () is a scalar."


@dataclass(frozen=True)
class Operand:
    """`text` is the field's text, `tensor` the variable's own tensor, of any kind and layout; None
    for a typed shape."""

    text: str
    shape: Shape
    tensor: torch.Tensor | None = None

    @property
    def code(self) -> str:
        """The operand as Python; for a typed shape, zeros."""
        return f"torch.zeros({self.shape})" if self.tensor is None else self.text

    @cached_property
    def dense(self) -> torch.Tensor | None:
        """The numbers as a detached strided CPU tensor of this shape, or None."""
        known = None if self.tensor is None else readable(self.tensor)
        return None if known is None or known.partial else known.dense

    @property
    def dtype(self) -> torch.dtype:
        return torch.get_default_dtype() if self.tensor is None else self.tensor.dtype

    def blank(self) -> torch.Tensor:
        """A tensor of this shape and dtype with all strides 0, for trying operations: its memory is
        one element."""
        return torch.zeros((), dtype=self.dtype).expand(self.shape)


def operand(namespace: Namespace, text: str) -> Operand:
    """The operand in a field. Raises LabError if `text` is neither a shape nor the expression of a
    tensor or number."""
    text = text.strip()
    if not text:
        raise LabError("A field for an operand is empty.", hint=_EXAMPLES)
    if _SHAPE.fullmatch(text):
        return Operand(text, _checked(tuple(map(int, re.findall(r"-?\d+", text))), text))
    if _NUMBER.fullmatch(text):
        return Operand(text, (), torch.tensor(float(text)))
    value = namespace.resolve(text)
    if isinstance(value, bool | int | float | complex):
        return Operand(text, (), torch.tensor(value))
    if isinstance(value, torch.Size):
        return Operand(text, _checked(tuple(value), text))
    return _tensor(namespace, text)


def refusal(error: Exception, hint: str = "") -> ErrorReport:
    """torch's own message with `hint`, or else with the usual meaning of such a message."""
    report = error_report(error)
    return ErrorReport(report.type, report.message, hint=hint or explain_error(error))


def _checked(shape: Shape, text: str) -> Shape:
    if len(shape) > MAX_DIMS:
        raise LabError(
            f"`{text}` has {len(shape)} dimensions.", hint=f"Up to {MAX_DIMS} can be shown."
        )
    if any(size < 0 for size in shape):
        raise LabError(
            f"`{text}` has a negative size.",
            hint="Sizes are 0 or more. Only view and reshape take -1.",
        )
    if math.prod(max(size, 1) for size in shape) > MAX_ELEMENTS:
        raise LabError(f"`{text}` is larger than any tensor.", hint="Try smaller sizes.")
    return shape


def _tensor(namespace: Namespace, text: str) -> Operand:
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
    return Operand(text, _checked(shape, text), tensor)
