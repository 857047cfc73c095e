"""What the nodes of a graph keep alive for backward, read once for all who ask."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .node_facts import storage_of, tensors_saved_by
from .reading import Node, kind_of_node


class Kept:
    """What each of `nodes` kept when this was made.

    `storages` has the ids (`SavedTensor.storage_id`) of the storages of each node, each once, in
    the order of `nodes`; `size_bytes` the bytes of each storage; `written` the nodes that saved a
    tensor which was ever written to in place. Nothing is unpacked.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.storages: list[tuple[int, ...]] = []
        self.size_bytes: dict[int, int] = {}
        self.written: list[Node] = []
        add, size_bytes = self.storages.append, self.size_bytes
        for node in nodes:
            fn = node.fn
            own: tuple[int, ...] = ()
            saves = kind_of_node(fn).saves
            if saves:
                saved = tensors_saved_by(fn, saves)
                for data in saved:
                    storage, size = storage_of(data)
                    if storage not in own:
                        own += (storage,)
                        size_bytes[storage] = size
                if any(map(version, saved)):
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
