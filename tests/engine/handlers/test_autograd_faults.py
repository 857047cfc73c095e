"""Faults of the Autograd page that were mended: each test fails on the program before."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from engine.autograd.backward.backward_pass import BackwardPass
from engine.autograd.backward.roots import ModelSubject
from engine.autograd.formulas.rule import rule_of
from engine.autograd.graph.reading import read_graph
from engine.errors import LabError
from engine.project.examples import graph_examples
from engine.protocol import (
    BackwardSnapshot,
    CompareGradientsCommand,
    ComparisonSnapshot,
    ErrorSnapshot,
    InspectCommand,
    ZeroGradientsCommand,
)
from tests.engine.handlers.test_backward_handlers import begun
from tests.engine.handlers.test_graph_numbers import Told, told  # noqa: F401 (a fixture)


def test_a_pass_that_cannot_start_leaves_grad_as_it_is() -> None:
    lab, _ = begun()
    forward = lab.models.require_forward()
    while not forward.done:
        forward.step()
    parameters = dict(forward.module.named_parameters())
    for parameter in parameters.values():
        parameter.grad = torch.ones_like(parameter)
    subject, loss = ModelSubject(forward), forward.loss
    assert loss is not None
    subject.roots = [torch.stack([loss, loss])]  # no scalar: it needs a gradient
    with pytest.raises(LabError, match="gradient"):
        BackwardPass(subject)
    assert all(p.grad is not None and (p.grad == 1).all() for p in parameters.values())
    started = BackwardPass(ModelSubject(forward))
    assert all(p.grad is None for p in parameters.values()) and not started.gradients_before


def test_compare_after_zero_grad_names_the_cause(told: Told) -> None:  # noqa: F811
    told.run("x = torch.tensor(3.0, requires_grad=True)\ny = x ** 2", "y")
    told.move("end")
    told.session.handle(CompareGradientsCommand())
    assert told.newest[ComparisonSnapshot].zeroed is False
    told.session.handle(ZeroGradientsCommand(set_to_none=True))
    told.session.handle(CompareGradientsCommand())
    compared = told.newest[ComparisonSnapshot]
    assert compared.zeroed and compared.max_difference == float("inf")


def test_zero_grad_before_the_first_node_is_no_cause(told: Told) -> None:  # noqa: F811
    told.run("x = torch.tensor(3.0, requires_grad=True)\ny = x ** 2", "y")
    told.session.handle(ZeroGradientsCommand(set_to_none=True))
    told.move("end")
    told.session.handle(CompareGradientsCommand())
    compared = told.newest[ComparisonSnapshot]
    assert not compared.zeroed and compared.max_difference == 0


def leaf(*shape: int) -> torch.Tensor:
    return torch.ones(shape, requires_grad=True)


@pytest.mark.parametrize(
    ("make", "number", "formula"),
    [
        (
            lambda: F.linear(torch.randn(5, 3), torch.randn(2, 3), leaf(2)),
            0,
            "∂L/∂c = Σ g, over dim 0",
        ),
        (lambda: torch.randn(4, 3) + torch.zeros(3, requires_grad=True), 1, "Σ g, over dim 0"),
        (
            lambda: torch.randn(4, 3) * torch.ones(4, 1, requires_grad=True),
            1,
            "Σ g · a, over dim 1",
        ),
        (
            lambda: torch.randn(4, 3) - torch.zeros((), requires_grad=True),
            1,
            "Σ -g, over dims 0, 1",
        ),
        (lambda: torch.randn(4, 3) + torch.zeros(4, 3, requires_grad=True), 1, "∂L/∂b = g"),
    ],
)
def test_a_formula_says_what_is_summed(make, number, formula) -> None:
    y = make()
    node = read_graph(y.sum()).node_of(y.grad_fn)
    gradient = torch.randn_like(y)
    rule = rule_of(node, (gradient,))
    assert rule.formula(number).endswith(formula)
    (target,) = (n.variable for n in read_graph(y.sum()).nodes if n.is_leaf)
    assert target is not None
    (plain,) = torch.autograd.grad(y, [target], gradient)
    torch.testing.assert_close(rule.compute(number), plain)


def test_the_example_of_cuts_shows_both(told: Told) -> None:  # noqa: F811
    (example,) = (e for e in graph_examples().values() if e.title.startswith("Cuts"))
    graph = told.run(example.code, example.root)
    assert sorted(cut.reason for cut in graph.cuts) == ["detach", "no_grad"]


LAYERS = """
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
w = torch.ones(2, requires_grad=True)
other = torch.ones(2, requires_grad=True)
"""
USE = "loss = (net[1](net[0](torch.ones(1, 2)).detach()) * w.detach().sum()).sum()"


def test_what_gets_no_gradient_is_in_the_list(told: Told) -> None:  # noqa: F811
    told.run(LAYERS, "net[1].weight.sum()")
    told.run(USE, "loss")
    told.move("end")
    backward = told.newest[BackwardSnapshot]
    assert isinstance(backward, BackwardSnapshot)
    rows = {g.name: (g.reached, g.gradient is not None) for g in backward.gradients}
    assert rows == {
        "net[1].weight": (True, True),
        "net[1].bias": (True, True),
        "net[0].weight": (False, False),
        "net[0].bias": (False, False),
        "w": (False, False),
    }
    told.session.handle(InspectCommand(of="parameter", key="w"))
    assert ErrorSnapshot not in told.newest
