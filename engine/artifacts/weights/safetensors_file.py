"""Files of safetensors: a header in JSON, then the numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch

from ...tensors.readable import dtype_name
from ..contents.artifact import MAX_METADATA, Artifact, Entry, damaged, plain, with_own_keys
from ..contents.file_bytes import FileBytes, checked_shape

MAX_HEADER_BYTES = 32 * 2**20
_DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32",
    "I32": "int32", "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16",
    "F32": "float32", "F64": "float64", "C64": "complex64", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip


def open_safetensors(path: Path) -> Artifact:
    """The index of the file. Raises LabError."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise damaged(
                path.name, f"its header should take {length:,} bytes, and it has {size:,}"
            )
        if length > MAX_HEADER_BYTES:
            raise damaged(
                path.name, f"its header takes {length:,} bytes, more than any index needs"
            )
        header = _header(path, file.read(length))
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or len(metadata) > MAX_METADATA:
        raise damaged(path.name, "its metadata are not texts by name")
    told = {plain(key, 200): plain(str(value)) for key, value in metadata.items()}
    found = [_entry(path, key, value, 8 + length) for key, value in header.items()]
    _check_places(path, found, 8 + length, size)
    return Artifact(path, "safetensors", "safetensors file", with_own_keys(found), told)


def _header(path: Path, data: bytes) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise damaged(path.name, "its header has one name twice")
        return found

    try:
        header = json.loads(data, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise damaged(path.name, "its header is not JSON") from error
    if not isinstance(header, dict):
        raise damaged(path.name, "its header is not a list of tensors")
    return header


def _entry(path: Path, key: str, value: Any, base: int) -> Entry:
    fields = value if isinstance(value, dict) else {}
    offsets, name = fields.get("data_offsets"), fields.get("dtype")
    if (
        not isinstance(offsets, list)
        or len(offsets) != 2
        or not all(type(at) is int and at >= 0 for at in offsets)
        or not isinstance(name, str)
    ):
        raise damaged(path.name, f"the header does not say what {plain(key, 80)} is")
    begin, end = offsets
    shape = checked_shape(plain(key, 80), fields.get("shape"))
    if name not in _DTYPES:
        note = f"torch has no dtype for {plain(name, 20)}"
        return Entry(
            key, "tensor", shape, plain(name, 20), end - begin, offset=base + begin, note=note
        )
    dtype: torch.dtype = getattr(torch, _DTYPES[name])
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise damaged(path.name, f"the bytes of {plain(key, 80)} are not those of its shape")
    place = FileBytes(path, base + begin, end - begin, dtype)
    return Entry(key, "tensor", shape, dtype_name(dtype), end - begin, place, base + begin)


def _check_places(path: Path, entries: list[Entry], base: int, size: int) -> None:
    """The tensors lie one after the other, to the end of the file."""
    at = base
    for entry in sorted(entries, key=lambda e: (e.offset, e.size_bytes)):
        if entry.offset != at or entry.size_bytes < 0:
            raise damaged(path.name, "its tensors overlap, or leave a hole")
        at += entry.size_bytes
    if at != size:
        raise damaged(path.name, f"its tensors end at byte {at:,}, and it has {size:,}")
