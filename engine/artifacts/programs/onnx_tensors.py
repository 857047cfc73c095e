"""The tensors of an ONNX model: in it, in its nodes, or in files beside it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import torch

from ...tensors.readable import dtype_name
from ..contents.artifact import Entry, Place, file_beside, plain, shortened
from ..contents.file_bytes import FileBytes, checked_shape
from .protobuf import Field, fields, float32, integers
from .typed_numbers import PackedNumbers, TypedNumbers, numbers_of

DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64",
    15: "complex128", 16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz",
    19: "float8_e5m2", 20: "float8_e5m2fnuz", 24: "float8_e8m0fnu",
}  # fmt: skip
OTHERS = {8: "string", 21: "uint4", 22: "int4", 23: "float4_e2m1", 25: "uint2", 26: "int2",
          27: "float6_e2m3", 28: "float6_e3m2"}  # fmt: skip


_FLOAT4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_PACKED = {
    21: (4, False, ()), 22: (4, True, ()), 23: (4, False, (*_FLOAT4, *(-x for x in _FLOAT4))),
    25: (2, False, ()), 26: (2, True, ()),
}  # fmt: skip
_STRING = 8


def tensor_of(path: Path, message: Field, parts: dict[str, Path], key: str = "") -> Entry:
    """The tensor of a message, under its own name without a `key`. One of texts is a value."""
    name, kind, dims, location = "", 0, [], 0
    texts: list[bytes] = []
    raw: Field | None = None
    typed: list[Field] = []
    external: dict[str, str] = {}
    for each in fields(message.data, message.offset):
        match each.number:
            case 1:
                dims += integers(each)
            case 2:
                kind = each.integer
            case 8:
                name = each.text
            case 9:
                raw = each
            case 13:
                external.update([pair_of(each)])
            case 14:
                location = each.integer
            case 4 | 5 | 7 | 10 | 11:
                typed.append(each)
            case 6:
                texts.append(bytes(each.data))
    key = key or plain(name, 500)
    shape = checked_shape(key, dims)
    if kind == _STRING:
        return _texts(key, shape, texts)
    if kind not in DTYPES and kind not in _PACKED:
        other = OTHERS.get(kind, f"type {kind}")
        return Entry(key, "tensor", shape, other, note=f"torch has no dtype for {other}")
    bits, *how = _PACKED.get(kind, (8, False, ()))
    dtype: torch.dtype = torch.uint8 if kind in _PACKED else getattr(torch, DTYPES[kind])
    count = math.prod(shape)
    size_bytes = -(-count * bits // 8) * dtype.itemsize
    offset, file = message.offset, ""
    place: Place
    if location == 1:
        place = _external(path, key, external, size_bytes, dtype, parts)
        offset, file = place.offset, place.file.name
    elif raw is not None:
        if len(raw.data) != size_bytes:
            raise ValueError(f"the bytes of {key} are not those of its shape")
        place, offset = FileBytes(path, raw.offset, size_bytes, dtype), raw.offset
    else:
        place = TypedNumbers(dtype, numbers_of(typed))
        if len(place.values) * dtype.itemsize != size_bytes * (2 if dtype.is_complex else 1):
            raise ValueError(f"the numbers of {key} are not those of its shape")
    told = dtype_name(dtype)
    if kind in _PACKED:
        told, place = OTHERS[kind], PackedNumbers(place, bits, *how)
    return Entry(key, "tensor", shape, told, size_bytes, place, offset, file)


def _texts(key: str, shape: tuple[int, ...], texts: list[bytes]) -> Entry:
    told = [shortened(each.decode(errors="backslashreplace"), 200) for each in texts]
    quoted = ", ".join(f"“{text}”" for text in told)
    return Entry(key, "value", dtype="string", text=shortened(f"{shape} {quoted}"))


def constant_of(path: Path, message: Field, parts: dict[str, Path], key: str) -> list[Entry]:
    """The numbers or texts in an attribute that is the result of a node of constants: one message
    of AttributeProto. Empty if it has none."""
    floats: list[float] = []
    whole: list[int] = []
    texts: list[bytes] = []
    name, is_list = "", False
    for each in fields(message.data, message.offset):
        match each.number:
            case 1:
                name = each.text
            case 2:
                floats.append(float32(each))
            case 3:
                whole.append(each.integer)
            case 4 | 9:
                texts.append(bytes(each.data))
            case 5:
                return [tensor_of(path, each, parts, key)]
            case 7:
                floats += numbers_of([each._replace(number=4)])
            case 8:
                whole += integers(each)
            case 22:
                return sparse_of(path, each, parts, key)
    is_list = name.endswith("s")
    if name.startswith("value_string"):
        return [_texts(key, (len(texts),) if is_list else (), texts)]
    if not name.startswith(("value_float", "value_int")):
        return []
    is_float = name.startswith("value_float")
    values, dtype = (floats, torch.float32) if is_float else (whole, torch.int64)
    if not is_list and len(values) != 1:
        values = [0]
    shape = (len(values),) if is_list else ()
    size, place = len(values) * dtype.itemsize, TypedNumbers(dtype, tuple(values))
    return [Entry(key, "tensor", shape, dtype_name(dtype), size, place, message.offset)]


def sparse_of(path: Path, message: Field, parts: dict[str, Path], key: str = "") -> list[Entry]:
    """A tensor of which only some numbers are stored, and these with their places."""
    dims: list[int] = []
    inner: dict[int, Entry] = {}
    for each in fields(message.data, message.offset):
        if each.number == 3:
            dims += integers(each)
        elif each.number in (1, 2):
            inner[each.number] = tensor_of(path, each, parts, key)
    if len(inner) < 2:
        raise ValueError("a sparse tensor without numbers or without their places")
    values, places = inner[1], inner[2]
    stored = values.shape[0] if values.shape else 0
    note = f"sparse: {stored:,} numbers are stored, as a tensor of their own beside their places"
    shape = checked_shape(values.key, dims)
    whole = Entry(values.key, "tensor", shape, values.dtype, note=note, in_parts=True)
    return [
        whole,
        replace(values, key=f"{values.key}/values"),
        replace(places, key=f"{values.key}/indices"),
    ]


def _external(
    path: Path, key: str, told: dict[str, str], size: int, dtype: torch.dtype,
    parts: dict[str, Path],
) -> FileBytes:  # fmt: skip
    """The bytes of a tensor in a file beside the model."""
    name = told.get("location", "")
    file = file_beside(path, name)
    numbers = told.get("offset", "0"), told.get("length", str(size))
    if not all(number.isdecimal() and len(number) < 20 for number in numbers):
        raise ValueError(f"where the numbers of {key} lie is not told in numbers")
    offset, length = map(int, numbers)
    if length != size or offset + size > file.stat().st_size:
        raise ValueError(f"the numbers of {key} do not lie in {plain(name, 80)}")
    parts[name] = file
    return FileBytes(file, offset, size, dtype)


def pair_of(message: Field) -> tuple[str, str]:
    key = value = ""
    for each in fields(message.data, message.offset):
        if each.number == 1:
            key = each.text
        elif each.number == 2:
            value = each.text
    return key, value
