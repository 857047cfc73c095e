"""A rank's rows of a batch, without other processes."""

from __future__ import annotations

import random
from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import BatchSampler, DataLoader, Dataset, DistributedSampler, TensorDataset

from engine.project.document import TrainingSetup
from engine.system.errors import LabError
from engine.training.distributed.ranks import Ranks, check_setup
from engine.training.distributed.rows import RowsObjective
from engine.training.objectives.code_objective import CodeObjective

CPU = torch.device("cpu")
Pair = namedtuple("Pair", "x names")


def rows_of(batch: object, rank: int, size: int = 2):
    whole = CodeObjective(lambda batch: batch, lambda: [batch], None, 1)
    objective = RowsObjective(whole, Ranks(rank, size, CPU), nn.Linear(1, 1), 5)
    return next(objective.batches(3, 0))


def test_the_ranks_have_each_row_once() -> None:
    x = torch.arange(10.0).reshape(5, 2)
    batch = {"x": x, "pair": Pair(x + 10, list("abcde")), "scale": torch.tensor(2.0), "n": 5}
    ranks = [rows_of(batch, rank, 3) for rank in range(3)]
    assert [rows.share for rows in ranks] == pytest.approx([0.4, 0.4, 0.2])
    for rank, rows in enumerate(ranks):
        assert torch.equal(rows.batch["x"], x[rank::3])
        assert torch.equal(rows.batch["pair"].x, x[rank::3] + 10)
        assert rows.batch["pair"].names == list("abcde")[rank::3]
        assert rows.batch["scale"] == 2 and rows.batch["n"] == 5


@pytest.mark.parametrize("rank", [0, 1])
def test_the_rows_of_an_epoch_are_those_of_distributed_sampler(rank: int) -> None:
    x = torch.arange(12).reshape(12, 1)
    whole = CodeObjective(lambda batch: batch, x, None, 4)
    objective = RowsObjective(whole, Ranks(rank, 2, CPU), nn.Linear(1, 1), 5)
    torch.manual_seed(0)
    found = [rows.batch[0].flatten().tolist() for rows in objective.batches(0, 0)]
    torch.manual_seed(0)
    order = torch.cat([batch[0] for batch in whole.batches(0, 0)]).flatten()
    sampler = DistributedSampler(TensorDataset(order), 2, rank, shuffle=False)
    assert found == [[int(order[row]) for row in rows] for rows in BatchSampler(sampler, 2, False)]


class Noisy(Dataset):
    """Notes which samples were loaded, and draws for each."""

    def __init__(self, samples: int) -> None:
        self.samples, self.loaded = samples, list[int]()

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> torch.Tensor:
        self.loaded.append(index)
        drawn = [torch.rand(()).item(), random.random(), np.random.random()]
        return torch.tensor([index, *drawn], dtype=torch.float64)


def one_epoch(dataset: Dataset, rank: int, size: int, first: int = 0, **options: Any):
    """The batches of `rank`, and what torch's generator gives next."""
    loader = DataLoader(dataset, 4, shuffle=True, **options)
    whole = CodeObjective(lambda batch: batch, loader, None, 4)
    objective = RowsObjective(whole, Ranks(rank, size, CPU), nn.Linear(1, 1), 5)
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    found = list(objective.batches(0, first))
    whole.close()
    return found, (torch.rand(()).item(), random.random(), np.random.random())


def test_a_rank_loads_only_its_own_rows() -> None:
    torch.manual_seed(0)
    order = torch.cat(list(DataLoader(Noisy(13), 4, shuffle=True)))[:, 0].long().split(4)
    for rank in range(3):
        dataset = Noisy(13)
        rows, _ = one_epoch(dataset, rank, 3)
        expected = [batch[rank::3].tolist() or batch[:1].tolist() for batch in order]
        assert [each.batch[:, 0].tolist() for each in rows] == expected
        assert dataset.loaded == [index for batch in expected for index in batch]
        last = [1.0, 0.0, 0.0][rank]  # of the one sample of the last batch
        assert [each.share for each in rows] == [*[[0.5, 0.25, 0.25][rank]] * 3, last]
        later, _ = one_epoch(Noisy(13), rank, 3, first=2)
        assert all(torch.equal(a.batch, b.batch) for a, b in zip(later, rows[2:], strict=True))
        assert [each.seed for each in later] == [each.seed for each in rows[2:]]


def test_what_samples_draw_is_apart_in_each_rank_and_batch_and_moves_no_order() -> None:
    found, after = zip(*(one_epoch(Noisy(16), rank, 2) for rank in range(2)), strict=True)
    assert after[0] == after[1]
    drawn = torch.cat([rows.batch[:, 1:] for ranks in found for rows in ranks]).flatten()
    assert len(drawn.unique()) == 16 * 3
    again, _ = one_epoch(Noisy(16), 1, 2)
    assert all(torch.equal(a.batch, b.batch) for a, b in zip(again, found[1], strict=True))


def test_workers_load_only_the_rows_of_their_rank_and_draw_apart() -> None:
    found = [one_epoch(Noisy(16), rank, 2, num_workers=1)[0] for rank in range(2)]
    parts = torch.cat([rows.batch for ranks in found for rows in ranks])
    assert sorted(parts[:, 0].tolist()) == list(range(16))
    assert len(parts[:, 1:].flatten().unique()) == 16 * 3


def test_data_that_only_whole_batches_tell_is_loaded_whole() -> None:
    class WithGenerator(Noisy):
        def __init__(self) -> None:
            super().__init__(8)
            self.own = torch.Generator()

    def joined(samples: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack(samples)

    own: dict[str, Any] = {"collate_fn": joined}
    for dataset, options in ((WithGenerator(), {}), (Noisy(8), own)):
        rows, _ = one_epoch(dataset, 1, 2, **options)
        assert len(dataset.loaded) == 8 and [len(each.batch) for each in rows] == [2, 2]


def test_a_rank_without_a_row_counts_none() -> None:
    rows = rows_of((torch.ones(1, 2), torch.tensor([4])), 1)
    assert rows.share == 0 and [part.tolist() for part in rows.batch] == [[[1, 1]], [4]]


def test_a_batch_that_cannot_be_divided_is_told() -> None:
    packed = pack_sequence([torch.ones(2, 1), torch.ones(1, 1)])
    with pytest.raises(LabError, match="rows of a PackedSequence cannot be divided"):
        rows_of(packed, 0)


def test_ranks_draw_apart_and_leave_the_run_its_generator() -> None:
    def step(batch: list[torch.Tensor]) -> torch.Tensor:
        return torch.rand(())

    drawn = []
    for rank in (0, 1, 0):
        whole = CodeObjective(step, [[torch.ones(2)]], None, 1)
        objective = RowsObjective(whole, Ranks(rank, 2, CPU), nn.Linear(1, 1), 5)
        before = torch.get_rng_state()
        with torch.no_grad():
            drawn.append(float(objective.outcome(next(objective.batches(0, 0))).loss))
        assert torch.equal(before, torch.get_rng_state())
    assert drawn[0] == drawn[2] != drawn[1]


def test_what_several_processes_cannot_do_is_told() -> None:
    with pytest.raises(LabError, match="another order"):
        check_setup(TrainingSetup(order=("forward", "loss", "backward", "step")))
    model = nn.Sequential(nn.Linear(2, 2), nn.SyncBatchNorm(2))
    led = SimpleNamespace(model=model, setup=TrainingSetup())
    with pytest.raises(LabError, match="SyncBatchNorm for GPUs only"):
        Ranks(0, 2, CPU).begin(led)  # pyright: ignore[reportArgumentType]
