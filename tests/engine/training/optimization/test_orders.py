"""Steps whose phases are left out or come in another order, against a plain loop."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import islice, permutations
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import utils

from engine.datasets.dataset import epoch_order
from engine.datasets.load import load_dataset
from engine.project.document import TrainingSetup, replace
from engine.project.step_order import PHASES, order_problem, unusual_words
from engine.system.errors import LabError
from engine.training.checkpoints import checkpoint_files
from engine.training.loop import TrainingLoop

SGD = {"optimizer": "optim.SGD", "optimizer_params": {"lr": 0.1, "momentum": 0.9}}
RUNNABLE = [
    order
    for size in range(2, 6)
    for order in permutations(PHASES, size)
    if not order_problem(order) and "refuses" not in unusual_words(order)
]


def plain(model: nn.Module, setup: TrainingSetup) -> tuple[list[float], list[float]]:
    """A loop as it stands in a script: the losses and the gradient norms of its updates."""
    data = load_dataset(setup.data)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses, norms = [], []
    torch.manual_seed(setup.seed)
    for epoch in range(setup.epochs):
        model.train()
        rows = epoch_order(len(data), setup.seed, epoch).split(setup.batch_size)
        batches = iter([(data.x_train[r], data.y_train[r]) for r in rows])
        while of_step := list(islice(batches, setup.accumulate)):
            assert len(of_step) == 1
            (x, y), prediction, loss = of_step[0], torch.empty(0), torch.empty(0)
            for phase in setup.order:
                if phase == "zero_grad":
                    optimizer.zero_grad()
                elif phase == "forward":
                    prediction = model(x)
                elif phase == "loss":
                    loss = nn.functional.cross_entropy(prediction, y)
                    losses.append(loss.item())
                elif phase == "backward":
                    loss.backward()
                else:
                    grads = [p.grad for p in model.parameters() if p.grad is not None]
                    norms.append(float(utils.get_total_norm(grads)))
                    if setup.clip_value and grads:
                        utils.clip_grad_value_(model.parameters(), setup.clip_value)
                    optimizer.step()
            if "step" not in setup.order:
                grads = [p.grad for p in model.parameters() if p.grad is not None]
                norms.append(float(utils.get_total_norm(grads)))
    return losses, norms


@pytest.mark.parametrize("clip_value", [0.0, 0.01])
@pytest.mark.parametrize("order", RUNNABLE, ids="-".join)
def test_every_order_trains_as_a_plain_loop_of_it(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], order, clip_value: float
) -> None:
    setup = replace(moons, order=order, clip_value=clip_value, **SGD)
    loop, by_hand = TrainingLoop(make_mlp(), setup), make_mlp()
    for _ in loop.steps():
        pass
    loop.flush()
    losses, norms = plain(by_hand, setup)
    assert [row.loss for row in loop.metrics.history] == losses
    assert [row.gradient_norm for row in loop.metrics.history] == pytest.approx(norms)
    for mine, theirs in zip(loop.model.parameters(), by_hand.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize(
    "order",
    [("forward", "loss", "backward", "step"), ("step", "zero_grad", "forward", "loss", "backward")],
)
def test_a_file_has_the_gradients_that_the_next_step_uses(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], order
) -> None:
    setup = replace(moons, order=order, **SGD)
    whole = TrainingLoop(make_mlp(), setup)
    for _ in whole.steps():
        pass
    first = TrainingLoop(make_mlp(), setup)
    steps = first.steps()
    while first.step < 4:
        next(steps)
    path = checkpoint_files.save(first.checkpoint("a"))
    steps.close()
    second = TrainingLoop(make_mlp(), setup)
    second.restore(checkpoint_files.load(path))
    for _ in second.steps():
        pass
    for mine, theirs in zip(second.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_a_checkpoint_keeps_its_gradients_while_a_loop_goes_on_from_it(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    loop = TrainingLoop(make_mlp(), replace(moons, order=PHASES[1:], **SGD))
    next(loop.steps())
    saved = loop.checkpoint("a")
    before = {name: gradient.clone() for name, gradient in saved.gradients.items()}
    loop.restore(saved)
    next(loop.steps())  # backward adds to the gradients in place
    moved = [p.grad for p in loop.parameters if p.grad is not None]
    assert before and not all(map(torch.equal, moved, before.values()))
    for name, gradient in before.items():
        assert torch.equal(saved.gradients[name], gradient)


def test_a_checkpoint_with_a_gradient_of_another_shape_is_refused(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    loop = TrainingLoop(make_mlp(), replace(moons, order=PHASES[1:], **SGD))
    next(loop.steps())
    saved = loop.checkpoint("a")
    gradients = {**saved.gradients, "0.weight": torch.zeros(3)}
    saved = replace(saved, gradients=gradients)
    with pytest.raises(LabError, match=r"gradient of shape \(3,\) for 0.weight"):
        loop.restore(saved)


def test_a_file_from_before_there_were_gradients_is_read(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], tmp_path: Path
) -> None:
    loop = TrainingLoop(make_mlp(), moons)
    path = checkpoint_files.save(loop.checkpoint("a"))
    fields = torch.load(path, weights_only=True)
    del fields["gradients"]
    torch.save(fields, path)
    assert checkpoint_files.load(path).gradients == {}


def test_several_batches_a_step_without_zero_grad(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    setup = replace(moons, order=PHASES[1:], accumulate=2, epochs=1, **SGD)
    loop, model = TrainingLoop(make_mlp(), setup), make_mlp()
    for _ in loop.steps():
        pass
    data = load_dataset(setup.data)
    rows = epoch_order(len(data), setup.seed, 0).split(setup.batch_size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(setup.seed)
    for pair in (rows[:2], rows[2:]):
        for r in pair:
            loss = nn.functional.cross_entropy(model(data.x_train[r]), data.y_train[r])
            (loss / 2).backward()
        optimizer.step()
    for mine, theirs in zip(loop.model.parameters(), model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_orders_that_cannot_be(moons: TrainingSetup, make_mlp) -> None:
    assert "only once" in order_problem(("forward", "loss", "loss"))
    assert "needs forward" in order_problem(("zero_grad", "loss", "backward", "step"))
    assert "forward comes before" in order_problem(("loss", "forward"))
    assert "the loss comes before" in order_problem(("forward", "backward", "loss"))
    for change in ({"optimizer": "optim.LBFGS"}, {"precision": "float16"}):
        with pytest.raises(LabError, match="cannot be left out"):
            TrainingLoop(make_mlp(), replace(moons, order=PHASES[1:], **change))


def test_words_of_an_order_are_those_of_what_it_does(moons: TrainingSetup, make_mlp) -> None:
    assert unusual_words(PHASES) == ""
    for order in random.Random(0).sample(RUNNABLE, len(RUNNABLE)):
        words = unusual_words(order)
        loop = TrainingLoop(make_mlp(), replace(moons, order=order, epochs=1, **SGD))
        before = [p.detach().clone() for p in loop.parameters]
        for _ in loop.steps():
            pass
        moved = any(not torch.equal(a, b) for a, b in zip(before, loop.parameters, strict=True))
        stays = ("no gradient", "no weight", "gets a gradient")
        assert moved != any(part in words for part in stays), (order, words)


def test_a_step_between_forward_and_backward_is_refused_by_torch(moons, make_mlp) -> None:
    order = ("zero_grad", "forward", "loss", "step", "backward")
    assert "torch refuses" not in unusual_words(order)  # zero_grad leaves the step no gradient
    order = ("forward", "loss", "step", "zero_grad", "backward")
    assert "torch refuses" in unusual_words(order)
    with pytest.raises(RuntimeError, match="inplace"):
        list(TrainingLoop(make_mlp(), replace(moons, order=order, **SGD)).steps())
