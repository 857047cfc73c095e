"""Tensors of ONNX whose numbers stand in fields of their own, or have fewer than 8 bits."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import torch
from torch import Tensor

from ..contents.artifact import Place
from ..contents.file_bytes import require_memory
from .protobuf import Field, integers

_FLOAT, _INT32, _INT64, _DOUBLE, _UINT64 = 4, 5, 7, 10, 11
FIELDS = (_FLOAT, _INT32, _INT64, _DOUBLE, _UINT64)
_BITS = {2: torch.uint16, 1: torch.uint8}


@dataclass(frozen=True, slots=True)
class TypedNumbers:
    """The numbers as they stand in the file: those of half precision and 8 bits as whole numbers
    that have their bits, complex ones as real part, imaginary part, real part, ..."""

    dtype: torch.dtype
    values: tuple[float, ...]

    def read(self, shape: tuple[int, ...]) -> Tensor:
        is_bits = self.dtype.is_floating_point and self.dtype.itemsize < 4
        if is_bits:
            flat = torch.tensor(self.values, dtype=_BITS[self.dtype.itemsize]).view(self.dtype)
        elif self.dtype.is_complex:
            part = torch.float32 if self.dtype == torch.complex64 else torch.float64
            flat = torch.view_as_complex(torch.tensor(self.values, dtype=part).view(-1, 2))
        else:
            flat = torch.tensor(self.values, dtype=self.dtype)
        return flat.view(shape)


@dataclass(frozen=True, slots=True)
class PackedNumbers:
    """Numbers of 2 or 4 `bits`, several in a byte of `place`, the first in its lowest bits. They
    are read as int8 or uint8, or with `values` as these, by their bits."""

    place: Place
    bits: int
    is_signed: bool = False
    values: tuple[float, ...] = ()

    def read(self, shape: tuple[int, ...]) -> Tensor:
        count, inside = math.prod(shape), 8 // self.bits
        require_memory(16 * count, "A tensor")
        packed = self.place.read((-(-count // inside),))
        shifts = torch.arange(0, 8, self.bits, dtype=torch.uint8)
        flat = (packed[:, None] >> shifts & 2**self.bits - 1).flatten()[:count]
        if self.values:
            flat = torch.tensor(self.values)[flat.long()]
        elif self.is_signed:
            flat = flat.to(torch.int8)
            flat -= (flat >> self.bits - 1) << self.bits
        return flat.view(shape)


def numbers_of(typed: list[Field]) -> tuple[float, ...]:
    """The numbers in fields of FIELDS. Raises ValueError and struct.error."""
    found: list[float] = []
    for field in typed:
        if field.number in (_FLOAT, _DOUBLE):
            code = "<f" if field.number == _FLOAT else "<d"
            found += [value for (value,) in struct.iter_unpack(code, field.data)]
        elif field.number == _UINT64:
            found += [value % (1 << 64) for value in integers(field)]
        else:
            found += integers(field)
    return tuple(found)
