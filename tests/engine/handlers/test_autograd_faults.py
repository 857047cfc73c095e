"""Faults of the Autograd page that were mended: each test fails on the program before."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from engine.autograd.backward.backward_pass import BackwardPass
from engine.autograd.backward.roots import ModelSubject
from engine.autograd.formulas.rule import rule_of
from engine.autograd.graph.reading import read_graph
from engine.project.examples import graph_examples
from engine.protocol import (
    BackwardSnapshot,
    CompareGradientsCommand,
    ComparisonSnapshot,
    InspectCommand,
    ValueSnapshot,
    ZeroGradientsCommand,
)
from engine.system.errors import LabError
from tests.engine.handlers.test_backward_handlers import begun
from tests.engine.handlers.test_graph_numbers import Told, told  # noqa: F401 (a fixture)


def test_a_pass_that_cannot_start_leaves_grad_as_it_is() -> None:
    lab, _ = begun()
    forward = lab.models.require_forward()
    while not forward.done:
        forward.step()
    parameters = dict(forward.state.named_parameters())
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
    started.stepper.run()
    assert all(p.grad is not None and not p.grad.requires_grad for p in parameters.values())


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
class Stops(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return None

net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
net[1].bias.requires_grad_(False)
w = torch.ones(2, requires_grad=True)
stopped = torch.ones(2, requires_grad=True)
other = torch.ones(2, requires_grad=True)
"""
USE = """loss = (
    net[1](net[0](torch.ones(1, 2)).detach()) * w.detach().sum() + Stops.apply(stopped).sum()
).sum()
"""


def test_what_gets_no_gradient_is_in_the_list_with_its_reason(told: Told) -> None:  # noqa: F811
    told.run(LAYERS, "net[1].weight.sum()")
    told.run(USE, "loss")
    before = {g.name: g.missing for g in told.newest[BackwardSnapshot].gradients}
    told.move("end")
    backward = told.newest[BackwardSnapshot]
    assert isinstance(backward, BackwardSnapshot)
    rows = {g.name: (g.missing, g.gradient is not None) for g in backward.gradients}
    assert rows == {
        "net[1].weight": (None, True),
        "stopped": ("not_yet", False),
        "net[1].bias": ("not_required", False),
        "net[0].weight": ("cut", False),
        "net[0].bias": ("cut", False),
        "w": ("cut", False),
    }
    assert before == {name: None if name == "stopped" else why for name, (why, _) in rows.items()}
    names = told.session.lab.console.namespace
    for name in rows:
        names.tensor(name).grad = None
    names.tensor("loss").backward()
    assert {name: names.tensor(name).grad is not None for name in rows} == {
        name: has for name, (_, has) in rows.items()
    }


def test_the_values_of_a_row_say_why_it_gets_no_gradient(told: Told) -> None:  # noqa: F811
    told.run(LAYERS, "net[1].weight.sum()")
    told.run(USE, "loss")
    told.move("end")
    for name, words in {
        "net[1].bias": "`net[1].bias` does not require grad",
        "w": "The graph has no path from `loss` to `w`. It was cut:",
        "stopped": "a function on the path to `stopped` gave None",
        "net[1].weight": "",
    }.items():
        told.session.handle(InspectCommand(of="parameter", key=name))
        shown = told.newest[ValueSnapshot]
        assert isinstance(shown, ValueSnapshot)
        assert shown.key == name and words in shown.missing and bool(words) == bool(shown.missing)


def test_an_emptied_gradient_is_not_said_to_be_missing(told: Told) -> None:  # noqa: F811
    told.run("w = torch.ones(2, requires_grad=True)\nloss = (w * w).sum()", "loss")
    told.move("end")
    told.session.handle(ZeroGradientsCommand(set_to_none=True))
    (row,) = told.newest[BackwardSnapshot].gradients
    assert row.gradient is None and row.missing is None


def test_frozen_parameters_of_the_canvas_are_in_the_list() -> None:
    lab, _ = begun()
    module = lab.models.require_forward().state
    name, parameter = module.named_parameters()[0]
    parameter.requires_grad_(False)
    forward = lab.models.require_forward()
    while not forward.done:
        forward.step()
    rows = BackwardPass(ModelSubject(forward)).snapshot().gradients
    assert [row.name for row in rows] == [name for name, _ in module.named_parameters()]
    assert {row.name: row.missing for row in rows if row.missing} == {name: "not_required"}
