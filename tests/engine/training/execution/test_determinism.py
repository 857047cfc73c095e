"""Deterministic mode: torch's own switches, only while a run computes, and refusals in words."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from engine.project.document import DataSetup, TrainingSetup, replace
from engine.training.between_steps import kept_between_steps
from engine.training.execution.determinism import Determinism, refused_operation
from engine.training.loop import TrainingLoop
from engine.training.run import TrainingRun

SETUP = TrainingSetup(
    data=DataSetup("moons", {"samples": 100}), batch_size=32, epochs=1, deterministic=True
)


class Seen(nn.Module):
    """Notes whether torch is in deterministic mode, in forward and in backward."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.modes: set[bool] = set()

    def forward(self, x):
        self.modes.add(torch.are_deterministic_algorithms_enabled())
        y = self.linear(x)
        if y.requires_grad:
            y.register_hook(lambda _: self.modes.add(torch.are_deterministic_algorithms_enabled()))
        return y


class Unpooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        pooled, indices = nn.functional.max_pool1d(self.linear(x)[:, None], 2, return_indices=True)
        return self.head(nn.functional.max_unpool1d(pooled, indices, [2])[:, 0])


@pytest.mark.parametrize("is_on", [True, False])
def test_torch_is_in_the_mode_while_the_run_computes_and_not_between(is_on: bool) -> None:
    model = Seen()
    loop = TrainingLoop(model, replace(SETUP, deterministic=is_on))
    steps = loop.steps()
    next(steps)
    with kept_between_steps(loop):
        assert not torch.are_deterministic_algorithms_enabled()
    for _ in steps:
        pass
    loop.close()
    assert model.modes == {is_on}
    assert not torch.are_deterministic_algorithms_enabled()
    assert not torch.backends.cudnn.deterministic


def test_an_operation_without_a_deterministic_form_is_named() -> None:
    run = TrainingRun(TrainingLoop(Unpooled(), SETUP))
    for _ in run.steps():
        pass
    run.close()
    assert run.failure is not None
    assert "max_unpooling2d" in run.failure.message
    assert "no deterministic implementation" in run.failure.message
    assert "turn deterministic off" in run.failure.hint
    usual = TrainingRun(TrainingLoop(Unpooled(), replace(SETUP, deterministic=False)))
    for _ in usual.steps():
        pass
    usual.close()
    assert usual.failure is None


def test_a_mode_that_was_on_before_is_on_again() -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with Determinism(True, torch.device("cpu")):
            assert not torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
    finally:
        torch.use_deterministic_algorithms(False)


def test_other_errors_are_not_refusals() -> None:
    assert refused_operation(RuntimeError("shapes do not match")) == ""
    assert refused_operation(ValueError("x does not have a deterministic implementation")) == ""
