"""Large snapshots cut into parts that can be sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from ...protocol import GraphSnapshot, TraceSnapshot

MAX_PART_BYTES = 190_000

_encoder = msgspec.msgpack.Encoder()

Cuttable = TypeVar("Cuttable", GraphSnapshot, TraceSnapshot)


def in_parts(
    whole: Cuttable, fields: Sequence[str], max_bytes: int = MAX_PART_BYTES
) -> list[Cuttable]:
    """The snapshot in pieces of about `max_bytes` at most. The items of `fields` (tuples and dicts)
    are divided among the pieces in order; all other fields are in every piece."""
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
        for item in value.items() if isinstance(value, dict) else value:
            item_bytes = len(_encoder.encode(item))
            if size_bytes + item_bytes > max_bytes and any(held.values()):
                yield piece()
                for items in held.values():
                    items.clear()
                size_bytes = 0
            held[name].append(item)
            size_bytes += item_bytes
    yield piece()
