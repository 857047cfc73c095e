"""Stepping into a rule: the operators are those that torch runs, and nothing is changed."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

from engine.autograd import BackwardStepper
from engine.autograd.rules.operators import MAX_LINES, MAX_OPS, MAX_TEXT_ELEMENTS, ops_inside


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


class Same(torch.autograd.Function):
    """Functions with a backward of their own derive from it."""

    @staticmethod
    def forward(ctx, x):
        return x * 1


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


class Many(Same):
    @staticmethod
    def backward(ctx, g):
        for _ in range(MAX_OPS + 5):
            g = g * 1
        return g


def test_a_long_rule_is_cut_and_says_so():
    found = inside(Many.apply(torch.randn(3, requires_grad=True)))
    assert [op.number for op in found.ops] == list(range(1, MAX_OPS + 1)) and found.more == 5
    assert len(found.lines) == MAX_LINES  # of 2 * 205 + 2
    turns = [line for line in found.lines if line.text == "g = g * 1"]
    assert [line.ops for line in turns] == [(n,) for n in range(1, len(turns))] + [
        tuple(range(len(turns), MAX_OPS + 1))  # the last line that is listed has the rest
    ]


def test_a_freed_graph_raises_torchs_own_error():
    y = torch.randn(3, requires_grad=True).exp()
    step = first_step(y)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        ops_inside(step.node, step.incoming)


class Parts(torch.autograd.Function):
    """Its backward has operators with several results, with lists, and with the same memory."""

    @staticmethod
    def forward(ctx, x):
        return x * 1, x * 2

    @staticmethod
    def backward(ctx, first, second):
        low, high = torch.split(first.detach(), 3)
        joined = torch.cat([low, high])
        flags = torch.isfinite(joined).logical_and(torch.tensor([True] * 6))
        return torch.where(flags, joined, second)


def test_arguments_say_where_they_come_from():
    x = torch.arange(6.0).requires_grad_()
    step = BackwardStepper(Parts.apply(x), [torch.arange(6.0), torch.ones(6)]).step()
    found = ops_inside(step.node, step.incoming)
    ops = {op.name: op for op in found.ops}
    split, joined = ops["aten::split.Tensor"], ops["aten::cat"]
    assert [a.name for a in split.arguments] == ["g0", "3"]  # a detached gradient is the gradient
    parts = [f"%{split.number}.0", f"%{split.number}.1"]
    assert [r.name for r in split.results] == parts
    assert [a.name for a in joined.arguments] == parts
    assert [(r.shape, r.dtype, r.text) for r in split.results] == [
        ((3,), "float32", "0, 1, 2"), ((3,), "float32", "3, 4, 5")
    ]  # fmt: skip
    where = ops["aten::where.self"]
    flags, mine, other = where.arguments
    assert (flags.name, flags.dtype) == (f"%{ops['aten::logical_and'].number}", "bool")
    assert flags.text == ", ".join(["True"] * 6)
    assert (mine.name, other.name) == (f"%{joined.number}", "g1")
    assert ops["aten::logical_and"].arguments[1].name != "a tensor"


@pytest.mark.parametrize(
    ("count", "told"),
    [(0, ""), (1, "2"), (MAX_TEXT_ELEMENTS, ", ".join("2" * MAX_TEXT_ELEMENTS)), (7, "")],
)
def test_the_numbers_of_a_small_tensor_are_told(count, told):
    x = torch.full((count,), 1.0, requires_grad=True)
    found = inside(x.mul(2.0)) if count else inside(x.expand(3, 0) * 2.0)
    product = next(op for op in found.ops if op.name == "aten::mul.Tensor")
    assert product.results[0].text == told and product.results[0].shape[-1] == count


class Sparse(Same):
    @staticmethod
    def backward(ctx, g):
        return (g.to_sparse() * 2).to_dense()


def test_sparse_tensors_have_names_and_no_numbers():
    found = inside(Sparse.apply(torch.ones(2, requires_grad=True)))
    product = next(op for op in found.ops if op.name == "aten::mul.Tensor")
    assert product.arguments[0].name.startswith("%") and product.arguments[0].text == ""
    assert product.arguments[1].name == "2"


def test_looking_inside_changes_no_gradient_and_keeps_a_debugger():
    x = torch.ones(3, requires_grad=True)
    y = Gelu.apply(x)
    step = first_step(y)
    (gradient,) = step.incoming
    assert gradient is not None
    before = gradient.clone()

    def debugger(frame, event, arg):
        return None

    was = sys.gettrace()
    sys.settrace(debugger)
    try:
        ops_inside(step.node, step.incoming)
        assert sys.gettrace() is debugger
    finally:
        sys.settrace(was)
    assert torch.equal(gradient, before)
    assert x.grad is None


class Writes(Same):
    @staticmethod
    def backward(ctx, g):
        return g.mul_(0)


def test_a_rule_that_writes_into_its_gradient_writes_into_a_copy():
    y = Writes.apply(torch.ones(3, requires_grad=True))
    gradient = torch.ones(3)
    node = first_step(y).node
    ops_inside(node, (gradient,))
    assert gradient.tolist() == [1, 1, 1]


def test_only_the_lines_of_the_functions_own_file_are_told():
    """`F.gelu`'s rule has none; a helper of torch that a backward() calls is left out."""

    class Helped(Same):
        @staticmethod
        def backward(ctx, g):
            return nn.functional.softmax(g, 0)

    found = inside(Helped.apply(torch.ones(3, requires_grad=True)))
    assert [line.text for line in found.lines] == ["return nn.functional.softmax(g, 0)"]
    assert found.lines[0].file == __file__ and found.lines[0].ops == (1,)
    assert inside(nn.functional.gelu(torch.ones(3, requires_grad=True))).lines == []
