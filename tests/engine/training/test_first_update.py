"""The rule of each optimizer, in symbols, gives the number that torch's own step gives."""

from __future__ import annotations

import itertools
import math
import re

import pytest
import torch

from engine.project.catalogue import optimizers
from engine.project.updates import options_of, update_rule
from engine.system.errors import LabError
from engine.training.optimization.first_update import first_update

CHOICES = {
    "optim.SGD": {
        "lr": [0.1],
        "momentum": [0.0, 0.9],
        "dampening": [0.0],
        "weight_decay": [0.0, 0.01],
        "nesterov": [False, True],
        "maximize": [False, True],
    },
    "optim.Adam": {
        "lr": [0.003],
        "eps": [1e-8, 0.1],
        "weight_decay": [0.0, 0.01],
        "amsgrad": [False, True],
        "maximize": [False, True],
    },
    "optim.AdamW": {"lr": [0.003], "weight_decay": [0.0, 0.5], "maximize": [False, True]},
    "optim.RMSprop": {
        "alpha": [0.9, 0.99],
        "weight_decay": [0.0, 0.01],
        "momentum": [0.0, 0.9],
        "centered": [False, True],
        "maximize": [False, True],
    },
    "optim.Adagrad": {
        "lr_decay": [0.0, 0.5],
        "weight_decay": [0.0, 0.01],
        "initial_accumulator_value": [0.0, 0.25],
    },
    "optim.Adadelta": {"rho": [0.9, 0.5], "weight_decay": [0.0, 0.01], "maximize": [False, True]},
    "optim.Adamax": {"lr": [0.003], "eps": [1e-8, 0.1], "maximize": [False, True]},
    "optim.RAdam": {"lr": [0.003], "weight_decay": [0.0, 0.01], "maximize": [False, True]},
    "optim.ASGD": {"lambd": [0.0001, 0.5], "weight_decay": [0.0, 0.01]},
    "optim.Rprop": {"lr": [0.003], "maximize": [False, True]},
}
CASES = [
    (optimizer, dict(zip(choices, values, strict=True)))
    for optimizer, choices in CHOICES.items()
    for values in itertools.product(*choices.values())
    if not (dict(zip(choices, values, strict=True)).get("nesterov") and not values[1])
]


def worked_out(rule: str, numbers: dict[str, float]) -> float:
    """The rule with its numbers, by Python's arithmetic."""
    python = rule.replace("·", "*").replace("−", "-").replace("√", "sqrt").replace("²", "**2")
    python = re.sub(r"\|([^|]+)\|", r"abs(\1)", python)
    names = {"sqrt": math.sqrt, "abs": abs, "sign": lambda number: math.copysign(1.0, number)}
    return eval(python, names, numbers)


def by_torch(optimizer, params, parameter, gradient, steps=1):
    weight = torch.nn.Parameter(parameter.clone())
    made = getattr(torch.optim, optimizer.removeprefix("optim."))([weight], **params)
    for _ in range(steps):
        weight.grad = gradient.clone()
        made.step()
    return weight.detach()


@pytest.mark.parametrize(("optimizer", "params"), CASES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_first_step(optimizer, params, sign):
    parameter = torch.tensor([[0.5, -0.25], [0.125, 0.75]], dtype=torch.float64)
    gradient = sign * torch.tensor([[0.1, 0.4], [-0.8, 0.2]], dtype=torch.float64)
    update = first_update(parameter, gradient, optimizer, params)
    assert update is not None and update.index == (1, 0)
    assert (update.numbers["old"], update.numbers["grad"]) == (0.125, -0.8 * sign)
    expected = by_torch(optimizer, params, parameter, gradient)[1, 0].item()
    assert update.new == expected
    assert worked_out(update.rule, update.numbers) == pytest.approx(expected, rel=1e-6, abs=1e-9)


WHOLE = ["optim.NAdam", "optim.Adafactor", "optim.LBFGS", "optim.Muon", "optim.SparseAdam"]


@pytest.mark.parametrize("optimizer", WHOLE)
def test_an_optimizer_of_whole_tensors_has_words_only(optimizer):
    rule = update_rule(optimizer, {})
    assert (rule.step, rule.first) == ("", "") and rule.words
    assert first_update(torch.randn(3, 4), torch.randn(3, 4), optimizer, {}) is None


@pytest.mark.parametrize("optimizer", sorted({*optimizers()} - {*WHOLE}))
def test_with_torchs_own_options(optimizer):
    parameter, gradient = torch.randn(3, 4), torch.randn(3, 4)
    update = first_update(parameter, gradient, optimizer, {})
    assert update is not None
    flat = int(gradient.abs().argmax())
    assert update.index == (flat // 4, flat % 4)
    assert update.new == by_torch(optimizer, {}, parameter, gradient)[update.index].item()
    assert update.optimizer == optimizer.removeprefix("optim.")
    assert update.numbers["lr"] == options_of(optimizer, {})["lr"]


def test_later_steps_follow_the_rule_too():
    """What `step` and `words` say of momentum, worked through twice."""
    rule = update_rule("optim.SGD", {"momentum": 0.9, "lr": 0.1})
    assert rule.step == "old − lr · velocity"
    assert rule.words.startswith("velocity = momentum · velocity + grad;")
    old, grad, velocity = 0.5, 0.25, 0.0
    for _ in range(3):
        velocity = worked_out("momentum · velocity + grad", locals() | {"momentum": 0.9})
        old = worked_out(rule.step, {"old": old, "lr": 0.1, "velocity": velocity})
    start, gradient = torch.tensor(0.5, dtype=torch.float64), torch.tensor(0.25).double()
    params = {"momentum": 0.9, "lr": 0.1}
    assert old == pytest.approx(by_torch("optim.SGD", params, start, gradient, 3).item())


def test_special_tensors():
    assert first_update(torch.zeros(0), torch.zeros(0), "optim.SGD", {}) is None
    assert first_update(torch.zeros(1) + 0j, torch.zeros(1) + 0j, "optim.SGD", {}) is None
    scalar = first_update(torch.tensor(2.0), torch.tensor(12.0), "optim.SGD", {"lr": 0.25})
    assert scalar is not None and scalar.index == () and scalar.new == -1.0
    weight = torch.nn.Embedding(4, 2, sparse=True)
    weight(torch.tensor([1, 1])).sum().backward()
    assert weight.weight.grad is not None
    sparse = first_update(weight.weight, weight.weight.grad, "optim.SGD", {"lr": 1.0})
    assert sparse is not None and sparse.index == (1, 0) and sparse.numbers["grad"] == 2.0
    nan = torch.tensor([math.nan, 1.0])
    some = first_update(torch.zeros(2), nan, "optim.SGD", {"lr": 1.0})
    assert some is not None and some.index == (1,) and some.new == -1.0


def test_nothing_is_changed():
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.sum().backward()
    state = torch.random.get_rng_state()
    assert parameter.grad is not None
    first_update(parameter, parameter.grad, "optim.Adam", {})
    assert parameter.equal(torch.ones(2)) and parameter.grad.equal(torch.ones(2))
    assert parameter._version == 0 and torch.random.get_rng_state().equal(state)


def test_bad_options_are_told():
    with pytest.raises(LabError, match="Foo"):
        first_update(torch.ones(1), torch.ones(1), "optim.Foo", {})
    with pytest.raises(LabError):
        first_update(torch.ones(1), torch.ones(1), "optim.SGD", {"nesterov": True})
