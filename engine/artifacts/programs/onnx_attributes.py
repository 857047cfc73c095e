"""Attributes of the nodes of an ONNX model: words, graphs and tensors."""

from __future__ import annotations

import struct
from typing import NamedTuple

from ..contents.artifact import digest, plain, shortened
from .protobuf import Field, fields, float32, integers

MAX_NUMBERS = 100
"""The most numbers of an attribute that are told; a digest stands for the rest."""


class Attribute(NamedTuple):
    """An attribute: its value in words, equal for equal ones, but for the graphs and tensors that
    it is, of which some are sparse."""

    message: Field
    name: str
    text: str
    graphs: tuple[Field, ...]
    tensors: tuple[tuple[bool, Field], ...]

    @property
    def told(self) -> tuple[str, str]:
        return self.name, self.text


def attribute_of(message: Field) -> Attribute:
    name, texts = "", []
    graphs: list[Field] = []
    tensors: list[tuple[bool, Field]] = []
    rest: list[bytes] = []
    for each in fields(message.data, message.offset):
        match each.number:
            case 1:
                name = plain(each.text, 200)
            case 2:
                texts.append(_float_text(float32(each)))
            case 3:
                texts.append(str(each.integer))
            case 4 | 9:
                texts.append(f"“{shortened(each.text, 200)}”")
            case 5 | 10 | 22 | 23:
                texts.append("a tensor")
                tensors.append((each.number in (22, 23), each))
            case 6 | 11:
                texts.append("a graph: the box beside it")
                graphs.append(each)
            case 7:
                data = each.data[: 4 * MAX_NUMBERS]
                texts += [_float_text(value) for (value,) in struct.iter_unpack("<f", data)]
                rest.append(bytes(each.data[len(data) :]))
            case 8:
                numbers = integers(each)
                texts += map(str, numbers[:MAX_NUMBERS])
                if len(numbers) > MAX_NUMBERS:
                    rest.append(bytes(each.data))
            case 14 | 15:
                texts.append(f"a type {digest(each.data)}")
            case 21:
                texts.append(f"the attribute {plain(each.text, 200)} of the function")
    if len(texts) > MAX_NUMBERS:
        rest.append(", ".join(texts[MAX_NUMBERS:]).encode())
    shown = texts[:MAX_NUMBERS]
    if any(rest):
        shown.append(f"… {digest(b''.join(rest))}")
    text = shortened(", ".join(shown), 500)
    return Attribute(message, name, text, tuple(graphs), tuple(tensors))


def _float_text(number: float) -> str:
    """A number of 32 bits in as few digits as tell it from all others."""
    short = f"{number:g}"
    is_exact = struct.pack("<f", float(short)) == struct.pack("<f", number)
    return short if is_exact else f"{number:.9g}"
