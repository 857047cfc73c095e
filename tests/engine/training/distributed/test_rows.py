"""A rank's rows of a batch, without other processes."""

from __future__ import annotations

from collections import namedtuple

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import BatchSampler, DistributedSampler, TensorDataset

from engine.errors import LabError
from engine.project.document import Averaging, Stopping, TrainingSetup
from engine.training.distributed.ranks import Ranks, check_setup
from engine.training.distributed.rows import RowsObjective
from engine.training.distributed.wrapped import check_sharding
from engine.training.objectives.code_objective import CodeObjective

CPU = torch.device("cpu")
Pair = namedtuple("Pair", "x names")


def rows_of(batch: object, rank: int, size: int = 2):
    whole = CodeObjective(lambda batch: batch, [batch], None, 1)
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


@pytest.mark.parametrize(
    ("module", "fields", "words"),
    [
        (nn.Linear(2, 2), {"optimizer": "optim.Adafactor"}, "Adafactor needs whole matrices"),
        (nn.Linear(2, 2), {"averaging": Averaging("EMA")}, "Averaged weights"),
        (nn.Linear(2, 2), {"stopping": Stopping(patience=2)}, "Early stopping"),
        (nn.Linear(2, 2), {"precision": "float16"}, "GradScaler"),
        (nn.Linear(2, 2), {"compile": True}, "torch.compile"),
        (nn.Embedding(3, 2, sparse=True), {}, "sparse=True"),
        (nn.ParameterList([torch.tensor(1.0)]), {}, "a single number"),
    ],
)
def test_what_cannot_be_sharded_is_told(module: nn.Module, fields: dict, words: str) -> None:
    check_sharding(TrainingSetup(), nn.Linear(2, 2))
    with pytest.raises(LabError, match=words):
        check_sharding(TrainingSetup(**fields), module)


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        (TrainingSetup(optimizer="optim.LBFGS"), "LBFGS"),
        (TrainingSetup(order=("forward", "loss", "backward", "step")), "another order"),
    ],
)
def test_what_several_processes_cannot_do_is_told(setup: TrainingSetup, words: str) -> None:
    with pytest.raises(LabError, match=words):
        check_setup(setup)
