"""The wire format of protocol buffers: the fields of a message, by number, without a schema."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple


class Field(NamedTuple):
    """`value` is a whole number, or the bytes of a text, a message or a packed list. These begin at
    `offset` of the whole file."""

    number: int
    value: int | memoryview
    offset: int

    @property
    def data(self) -> memoryview:
        if isinstance(self.value, int):
            raise ValueError("a number where bytes are expected")
        return self.value

    @property
    def integer(self) -> int:
        """The number as a signed one of 64 bits."""
        if not isinstance(self.value, int):
            raise ValueError("bytes where a number is expected")
        return self.value - (1 << 64) if self.value >> 63 else self.value

    @property
    def text(self) -> str:
        return bytes(self.data).decode(errors="backslashreplace")


def fields(data: memoryview, offset: int = 0) -> Iterator[Field]:
    """The fields of a message that begins at `offset` of the file. Raises ValueError."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise ValueError("a field without a number")
        if kind == 0:
            value, at = _varint(data, at)
            yield Field(number, value, offset + at)
        elif kind == 2:
            length, at = _varint(data, at)
            if at + length > end:
                raise ValueError("it is cut off")
            yield Field(number, data[at : at + length], offset + at)
            at += length
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            if at + size > end:
                raise ValueError("it is cut off")
            yield Field(number, data[at : at + size], offset + at)
            at += size
        else:
            raise ValueError(f"a field of wire type {kind}")


def integers(field: Field) -> list[int]:
    """The numbers of a repeated field of whole numbers, packed or one at a time."""
    if isinstance(field.value, int):
        return [field.integer]
    found, at = [], 0
    while at < len(field.value):
        value, at = _varint(field.value, at)
        found.append(value - (1 << 64) if value >> 63 else value)
    return found


def float32(field: Field) -> float:
    return struct.unpack("<f", field.data)[0]


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("it is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & ((1 << 64) - 1), at
        shift += 7
