"""The storages that the nodes of a graph keep alive for backward, read once for all who ask."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .node_facts import storage_of
from .reading import Node
from .without_collection import without_collection


class SavedForBackward:
    """The storages that each of `nodes` kept when this was made.

    `storages` has the ids (`SavedTensor.storage_id`) of the storages of each node, each once, in
    the order of `nodes`; `size_bytes` the bytes of each storage; `written` the nodes that saved a
    tensor which was ever written to in place. Nothing is unpacked.
    """

    @without_collection()
    def __init__(self, nodes: Sequence[Node]) -> None:
        self.storages: list[tuple[int, ...]] = []
        self.size_bytes: dict[int, int] = {}
        self.written: list[Node] = []
        add, size_bytes = self.storages.append, self.size_bytes
        for node in nodes:  # in one frame: calling a function for each tensor takes 15 % longer
            saves = node.kind.saves
            if not saves:
                add(())
                continue
            fn = node.fn
            own: tuple[int, ...] = ()
            is_written = False
            for attribute in saves:
                try:
                    saved = getattr(fn, attribute)
                except RuntimeError:  # freed
                    continue
                for each in saved if type(saved) is tuple else (saved,):
                    data = each.data
                    if not isinstance(data, torch.Tensor):
                        continue
                    try:
                        held = data.untyped_storage()
                        storage, size = held._cdata, held.nbytes()
                        is_written = is_written or data._version > 0
                    except Exception:  # no storage, or made in inference mode
                        storage, size = storage_of(data)
                        is_written = is_written or version(data) > 0
                    if storage not in own:
                        own += (storage,)
                        size_bytes[storage] = size
            if is_written:
                self.written.append(node)
            add(own)

    @property
    def saved_bytes(self) -> int:
        """Bytes of all these storages, each counted once."""
        return sum(self.size_bytes.values())


def version(tensor: torch.Tensor) -> int:
    """How often a tensor's elements were written to in place."""
    try:
        return tensor._version
    except RuntimeError:  # made in inference mode: it has no counter
        return 0
