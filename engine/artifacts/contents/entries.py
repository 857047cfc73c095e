"""The entries of what a pickle describes: tensors and values by their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ...system.errors import LabError
from ...tensors.readable import dtype_name
from .artifact import Entry, digest, plain, shortened
from .descriptions import Global, OtherObject, StorageOf, TensorOf
from .file_bytes import FileBytes, check_stride, checked_shape

MAX_DEPTH = 40
MAX_CHARACTERS = 15_000_000
SHOWN_ITEMS = 8

Locate = Callable[[StorageOf], FileBytes]
"""Gives the bytes of a storage; raises LabError if the file does not have them."""


def entries_of(value: Any, locate: Locate) -> Iterator[Entry]:
    """The entries of a description. The keys of nested dicts and lists are joined by "/"."""
    waiting: list[tuple[str, Any, int]] = [("", value, 0)]
    characters = 0
    while waiting:
        key, item, depth = waiting.pop()
        characters += 20 + len(key)
        if characters > MAX_CHARACTERS:  # containers that hold each other many times
            raise LabError("The file has more entries than can be listed.")
        if isinstance(item, TensorOf):
            yield tensor_entry(key or "tensor", item, locate)
            waiting += [(f"{key}/{n}", t, depth + 1) for n, t in reversed(list(item.inner.items()))]
        elif (inner := _children(item)) and depth < MAX_DEPTH:
            named = [(f"{key}/{name}" if key else name, each) for name, each in inner]
            waiting += [(name, each, depth + 1) for name, each in reversed(named)]
        elif key or item != {}:
            yield Entry(key or "value", "value", dtype=_type(item), text=shortened(_text(item)))


def _children(item: Any) -> list[tuple[str, Any]]:
    """The items that get entries of their own: those of a dict, and those of a list that has more
    than plain values."""
    if isinstance(item, OtherObject):
        item = item.state
    if isinstance(item, dict):
        return [(_name(key), each) for key, each in item.items()]
    if isinstance(item, list | tuple) and any(
        isinstance(each, TensorOf | dict | list | tuple | OtherObject) for each in item
    ):
        return [(str(place), each) for place, each in enumerate(item)]
    return []


def tensor_entry(key: str, tensor: TensorOf, locate: Locate) -> Entry:
    """The entry of a tensor."""
    shape = checked_shape(key, tensor.shape)
    elements = 1
    for size in shape:
        elements *= size
    dtype = tensor.dtype
    size_bytes = elements * dtype.itemsize
    role = "parameter" if tensor.is_parameter else ""
    name = dtype_name(dtype)
    if tensor.storage is None:
        if tensor.inner:
            return Entry(key, "tensor", shape, name, role=role, note=tensor.note, in_parts=True)
        return Entry(key, "tensor", shape, name, size_bytes, role=role, note=tensor.note)
    bytes_ = locate(tensor.storage)
    stored = bytes_.size_bytes // dtype.itemsize
    stride = check_stride(key, shape, tensor.start, tensor.stride, stored)
    if tensor.is_conjugate and not dtype.is_complex:
        raise LabError(f"{key} is said to be a conjugate, and its numbers are not complex.")
    place = replace(
        bytes_, dtype=dtype, start=tensor.start, stride=stride,
        is_conjugate=tensor.is_conjugate, is_negative=tensor.is_negative,
    )  # fmt: skip
    note = tensor.note
    if not note and size_bytes > bytes_.size_bytes:
        note = f"expanded: {bytes_.size_bytes:,} bytes stand for all of it"
    offset = bytes_.offset + tensor.start * dtype.itemsize
    return Entry(key, "tensor", shape, name, size_bytes, place, offset, role=role, note=note)


def _name(key: Any) -> str:
    if isinstance(key, bytes):
        return key[:200].decode(errors="backslashreplace")
    if isinstance(key, OtherObject):
        return f"<{key.name}>"
    return plain(_text(key), 1000) if not isinstance(key, str) else key


def _type(item: Any) -> str:
    if isinstance(item, Global | OtherObject):
        return item.name
    if isinstance(item, StorageOf):
        return "storage"
    return "None" if item is None else type(item).__name__


def _text(item: Any) -> str:
    """A value in words; of long ones the beginning, with a digest of the whole."""
    if isinstance(item, int) and abs(item) >= 2**200:
        return f"a whole number of more than 200 bits {digest(hex(item).encode())}"
    if isinstance(item, str):
        return shortened(item, 4000)
    if isinstance(item, bytes):
        return f"{len(item):,} bytes {digest(item)}"
    if isinstance(item, bool | int | float | complex) or item is None:
        return str(item)
    if isinstance(item, Global | OtherObject):
        return item.name
    if isinstance(item, list | tuple):
        inner = [_inner(each) for each in item]
        shown, more = ", ".join(inner[:SHOWN_ITEMS]), ""
        if len(item) > SHOWN_ITEMS:
            more = f", … {len(item):,} in all {digest(repr(inner).encode())}"
        return f"({shown}{more})" if isinstance(item, tuple) else f"[{shown}{more}]"
    return "empty" if isinstance(item, dict) and not item else f"a {type(item).__name__}"


def _inner(item: Any) -> str:
    if isinstance(item, list | tuple | dict):
        return "…"
    return f"“{shortened(item, 80)}”" if isinstance(item, str) else _text(item)
