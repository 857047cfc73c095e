"""The rows of one rank of each batch: no others are loaded."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data.dataloader import default_collate


class Part(NamedTuple):
    """`rows` of the `samples` of a batch. Without a row of its own, a rank gets the first one."""

    batch: Any
    rows: int
    samples: int


class PartLoader:
    """Of each batch of a DataLoader, rows r, r + N, r + 2 N, ... for rank r of N.

    Every rank draws the whole order, from the same generators. What the data set draws for its
    samples is drawn apart in each rank, and leaves the global generators as they were: otherwise
    ranks would not agree on the order any more.
    """

    def __init__(self, loader: DataLoader[Any], rank: int, size: int) -> None:
        self._rank, self._size = rank, size
        assert loader.batch_sampler is not None
        self._indices: Iterable[Sequence[Any]] = loader.batch_sampler
        self._number = 0
        self._held: tuple[Any, ...] | None = None
        self._parts: deque[tuple[int, int]] = deque()
        self._own = DataLoader(
            loader.dataset,
            batch_sampler=_RankBatches(self),  # pyright: ignore[reportArgumentType]
            num_workers=loader.num_workers,
            collate_fn=loader.collate_fn,
            pin_memory=loader.pin_memory,
            timeout=loader.timeout,
            worker_init_fn=_RankSeed(rank, loader.worker_init_fn),
            multiprocessing_context=loader.multiprocessing_context,
            generator=loader.generator,
            prefetch_factor=loader.prefetch_factor,
            persistent_workers=loader.persistent_workers,
        )

    @property
    def loader(self) -> DataLoader[Any]:
        return self._own

    def __iter__(self) -> Iterator[Part]:
        self._parts.clear()
        batches, number = iter(self._own), 0
        while True:
            with self._drawing(number):
                batch = next(batches, None)
            if not self._parts:
                return
            yield Part(batch, *self._parts.popleft())
            number += 1

    def indices(self) -> Iterator[list[Any]]:
        """The indices of this rank's samples, batch by batch."""
        for whole in self._indices:
            indices = list(whole)
            own = indices[self._rank :: self._size]
            self._parts.append((len(own), len(indices)))
            self._draw_apart()
            yield own or indices[:1]

    @contextmanager
    def _drawing(self, number: int) -> Iterator[None]:
        """In this context the next batch is taken. Workers have generators of their own."""
        self._number, self._held = number, None
        try:
            yield
        finally:
            self._restore()

    def _restore(self) -> None:
        if self._held is not None:
            torchs, pythons, numpys = self._held
            torch.set_rng_state(torchs)
            random.setstate(pythons)
            np.random.set_state(numpys)

    def _draw_apart(self) -> None:
        """Behind the order, before the samples."""
        if self._own.num_workers:
            return
        self._held = torch.get_rng_state(), random.getstate(), np.random.get_state()
        drawn = int(torch.empty((), dtype=torch.int64).random_())
        _seed(hash((drawn, self._number, self._rank)) & (2**63 - 1))


class _RankBatches:
    """The batch sampler of a rank."""

    def __init__(self, parts: PartLoader) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[list[Any]]:
        return self._parts.indices()


@dataclass(frozen=True)
class _RankSeed:
    """Seeds a worker for its rank, then calls the loader's own `worker_init_fn`."""

    rank: int
    then: Any

    def __call__(self, worker: int) -> None:
        if self.rank:
            _seed(hash((torch.initial_seed(), self.rank)) & (2**63 - 1))
        if self.then is not None:
            self.then(worker)


def _seed(seed: int) -> None:
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


def part_of_loader(batches: object, rank: int, size: int) -> PartLoader | None:
    """None if only whole batches say what a rank's rows are: those of an IterableDataset, of a
    DataLoader of the user's own class, or made of samples by a `collate_fn` of the user's own; or
    if the data set has a generator, which every rank must draw from alike."""
    if type(batches) is not DataLoader or batches.batch_sampler is None:
        return None
    if isinstance(batches.dataset, IterableDataset) or batches.collate_fn is not default_collate:
        return None
    for dataset in (batches.dataset, getattr(batches.dataset, "dataset", None)):  # of a Subset
        held = getattr(dataset, "__dict__", {}).values()
        if any(isinstance(value, torch.Generator) for value in held):
            return None
    return PartLoader(batches, rank, size) if getattr(batches, "in_order", True) else None
