"""Whether data gives the batches of an epoch again: each is kept as one number."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from .batches import tensors_in

MAX_KEPT = 1 << 16
MAX_EPOCHS = 256
"""So many batches, of so many epochs, are kept."""
MAX_READ = 4096
"""Of a larger tensor so many elements are read, with equal distances."""


class Place(NamedTuple):
    """A batch of an epoch, both 0-based; a comparison of several has the last of them."""

    epoch: int
    batch: int


class SeenBatches:
    """The batches that a run has got from data, pass by pass: each is compared with the one that
    came before at its place, in this process or in the one that wrote a checkpoint (`expect`).
    `other` is the first one, since the run went on from a state, that was not the same.

    It is the run's, not that of the data: checks and pictures take batches, too."""

    def __init__(self) -> None:
        self.other: Place | None = None
        self._epochs: dict[int, array[int]] = {}
        self._owner: object = None
        self._expected = (0, 0)
        self._count = self._digest = 0  # of the pass that goes on

    def noted(self, batches: Iterable[Any], epoch: int, owner: object) -> Iterator[Any]:
        """The batches of an epoch, from its first one on. `owner` is the data: what other data gave
        is forgotten."""
        if owner is not self._owner:
            self._epochs.clear()
            self._owner = owner
        self._count = self._digest = 0
        return self._noted(iter(batches), epoch)

    def digest(self, count: int) -> int:
        """One number for the batches that the epoch has given so far, if it has given so many; 0 if
        they were not looked at."""
        return self._digest if count == self._count else 0

    def expect(self, count: int, digest: int) -> None:
        """The run goes on from a state: `digest` is of the first `count` batches of its epoch."""
        self._expected, self.other = (count, digest), None

    def _noted(self, batches: Iterator[Any], epoch: int) -> Iterator[Any]:
        kept = self._kept_of(epoch)
        for number, batch in enumerate(batches):
            found = digest_of(batch)
            if number < len(kept):
                if kept[number] != found:
                    self._note(epoch, number)
                    kept[number] = found
            elif number < MAX_KEPT:
                kept.append(found)
            self._count = number + 1
            self._digest = crc32(found.to_bytes(4, "little"), self._digest)
            if self._count == self._expected[0]:
                if self._expected[1] not in (0, self._digest):
                    self._note(epoch, number)
                self._expected = (0, 0)
            yield batch

    def _note(self, epoch: int, number: int) -> None:
        self.other = self.other or Place(epoch, number)

    def _kept_of(self, epoch: int) -> array[int]:
        """The numbers of an epoch. If there are too many, every second one of the others goes."""
        kept = self._epochs.pop(epoch, array("I"))
        while len(self._epochs) >= MAX_EPOCHS or sum(map(len, self._epochs.values())) > MAX_KEPT:
            for each in list(self._epochs)[1 if len(self._epochs) > 1 else 0 :: 2]:
                del self._epochs[each]
        self._epochs[epoch] = kept
        return kept


def digest_of(batch: Any) -> int:
    """A number from 0 to 2**32 - 1 that is equal for equal batches. Of tensors on a GPU only the
    shapes count, since nothing must wait for it; of nested and sparse ones, nothing."""
    found = 0
    for tensor in tensors_in(batch):
        if tensor.is_nested or tensor.layout is not torch.strided:
            continue
        found = crc32(b"%d" % hash(tensor.shape), found)
        if tensor.device.type == "cpu":
            found = crc32(_elements(tensor), found)
    return found


def _elements(tensor: Tensor) -> Any:
    try:
        values = tensor.numpy()
    except (TypeError, RuntimeError):  # of a type that NumPy does not have, or with a graph
        plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
        values = plain.flatten().view(torch.uint8).numpy()
    if values.size > MAX_READ:
        values = values.reshape(-1)[:: values.size // MAX_READ]
    return np.ascontiguousarray(values)
