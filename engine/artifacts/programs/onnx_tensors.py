"""The tensors of an ONNX model: in it, or in files beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from ...tensors.readable import dtype_name
from ..contents.artifact import Entry, file_beside, plain
from ..contents.file_bytes import FileBytes, checked_shape
from .protobuf import Field, fields, integers
from .typed_numbers import TypedNumbers, numbers_of

DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64",
    15: "complex128", 16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz",
    19: "float8_e5m2", 20: "float8_e5m2fnuz", 24: "float8_e8m0fnu",
}  # fmt: skip
OTHERS = {8: "string", 21: "uint4", 22: "int4", 23: "float4_e2m1", 25: "uint2", 26: "int2"}


def tensor_of(path: Path, message: Field, parts: dict[str, Path]) -> Entry:
    name, kind, dims, location = "", 0, [], 0
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
                key, value = pair_of(each)
                external[key] = value
            case 14:
                location = each.integer
            case 4 | 5 | 7 | 10 | 11:
                typed.append(each)
    key = plain(name, 500)
    shape = checked_shape(key, dims)
    if kind not in DTYPES:
        other = OTHERS.get(kind, f"type {kind}")
        return Entry(key, "tensor", shape, other, note=f"torch has no dtype for {other}")
    dtype: torch.dtype = getattr(torch, DTYPES[kind])
    count = 1
    for size in shape:
        count *= size
    size_bytes = count * dtype.itemsize
    told = dtype_name(dtype)
    if location == 1:
        place = _external(path, key, external, size_bytes, dtype, parts)
        return Entry(key, "tensor", shape, told, size_bytes, place, place.offset, place.file.name)
    if raw is not None:
        if len(raw.data) != size_bytes:
            raise ValueError(f"the bytes of {key} are not those of its shape")
        place = FileBytes(path, raw.offset, size_bytes, dtype)
        return Entry(key, "tensor", shape, told, size_bytes, place, raw.offset)
    numbers = TypedNumbers(dtype, numbers_of(typed))
    if len(numbers.values) != count * (2 if dtype.is_complex else 1):
        raise ValueError(f"the numbers of {key} are not those of its shape")
    return Entry(key, "tensor", shape, told, size_bytes, numbers, message.offset)


def sparse_of(path: Path, message: Field, parts: dict[str, Path]) -> list[Entry]:
    """A tensor of which only some numbers are stored, and these with their places."""
    dims: list[int] = []
    inner: dict[int, Entry] = {}
    for each in fields(message.data, message.offset):
        if each.number == 3:
            dims += integers(each)
        elif each.number in (1, 2):
            inner[each.number] = tensor_of(path, each, parts)
    if len(inner) < 2:
        raise ValueError("a sparse tensor without numbers or without their places")
    values, places = inner[1], inner[2]
    stored = values.shape[0] if values.shape else 0
    note = f"sparse: {stored:,} numbers are stored, as a tensor of their own beside their places"
    whole = Entry(values.key, "tensor", checked_shape(values.key, dims), values.dtype, note=note)
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
