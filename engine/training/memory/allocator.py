"""What CUDA's caching allocator holds at one moment: segments of the device's memory, cut into
blocks, and the storage in each block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch

State = Literal["held", "waiting", "free"]
_STATES: dict[str, State] = {
    "active_allocated": "held",
    "active_awaiting_free": "waiting",
    "active_pending_free": "waiting",  # the name of earlier versions of torch
    "inactive": "free",
}


class Piece(NamedTuple):
    """A block of `size` bytes at `address`, for which `asked` bytes were asked. One that is
    "waiting" was freed, but another stream still uses it."""

    address: int
    size: int
    asked: int
    state: State


class Segment(NamedTuple):
    """Memory that the allocator has of the driver. A small one has blocks of at most 1 MiB."""

    size: int
    is_small: bool
    pieces: tuple[Piece, ...]


def read_allocator(device: torch.device) -> list[Segment]:
    """What the allocator of a CUDA device holds now, the largest segment first."""
    return segments_in(torch.cuda.memory_snapshot(), device.index or 0)


def segments_in(snapshot: Iterable[Mapping[str, Any]], device: int) -> list[Segment]:
    """The segments of a device in the "segments" of `torch.cuda.memory._snapshot()`, as that
    documents them, the largest first."""
    found = [
        Segment(
            each["total_size"],
            each["segment_type"] == "small",
            tuple(_pieces(each["address"], each["blocks"])),
        )
        for each in snapshot
        if each.get("device", device) == device
    ]
    return sorted(found, key=lambda segment: -segment.size)


def _pieces(address: int, blocks: Sequence[Mapping[str, Any]]) -> Iterable[Piece]:
    for block in blocks:
        size = block["size"]
        at = block.get("address", address)
        # torch has no size that was asked for in a block that is free.
        yield Piece(at, size, block.get("requested_size", size) or size, _STATES[block["state"]])
        address = at + size
