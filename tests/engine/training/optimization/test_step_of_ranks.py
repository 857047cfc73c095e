"""One step of a rank, without other processes: what it asks of the ranks, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from engine.project.document import TrainingSetup, replace
from engine.system.errors import LabError
from engine.training.distributed.rows import Rows, RowsObjective
from engine.training.objectives.code_objective import CodeObjective
from engine.training.objectives.objective import Outcome
from engine.training.optimization.optimization import Optimization
from engine.training.optimization.training_step import TrainingStep

CPU = torch.device("cpu")
ROWS = [torch.tensor([[1.0, 2.0], [3.0, -1.0]]), torch.tensor([[0.5, 4.0]])]
SHARES = [0.5, 0.25]
SETUP = TrainingSetup(optimizer="optim.SGD", optimizer_params={"lr": 0.5}, accumulate=2)


class FirstOfTwo:
    """What a step asks of Ranks. The other rank has no gradients, and a loss of 10."""

    rank, size, device = 0, 2, CPU

    def __init__(self) -> None:
        self.is_last = True
        self.forwards: list[bool] = []
        self.backwards: list[float] = []
        self.shared: list[tuple[int, int]] = []

    def forward(self, compute: Callable[[], Tensor]) -> Tensor:
        self.forwards.append(self.is_last)
        return compute()

    def backward(self, loss: Tensor) -> None:
        self.backwards.append(loss.item())
        loss.backward()

    def share(self, step: int, outcomes: Sequence[Outcome]) -> Outcome:
        self.shared.append((step, len(outcomes)))
        return Outcome(torch.tensor(10.0), 6)


@pytest.fixture
def model() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(2, 1)


def step_of(model: nn.Linear, ranks: FirstOfTwo, setup: TrainingSetup = SETUP) -> TrainingStep:
    def loss_of(rows: Tensor) -> Tensor:
        return model(rows).square().mean()

    whole = CodeObjective(loss_of, lambda: ROWS, None, 2)
    objective = RowsObjective(whole, cast(Any, ranks), model, 0)
    optimization = Optimization(setup, model, CPU, None)
    batches = [Rows(rows, share, 0) for rows, share in zip(ROWS, SHARES, strict=True)]
    return TrainingStep(
        7, batches, setup, objective, optimization, True, ranks=cast(Any, ranks)
    )  # fmt: skip


def plain_losses(model: nn.Linear) -> list[Tensor]:
    return [model(rows).square().mean() for rows in ROWS]


def test_each_batch_counts_by_its_share_and_only_the_last_one_averages(model: nn.Linear) -> None:
    ranks = FirstOfTwo()
    parts = [loss / 2 * share * 2 for loss, share in zip(plain_losses(model), SHARES, strict=True)]
    expected = torch.autograd.grad(parts[0] + parts[1], list(model.parameters()))
    before = [parameter.detach().clone() for parameter in model.parameters()]
    step = step_of(model, ranks)
    step.run()
    assert ranks.forwards == [False, True]
    assert ranks.backwards == pytest.approx([part.item() for part in parts], abs=1e-6)
    for old, new, gradient in zip(before, model.parameters(), expected, strict=True):
        torch.testing.assert_close(new.detach(), old - 0.5 * gradient)
    assert float(step.norms[0]) == pytest.approx(
        float(torch.cat([each.flatten() for each in expected]).norm())
    )


def test_the_ranks_share_the_figures_once_behind_the_last_backward(model: nn.Linear) -> None:
    ranks = FirstOfTwo()
    step = step_of(model, ranks)
    assert step.has_ranks
    losses = [float(loss.detach()) for loss in plain_losses(model)]
    seen = []
    for _ in step.phases():
        seen.append((step.done[-1], len(ranks.shared), step.has_loss_of_all))
        if step.done[-1] == "loss":
            assert step.loss.item() == pytest.approx(losses[len(step.outcomes) - 1])
    assert seen == [
        ("zero_grad", 0, False),
        ("forward", 0, False), ("loss", 0, False), ("backward", 0, True),
        ("forward", 0, False), ("loss", 0, False), ("backward", 1, True),
    ]  # fmt: skip
    assert ranks.shared == [(7, 2)]
    assert (step.outcome.loss.item(), step.outcome.samples) == (10.0, 6)
    assert step.loss_read is None and step.numbers().loss == 10.0


def test_before_the_ranks_share_the_loss_is_that_of_the_own_rows(model: nn.Linear) -> None:
    step = step_of(model, FirstOfTwo())
    first, second = (float(loss.detach()) for loss in plain_losses(model))
    phases = step.phases()
    for _ in range(3):
        next(phases)
    assert step.outcome.loss.item() == pytest.approx(first)
    for _ in range(2):
        next(phases)
    assert step.done[-1] == "forward" and step.outcome.loss.item() == pytest.approx(first)
    next(phases)
    assert step.outcome.loss.item() == pytest.approx((first * 2 + second) / 3)


def test_a_model_without_gradients_is_told_behind_the_last_batch_only(model: nn.Linear) -> None:
    step = step_of(model, FirstOfTwo())
    phases, other = step.phases(), nn.Linear(2, 1)
    step.optimization = Optimization(SETUP, other, CPU, None)
    for _ in range(4):
        next(phases)
    step.check_gradients(other)  # averaged gradients come with the last batch
    for _ in range(2):
        next(phases)
    step.check_gradients(other)
    next(phases)
    with pytest.raises(LabError, match="No parameter of this Linear got a gradient"):
        step.check_gradients(other)


def test_what_is_told_of_a_diverging_rank_comes_from_all(model: nn.Linear) -> None:
    ranks = FirstOfTwo()
    model.weight.data.fill_(float("inf"))
    step = step_of(model, ranks)
    step.run()  # `share` raises in all ranks together: this one alone ends nothing
    assert len(step.outcomes) == 2 and step.loss_read is None


def test_lbfgs_asks_with_the_loss_of_all_ranks_each_time(model: nn.Linear) -> None:
    ranks, params = FirstOfTwo(), {"lr": 0.1, "max_iter": 3, "tolerance_change": 0.0}
    setup = replace(SETUP, optimizer="optim.LBFGS", optimizer_params=params)
    step = step_of(model, ranks, setup)
    step.run()
    assert len(ranks.forwards) == 6 and ranks.forwards == [False, True] * 3
    assert ranks.shared == [(7, 2)] * 3
    assert step.outcome.loss.item() == 10.0 and len(step.outcomes) == 6
