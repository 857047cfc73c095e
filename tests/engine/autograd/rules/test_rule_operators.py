"""Stepping into a rule: the operators are those that torch runs, and nothing is changed."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from engine.autograd import BackwardStepper
from engine.autograd.rules.operators import MAX_OPS, ops_inside


def first_step(root):
    return BackwardStepper(root, torch.ones_like(root)).step()


def inside(root):
    step = first_step(root)
    return ops_inside(step.node, step.incoming)


def test_a_linear_layer_runs_its_products():
    linear = nn.Linear(3, 2)
    x = torch.randn(4, 3, requires_grad=True)
    found = inside(linear(x))
    names = [op.name for op in found.ops]
    assert names.count("aten::mm") == 2 and "aten::t" in names
    assert any(name.startswith("aten::sum") for name in names)  # the bias, summed by the engine
    product = next(op for op in found.ops if op.name == "aten::mm")
    assert product.arguments[0].name == "g" and product.arguments[0].shape == (4, 2)
    assert product.results[0].name == f"%{product.number}"
    assert linear.weight.grad is None and x.grad is None


def test_saved_tensors_and_small_values_are_named():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    found = inside(x.exp())
    op = next(op for op in found.ops if op.name == "aten::mul.Tensor")
    assert op.name == "aten::mul.Tensor"
    assert [a.name for a in op.arguments] == ["g", "saved result"]
    assert op.results[0].text == "2.718, 7.389"


def test_a_leaf_has_nothing_inside():
    x = torch.randn((), requires_grad=True)
    stepper = BackwardStepper(x * 2)
    stepper.run()
    with pytest.raises(ValueError, match="nothing inside"):
        ops_inside(stepper.last.node, stepper.last.incoming)
    assert x.grad == 2


class Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(1.702 * x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(1.702 * x)
        slope = s + 1.702 * x * s * (1 - s)
        return g * slope


def test_a_python_function_is_stepped_by_its_lines():
    found = inside(Gelu.apply(torch.randn(3, requires_grad=True)))
    assert [line.text for line in found.lines] == [
        "(x,) = ctx.saved_tensors",
        "s = torch.sigmoid(1.702 * x)",
        "slope = s + 1.702 * x * s * (1 - s)",
        "return g * slope",
    ]
    names = {op.number: op.name for op in found.ops}
    assert [names[n] for n in found.lines[1].ops] == ["aten::mul.Tensor", "aten::sigmoid"]
    assert [names[n] for n in found.lines[3].ops] == ["aten::mul.Tensor"]


class Many(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        for _ in range(MAX_OPS):
            g = g * 1
        return g


def test_a_long_rule_is_cut_and_says_so():
    found = inside(Many.apply(torch.randn(3, requires_grad=True)))
    assert len(found.ops) == MAX_OPS and found.more >= 0
    assert found.more + len(found.ops) >= MAX_OPS
    assert len(found.lines) <= 400


def test_a_freed_graph_raises_torchs_own_error():
    y = torch.randn(3, requires_grad=True).exp()
    step = first_step(y)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        ops_inside(step.node, step.incoming)
