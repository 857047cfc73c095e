"""Which calls of a loop are looked at, step by step."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from engine.advice import first_steps
from engine.advice.adviser import Adviser
from engine.advice.first_steps import FirstSteps
from engine.advice.trained import Trained
from engine.protocol import Finding


class Run:
    """Steps of a loop, told to an adviser as the hooks do. The optimizer has a closure, so that
    nothing is watched for zero_grad."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self.adviser = Adviser(self.found.append)
        self.weight = nn.Parameter(torch.ones(1))
        self.optimizer = torch.optim.SGD([self.weight])
        self.norm = nn.BatchNorm1d(1)

    def step(self, forwards: int = 1) -> list[bool]:
        """Whether it looked at each of the calls of modules of this step."""
        looked = [self.adviser.looks() for _ in range(forwards)]
        loss = (self.weight * 2).sum()
        self.adviser.saw_loss(loss.detach(), loss)
        self.adviser.before_step(self.optimizer, True)
        self.adviser.after_step(self.optimizer, True)
        return looked

    def normalize(self, is_training: bool = True) -> None:
        """A BatchNorm runs in train mode, with a graph."""
        net = self.norm.train(is_training)
        x, mean, var = torch.ones(2, 1), torch.zeros(1), torch.ones(1)
        given = (x, mean, var, net.weight, net.bias, is_training)
        self.adviser.told[F.batch_norm](F.batch_norm, given, {}, net(x), (net,))


def test_the_first_32_steps_are_looked_at_then_64_and_then_one_in_128() -> None:
    run = Run()
    looked = [step for step in range(1, 400) if all(run.step(2))]
    assert looked == [*range(1, 35), 65, 129, 257, 385]
    assert run.adviser.steps == 399


def test_while_a_new_optimizer_has_graphs_to_walk_all_steps_are_looked_at() -> None:
    run = Run()
    for _ in range(70):
        run.step()
    assert run.step() == [False]
    run.optimizer = torch.optim.SGD([run.weight])  # WALKS of its losses are walked
    run.step()
    assert [run.step() for _ in range(8)] == [[True]] * 7 + [[False]]


@pytest.mark.parametrize(("usual", "first"), [(1, 3), (2, 5), (3, 7)])
def test_more_calls_without_a_backward_than_usual_are_an_evaluation(usual: int, first: int) -> None:
    """Twice as many as in the first steps; eight of them are looked at."""
    run = Run()
    for _ in range(20):
        run.adviser.looks()  # before the first step: to see that the model runs
    run.step()
    run.normalize()
    for _ in range(35):
        run.step(usual)
    assert not any(run.step(first - 1))
    looked = []
    for _ in range(20):
        looked.append(run.adviser.looks())
        run.adviser.before_step(run.optimizer, True)  # another look would go on until then
    assert [at for at, each in enumerate(looked, 1) if each] == [*range(first, first + 8)]
    run.step()
    assert run.step(first)[-2:] == [False, True]  # later steps do not change what is usual


def test_without_layers_that_differ_between_the_modes_no_evaluation_is_looked_at() -> None:
    run = Run()
    for _ in range(40):
        run.step()
    assert not any(run.step(30))


def test_a_look_at_an_evaluation_ends_with_the_next_step() -> None:
    run = Run()
    run.normalize()
    for _ in range(40):
        run.step()
    assert F.mse_loss not in run.adviser.told and F.batch_norm in run.adviser.told
    run.normalize(is_training=False)
    assert F.mse_loss in run.adviser.told and run.adviser.looks()
    run.step()
    assert F.mse_loss not in run.adviser.told and not run.adviser.looks()


def test_an_error_of_a_check_ends_the_advice_and_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no graph")

    monkeypatch.setattr(Trained, "saw_loss", fail)
    run = Run()
    for _ in range(3):
        run.step()
    run.normalize()
    run.adviser.end()
    assert [record.message for record in caplog.records] == [
        "No more advice is given about this code."
    ]
    assert run.adviser.steps == 3 and not run.found


def test_a_run_of_train_is_looked_over_for_65_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, entered = [], []
    end, shown = Adviser.end, first_steps.steps_shown
    monkeypatch.setattr(Adviser, "end", lambda self: ended.append(end(self)))
    monkeypatch.setattr(first_steps, "steps_shown", lambda a: entered.append(1) or shown(a))
    net = nn.Linear(2, 1)
    optimizer, first = torch.optim.SGD(net.parameters(), 0.1), FirstSteps(net, lambda found: None)
    for step in range(1, 71):
        with first.looked_over():
            optimizer.zero_grad()
            net(torch.ones(1, 2)).sum().backward()
            optimizer.step()
        assert (len(entered), len(ended)) == (min(step, 65), int(step > 65))
    first.end()
    assert len(ended) == 1
