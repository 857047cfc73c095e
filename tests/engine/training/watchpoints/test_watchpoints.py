"""Each limit against plain torch: the step at which it fires, its numbers, and that nothing that
only looks changes the run."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import pytest
import torch
from torch import Tensor, nn
from torch.nn import utils

from engine.datasets.dataset import epoch_order
from engine.datasets.load import load_dataset
from engine.project.document import HoldWhen, TrainingSetup, replace
from engine.protocol import Hold
from engine.training.loop import TrainingLoop
from engine.training.watchpoints.loss_spike import LossSpikes

SGD = {"optimizer": "optim.SGD", "optimizer_params": {"lr": 0.5}}
Make = Callable[[], nn.Module]


def holds(loop: TrainingLoop) -> list[tuple[Hold, bool]]:
    """Run to the end: each hold, and whether the step was done then."""
    found = []
    for _ in loop.steps():
        if loop.holding.hold is not None:
            found.append((loop.holding.hold, not loop.is_in_step))
    return found


def plain(model: nn.Module, setup: TrainingSetup):
    """Each step of a plain loop: (loss, gradients, parameters before, parameters after)."""
    data = load_dataset(setup.data)
    rate = float(setup.optimizer_params["lr"])  # type: ignore[arg-type]
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    named = dict(model.named_parameters())
    torch.manual_seed(setup.seed)
    for epoch in range(setup.epochs):
        for rows in epoch_order(len(data), setup.seed, epoch).split(setup.batch_size):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(data.x_train[rows]), data.y_train[rows])
            loss.backward()
            before = {n: p.detach().clone() for n, p in named.items()}
            grads = {n: p.grad.clone() for n, p in named.items() if p.grad is not None}
            optimizer.step()
            yield loss.item(), grads, before, {n: p.detach().clone() for n, p in named.items()}


def crossings(values: list[bool]) -> list[int]:
    """The steps (from 1) at which a limit is passed that was not passed before."""
    return [i for i, now in enumerate(values, 1) if now and not (i > 1 and values[i - 2])]


@pytest.fixture
def setup(moons: TrainingSetup) -> TrainingSetup:
    return replace(moons, epochs=12, batch_size=8, **SGD)


def test_loss_spike(setup: TrainingSetup, make_mlp: Make) -> None:
    losses = [loss for loss, *_ in plain(make_mlp(), setup)]
    limit, passed = 1.6, []
    for i, loss in enumerate(losses):
        before = losses[max(0, i - 20) : i]
        passed.append(len(before) >= 10 and loss > limit * median(before))
    loop = TrainingLoop(make_mlp(), replace(setup, hold=HoldWhen(loss_spike=limit)))
    found = holds(loop)
    assert [(hold.step, done) for hold, done in found] == [(s, False) for s in crossings(passed)]
    assert found, "the loss must spike for this test"
    first = found[0][0]
    assert f"The loss is {losses[first.step - 1]:.4g}," in first.text


def test_a_spike_is_told_when_it_begins_once_there_are_ten_losses() -> None:
    spikes = LossSpikes(limit=2.0)
    assert [spikes.look(loss) for loss in (1.0, 50.0, *[1.0] * 7)] == [""] * 9
    assert spikes.look(50.0) == ""  # nine before it
    told = "The loss is 50, 50 times the median 1 of the {} before it."
    assert [spikes.look(loss) for loss in (50.0, 50.0, 2.0, 2.5)] == [
        told.format(10), "", "", "The loss is 2.5, 2.5 times the median 1 of the 13 before it.",
    ]  # fmt: skip
    assert [spikes.look(1.0) for _ in range(20)] == [""] * 20
    assert spikes.look(50.0) == told.format(20)
    none = LossSpikes(limit=2.0)
    assert [none.look(loss) for loss in (*[0.0] * 12, 5.0, -5.0)] == [""] * 14


def test_phases_are_those_of_a_run_without_a_limit_where_dead_units_are_looked_for(
    setup: TrainingSetup,
) -> None:
    seen = []
    for hold in (HoldWhen(), HoldWhen(dead_units=1.0)):
        loop = TrainingLoop(Halved(), replace(setup, hold=hold))
        steps, phases = loop.steps(), []
        while loop.step < 12:
            loop.by = "phase"
            next(steps)
            phases.append((loop.step, loop.current and tuple(loop.current.done)))
        seen.append(phases)
        steps.close()
        loop.close()
    assert seen[0] == seen[1] and len(seen[0]) >= 12 * 5


def test_gradient_norm(setup: TrainingSetup, make_mlp: Make) -> None:
    gradients = [grads for _, grads, *_ in plain(make_mlp(), setup)]
    norms = [float(utils.get_total_norm(list(grads.values()))) for grads in gradients]
    limit = sorted(norms)[-8]
    loop = TrainingLoop(make_mlp(), replace(setup, hold=HoldWhen(gradient_norm=limit)))
    found = holds(loop)
    assert [h.step for h, _ in found] == crossings([norm > limit for norm in norms])
    assert not any(done for _, done in found)
    hold = found[0][0]
    of_each = {n: float(g.norm()) for n, g in gradients[hold.step - 1].items()}
    assert hold.parameter == max(of_each, key=lambda name: of_each[name])
    assert f"{norms[hold.step - 1]:.4g}, above {limit:g}" in hold.text
    assert f"{of_each[hold.parameter]:.4g}. It is held" in hold.text


@pytest.mark.parametrize(("kind", "quantile"), [("ratio_above", -4), ("ratio_below", 3)])
def test_update_ratios(setup: TrainingSetup, make_mlp: Make, kind: str, quantile: int) -> None:
    name = "4.weight"
    ratios: dict[str, list[float]] = {}
    for _, _, before, after in plain(make_mlp(), setup):
        for each in before:
            length = float(before[each].norm())
            moved = float((after[each] - before[each]).norm())
            ratios.setdefault(each, []).append(moved / length if length else float("nan"))
    limit = sorted(ratios[name])[quantile]
    passes = float.__gt__ if kind == "ratio_above" else float.__lt__
    wanted = {
        step
        for values in ratios.values()
        for step in crossings([passes(value, limit) for value in values])
    }
    loop = TrainingLoop(make_mlp(), replace(setup, hold=replace(HoldWhen(), **{kind: limit})))
    found = holds(loop)
    assert {hold.step for hold, _ in found} == wanted
    assert all(done for _, done in found)
    hold = found[0][0]
    assert f"{ratios[hold.parameter][hold.step - 1]:.3g} of its 2-norm" in hold.text


class Halved(nn.Module):
    """`lost` has no part in the loss; half of the units of the ReLU are dead."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(2, 8), nn.Linear(8, 2)
        self.lost = nn.Linear(2, 2)
        with torch.no_grad():
            self.first.bias[:4] = -100.0

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.relu(self.first(x)))


