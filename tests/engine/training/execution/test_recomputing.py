"""Activation checkpointing: the same numbers as without, and the memory that is told of it."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from engine.project.document import Averaging, DataSetup, TrainingSetup, replace
from engine.system.errors import LabError
from engine.training.execution.recomputing import Recomputing, outermost
from engine.training.loop import TrainingLoop
from engine.training.memory.step_memory import measured, predicted

SETUP = TrainingSetup(
    data=DataSetup("moons", {"samples": 200}),
    optimizer="optim.SGD",
    optimizer_params={"lr": 0.1, "momentum": 0.9},
    batch_size=32,
    epochs=2,
    seed=3,
)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.first = nn.Linear(2, 16)
        self.body = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3))
            for _ in range(3)
        )
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        x = self.first(x)
        for part in self.body:
            x = x + part(x)
        return self.head(x)


def finish(loop: TrainingLoop) -> TrainingLoop:
    for _ in loop.steps():
        pass
    loop.close()
    return loop


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"precision": "bfloat16"},
        {"accumulate": 2, "clip_norm": 0.1},
        {"averaging": Averaging("SWA")},
        {"deterministic": True},
    ],
)
def test_a_run_is_bit_for_bit_the_same_with_dropout_and_batch_norm(changes: dict) -> None:
    plain = finish(TrainingLoop(Net(), replace(SETUP, **changes)))
    paths = ("body.0", "body.1", "body.1.0", "body.2")
    again = finish(TrainingLoop(Net(), replace(SETUP, recomputed=paths, **changes)))
    then, now = plain.model.state_dict(), again.model.state_dict()
    assert then.keys() == now.keys()
    for name, tensor in then.items():
        assert torch.equal(tensor, now[name]), name
    assert [row.loss for row in plain.metrics.history] == [r.loss for r in again.metrics.history]
    assert "forward" not in again.model.get_submodule("body.0").__dict__


def test_a_chosen_module_runs_twice_a_step_and_the_others_once() -> None:
    model, calls = Net(), {"chosen": 0, "other": 0}
    model.get_submodule("body.0.0").register_forward_hook(
        lambda *_: calls.update(chosen=calls["chosen"] + 1)
    )
    model.get_submodule("body.1.0").register_forward_hook(
        lambda *_: calls.update(other=calls["other"] + 1)
    )
    with Recomputing(model, ("body.0",)):
        loss = model(torch.randn(8, 2)).sum()
    loss.backward()
    assert calls == {"chosen": 2, "other": 1}
    with torch.no_grad(), Recomputing(model, ("body.0",)):
        model(torch.randn(8, 2))
    assert calls == {"chosen": 3, "other": 2}


def test_modules_inside_a_chosen_one_are_a_part_of_it() -> None:
    assert outermost(("a.b", "a", "ab", "c.d")) == ("a", "ab", "c.d")


def test_a_module_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(LabError, match="no module “body") as told:
        TrainingLoop(Net(), replace(SETUP, recomputed=("body.7",)))
    assert "first, body, head" in told.value.hint


def test_a_scripted_module_is_told() -> None:
    model = nn.Sequential(torch.jit.script(nn.Linear(2, 2)))
    with pytest.raises(LabError, match="TorchScript"):
        Recomputing(model, ("0",))


# -- memory ----------------------------------------------------------------------------------------

ROWS, WIDTH = 256, 512


def stack() -> nn.Sequential:
    blocks = (nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Sigmoid()) for _ in range(4))
    return nn.Sequential(nn.Linear(3, WIDTH), *blocks, nn.Linear(WIDTH, 1))


def test_the_memory_of_a_step_is_that_of_its_tensors() -> None:
    torch.manual_seed(0)
    model, x = stack(), torch.randn(ROWS, 3)
    without = measured(lambda: model(x).mean())
    activation = ROWS * WIDTH * 4
    # The output of the first Linear and of each Sigmoid; and the loss, one float.
    assert without.kept == 5 * activation + 4
    gradients = sum(parameter.nbytes for parameter in model.parameters())
    assert gradients < without.peak < gradients + without.kept + 3 * activation


@pytest.mark.parametrize("chosen", [("1",), ("1", "2", "3", "4"), ()])
def test_the_memory_is_predicted_before_anything_is_computed_again(chosen: tuple) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(3, 64),
        *(
            nn.Sequential(nn.Linear(64, WIDTH), nn.Sigmoid(), nn.Linear(WIDTH, 64))
            for _ in range(4)
        ),
        nn.Linear(64, 1),
    )
    x = torch.randn(ROWS, 3)
    without = measured(lambda: model(x).mean())
    recomputing = Recomputing(model, chosen)
    gradients = sum(parameter.nbytes for parameter in model.parameters())
    forecast = predicted(lambda: model(x).mean(), recomputing.modules, without, gradients)

    def run():
        with recomputing:
            return model(x).mean()

    model.zero_grad()
    now = measured(run)
    assert forecast.kept == now.kept == without.kept - len(chosen) * ROWS * WIDTH * 4
    assert forecast.peak == pytest.approx(now.peak, rel=0.1)
    model.zero_grad()

    def by_hand():
        h = model[0](x)
        for number in "1234":
            part = model.get_submodule(number)
            h = checkpoint(part, h, use_reentrant=False) if number in chosen else part(h)
        return model[5](h).mean()

    assert measured(by_hand) == now
