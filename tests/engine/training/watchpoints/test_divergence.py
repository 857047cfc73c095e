"""A run is held where chance makes a number that is not finite, and the same chance names it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from engine.project.document import TrainingSetup
from engine.training.figures.metrics import Diverged
from engine.training.loop import TrainingLoop


class Chancy(nn.Module):
    """One draw of eight takes the logarithm of a negative number."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) + torch.log(torch.rand(()) - 0.125).nan_to_num(
            neginf=0.0, nan=torch.nan
        )


def first_bad_step(setup: TrainingSetup) -> int:
    """The step in which a plain draw from the run's stream is below 1/8."""
    torch.manual_seed(setup.seed)
    step = 1
    while float(torch.rand(())) >= 0.125:
        step += 1
    return step


@pytest.mark.parametrize("seed", range(5))
def test_the_numbers_of_chance_are_those_of_the_step(moons: TrainingSetup, seed: int) -> None:
    setup = TrainingSetup(data=moons.data, batch_size=8, epochs=10, seed=seed)
    loop = TrainingLoop(Chancy(), setup)
    loop.holding.look_for_divergence()
    steps = loop.steps()
    while loop.holding.hold is None:
        next(steps)
    hold = loop.holding.hold
    assert hold.step == first_bad_step(setup)
    assert "`torch.log` in the model" in hold.text
    state = loop.random.state()["cpu"]
    torch.manual_seed(seed)
    for _ in range(hold.step):
        torch.rand(())
    assert torch.equal(state, torch.get_rng_state())
    with pytest.raises(Diverged):
        next(steps)
