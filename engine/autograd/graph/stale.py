"""Saved tensors that were overwritten in place, found before backward fails on them.

torch saves a tensor with the version counter that it had, and compares the two when the node
unpacks it. Here torch is asked for this comparison: no node runs, and no unpack hook is called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from ...protocol import SourceLine, StaleTensor, WrittenBy
from .node_facts import SavedTensor
from .reading import Node
from .saved_for_backward import version

MAX_LISTED = 100


@dataclass(frozen=True)
class StaleSave:
    """`saved` of `node` was overwritten in place: it was saved at version `saved_version` and is
    at `version` now, so backward will fail with torch's `message`."""

    node: Node
    saved: SavedTensor
    saved_version: int
    version: int
    message: str


def stale_saves(nodes: Iterable[Node]) -> Iterator[StaleSave]:
    """The saved tensors of these nodes on which backward would fail.

    Tensors packed by hooks (checkpoints) are not looked at: only the unpack hook knows them.
    """
    for node in nodes:
        for saved in node.saved:
            if saved.data is None or saved.note or version(saved.data) == 0:
                continue
            message = _refusal(node.fn, saved.name)
            found = _VERSIONS.search(message)
            if found is not None:
                yield StaleSave(node, saved, int(found[2]), int(found[1]), message)


def stale_tensors(
    nodes: Iterable[Node], last_write: Callable[[torch.Tensor], WrittenBy | None]
) -> tuple[StaleTensor, ...]:
    """The first MAX_LISTED of `stale_saves` for the window, each with the last write to it."""
    return tuple(_described(save, last_write) for save in islice(stale_saves(nodes), MAX_LISTED))


def _described(
    save: StaleSave, last_write: Callable[[torch.Tensor], WrittenBy | None]
) -> StaleTensor:
    assert save.saved.data is not None
    writer = last_write(save.saved.data)
    source = None
    if writer is not None and writer.line is not None:
        source = SourceLine(writer.cell, writer.line, writer.text)
    return StaleTensor(
        node=save.node.id,
        saved=save.saved.name,
        saved_version=save.saved_version,
        version=save.version,
        op="" if writer is None else writer.op,
        source=source,
        error=save.message,
    )


_VERSIONS = re.compile(r"is at version (\d+); expected version (\d+) instead")
_ITEM = re.compile(r"(\w+)\[(\d+)\]$")


def _refusal(fn: Any, name: str) -> str:
    """torch's error on unpacking a saved tensor; "" when there is none.

    A saved input is unpacked by itself. An operation's own result can be unpacked only through the
    node that saved it.
    """
    item = _ITEM.match(name)
    raw = getattr(fn, f"_raw_saved_{item[1] if item else name}")
    try:
        (raw[int(item[2])] if item else raw).unpack()
    except RuntimeError as error:
        if "detached in-place" not in str(error):
            return str(error)
    else:
        return ""
    is_function = isinstance(fn, torch.autograd.function.BackwardCFunction)
    try:
        getattr(fn, "saved_tensors" if is_function else f"_saved_{item[1] if item else name}")
    except RuntimeError as error:
        return str(error)
    return ""