def test_unchanged_parameters(setup: TrainingSetup) -> None:
    loop = TrainingLoop(Halved(), replace(setup, hold=HoldWhen(unchanged=4)))
    found = holds(loop)
    assert [(hold.step, hold.parameter) for hold, _ in found[:1]] == [(8, "lost.weight")]
    assert "has not changed in 4 steps: it has no gradient" in found[0][0].text
    frozen = Halved()
    frozen.lost.requires_grad_(False)
    assert holds(TrainingLoop(frozen, replace(setup, hold=HoldWhen(unchanged=4)))) == []


def test_an_update_that_is_lost_in_the_last_digit(setup: TrainingSetup, make_mlp: Make) -> None:
    slow = replace(setup, optimizer_params={"lr": 1e-12}, hold=HoldWhen(unchanged=3))
    texts = [hold.text for hold, _ in holds(TrainingLoop(make_mlp(), slow))]
    assert any("too small for its dtype" in text for text in texts)


def test_dead_units(setup: TrainingSetup) -> None:
    model = Halved()
    first, last = holds(TrainingLoop(model, replace(setup, hold=HoldWhen(dead_units=0.5))))[0]
    assert (first.step, last) == (30, True)
    assert "4 of 8 units of `torch.relu` in the model" in first.text
    assert "all of 24 values each" in first.text  # three looks at batches of 8
    assert first.file == __file__
    assert holds(TrainingLoop(Halved(), replace(setup, hold=HoldWhen(dead_units=0.9)))) == []


def test_looking_changes_no_weight(setup: TrainingSetup, make_mlp: Make) -> None:
    every = HoldWhen(True, 1.1, 0.01, 1e-3, 1e-3, 0.01, 2)
    seen = TrainingLoop(make_mlp(), replace(setup, hold=every))
    assert len({hold.kind for hold, _ in holds(seen)}) >= 4
    unseen = TrainingLoop(make_mlp(), setup)
    assert holds(unseen) == []
    for mine, theirs in zip(seen.model.parameters(), unseen.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    assert not unseen.holding.looks
