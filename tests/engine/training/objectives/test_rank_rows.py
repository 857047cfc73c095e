"""The rows of one rank of each batch of a DataLoader, against the whole batches."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

from engine.training.objectives.rank_rows import PartLoader, _RankSeed, part_of_loader


class Drawing(Dataset):
    """Its samples are drawn from all three generators."""

    def __init__(self, samples: int = 10) -> None:
        self.samples, self.loaded = samples, list[int]()

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, row: int) -> Tensor:
        self.loaded.append(row)
        drawn = [torch.rand(()).item(), random.random(), np.random.random()]
        return torch.tensor([row, *drawn], dtype=torch.float64)


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[int]:
        return iter(range(3))


class OwnLoader(DataLoader):
    pass


def seeded() -> None:
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)


def drawn_next() -> tuple[float, float, float]:
    return torch.rand(()).item(), random.random(), float(np.random.random())


def test_each_rank_loads_its_rows_and_draws_apart_from_the_order() -> None:
    seeded()
    order = [batch[:, 0].tolist() for batch in DataLoader(Drawing(), 4, shuffle=True)]
    rows, nexts, draws = [], [], []
    for rank in range(3):
        dataset = Drawing()
        parts = PartLoader(DataLoader(dataset, 4, shuffle=True), rank, 3)
        seeded()
        found = list(parts)
        nexts.append(drawn_next())
        own = [each[rank::3] for each in order]
        assert [(part.rows, part.samples) for part in found] == [
            (len(mine), len(each)) for mine, each in zip(own, order, strict=True)
        ]
        taken = [mine or each[:1] for mine, each in zip(own, order, strict=True)]
        assert [part.batch[:, 0].tolist() for part in found] == taken
        assert dataset.loaded == [row for each in taken for row in each]
        rows.append(found)
        draws += [part.batch[:, 1:].flatten() for part in found]
    assert len(set(nexts)) == 1  # no sample has moved the order of the ranks
    assert len(torch.cat(draws).unique()) == 3 * sum(len(p.batch) for each in rows for p in each)


def test_the_generators_of_python_and_numpy_are_left_as_they_were() -> None:
    class Rows(Drawing):
        def __getitem__(self, row: int) -> Tensor:
            return torch.tensor(row)

    seeded()
    list(DataLoader(Rows(), 4, shuffle=True))
    expected = drawn_next()
    seeded()
    list(PartLoader(DataLoader(Rows(), 4, shuffle=True), 1, 2))
    assert drawn_next()[1:] == expected[1:]


def test_each_epoch_draws_anew_and_an_epoch_can_be_left() -> None:
    parts = PartLoader(DataLoader(Drawing(), 4, shuffle=True), 0, 2)
    seeded()
    first, second = list(parts), list(parts)
    assert len(first) == len(second) == 3
    assert not torch.equal(first[0].batch, second[0].batch)
    next(iter(parts))
    assert [(part.rows, part.samples) for part in parts] == [(2, 4), (2, 4), (1, 2)]


def test_a_worker_of_a_rank_begins_with_a_seed_of_the_rank_and_calls_the_users_function() -> None:
    called: list[int] = []
    states = []
    for rank in (0, 1, 2):
        seeded()
        _RankSeed(rank, called.append)(5)
        states.append(drawn_next())
    seeded()
    assert states[0] == drawn_next()  # rank 0 has the seed that torch gave the worker
    assert len(set(states)) == len({each[1] for each in states}) == 3
    assert called == [5, 5, 5]
    _RankSeed(0, None)(1)


def test_the_loader_of_a_rank_has_the_arguments_of_the_given_one() -> None:
    generator = torch.Generator()
    given = DataLoader(
        Drawing(), 4, num_workers=1, timeout=7, prefetch_factor=3, persistent_workers=True,
        generator=generator, multiprocessing_context="spawn",
    )  # fmt: skip
    own = PartLoader(given, 0, 2).loader
    assert own.dataset is given.dataset and own.generator is generator
    for name in ("num_workers", "timeout", "prefetch_factor", "persistent_workers", "collate_fn"):
        assert getattr(own, name) == getattr(given, name)
    assert own.multiprocessing_context is given.multiprocessing_context


@pytest.mark.parametrize(
    ("batches", "is_divided"),
    [
        (DataLoader(Drawing(), 4), True),
        (DataLoader(Subset(Drawing(), [0, 1]), 4), True),
        (DataLoader(Drawing(), None), False),
        (DataLoader(Drawing(), 4, collate_fn=list), False),
        (DataLoader(Stream(), 4), False),
        (OwnLoader(Drawing(), 4), False),
        (DataLoader(Drawing(), 4, num_workers=2, in_order=False), False),
        ([1, 2], False),
    ],
)
def test_loaders_of_torch_alone_are_divided(batches: Any, is_divided: bool) -> None:
    assert (part_of_loader(batches, 0, 2) is not None) is is_divided


@pytest.mark.parametrize("is_inside", [True, False])
def test_a_dataset_with_a_generator_is_not_divided(is_inside: bool) -> None:
    dataset = Drawing()
    dataset.own = torch.Generator()  # pyright: ignore[reportAttributeAccessIssue]
    loader = DataLoader(Subset(dataset, [0, 1]) if is_inside else dataset, 2)
    assert part_of_loader(loader, 0, 2) is None
