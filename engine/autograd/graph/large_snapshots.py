"""Large snapshots cut into parts that can be sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import msgspec

from ...protocol import GraphSnapshot, TraceSnapshot

MAX_PART_BYTES = 190_000
SMALL_ITEM_BYTES = 32
"""If items of this size would fill more than one part, the whole is not encoded to be measured."""

_encoder = msgspec.msgpack.Encoder()

Cuttable = TypeVar("Cuttable", GraphSnapshot, TraceSnapshot)


def in_parts(
    whole: Cuttable, fields: Sequence[str], max_bytes: int = MAX_PART_BYTES
) -> list[Cuttable]:
    """The snapshot in pieces of about `max_bytes` at most. The items of `fields` (tuples and dicts)
    are divided among the pieces in order; all other fields are in every piece."""
    items = sum(len(getattr(whole, name)) for name in fields)
    if items * SMALL_ITEM_BYTES <= max_bytes and len(_encoder.encode(whole)) <= max_bytes:
        return [whole]
    pieces = list(_pieces(whole, fields, max_bytes))
    return [
        msgspec.structs.replace(piece, part=number, parts=len(pieces))
        for number, piece in enumerate(pieces)
    ]


def _pieces(whole: Cuttable, fields: Sequence[str], max_bytes: int) -> Iterator[Cuttable]:
    values = {name: getattr(whole, name) for name in fields}
    held: dict[str, list] = {name: [] for name in fields}
    size_bytes = 0

    def piece() -> Cuttable:
        made = {name: type(values[name])(items) for name, items in held.items()}
        return msgspec.structs.replace(whole, **made)

    for name, value in values.items():
        items_of = value.items() if isinstance(value, dict) else value
        for items, items_bytes in _sized(items_of, max_bytes // 10):
            if size_bytes + items_bytes > max_bytes and any(held.values()):
                yield piece()
                for before in held.values():
                    before.clear()
                size_bytes = 0
            held[name] += items
            size_bytes += items_bytes
    yield piece()


def _sized(items: Iterable, small_bytes: int) -> Iterator[tuple[list, int]]:
    """The items, up to 64 at a time where these are small, with their size in bytes: to encode each
    by itself takes five times as long."""
    rest = iter(items)
    while some := list(islice(rest, 64)):
        size_bytes = len(_encoder.encode(some))
        if size_bytes <= small_bytes:
            yield some, size_bytes
        else:
            yield from (([item], len(_encoder.encode(item))) for item in some)
