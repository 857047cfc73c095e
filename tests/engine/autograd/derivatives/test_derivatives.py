"""Derivatives of any function, against what mathematics and torch say."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from engine.autograd.derivatives.differences import compare, numerical, numerical_entry
from engine.autograd.derivatives.functions import Kind, at_point, derivative
from engine.autograd.derivatives.gradient_check import gradcheck
from engine.system.errors import LabError


class OldGelu(torch.autograd.Function):
    """GELU in the style that torch.func cannot transform."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        density = torch.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
        return grad * (0.5 * (1 + torch.erf(x / math.sqrt(2))) + x * density)


class Wrong(torch.autograd.Function):
    """x² whose backward errs in one element."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        slope = 2 * x
        slope = torch.cat([slope[:1], slope[1:2] * 1.5, slope[2:]])
        return grad * slope


def squares(x):
    return (x**2).sum()


def point(function, *inputs, argument=0):
    return at_point(function, inputs, argument)


X = torch.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=torch.float64)
W = torch.tensor([[2.0, 0.0, 1.0], [-1.0, 4.0, 0.5]], dtype=torch.float64)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_the_jacobian_of_a_product(mode):
    at = point(lambda x, w: x @ w, X, W, argument=1)
    expected = torch.autograd.functional.jacobian(lambda w: X @ w, W).reshape(6, 6)
    assert torch.equal(derivative(at, "jacobian", mode=mode).values, expected)
    assert torch.allclose(numerical(at, "jacobian"), expected, atol=1e-8)


def test_hessian_and_its_product():
    f = lambda x: (x.sin() * x.flip(0)).sum()  # noqa: E731
    at = point(f, X)
    expected = torch.autograd.functional.hessian(f, X).reshape(4, 4)
    assert torch.allclose(derivative(at, "hessian").values, expected, atol=1e-12)
    assert torch.allclose(numerical(at, "hessian"), expected, atol=1e-7)
    v = torch.tensor([[1.0, 0.0], [2.0, -1.0]])
    hvp = derivative(at, "hvp", v).values
    assert torch.allclose(hvp.reshape(-1), expected @ v.double().reshape(-1), atol=1e-12)
    assert torch.allclose(numerical(at, "hvp", v), hvp, atol=1e-7)


def test_products_with_vectors():
    f = lambda x: (x @ W).tanh()  # noqa: E731
    at = point(f, X)
    jacobian = derivative(at, "jacobian").values
    v, u = torch.randn(2, 2, dtype=torch.float64), torch.randn(2, 3, dtype=torch.float64)
    jvp, vjp = derivative(at, "jvp", v).values, derivative(at, "vjp", u).values
    assert jvp.shape == (2, 3) and vjp.shape == (2, 2)
    assert torch.allclose(jvp.reshape(-1), jacobian @ v.reshape(-1))
    assert torch.allclose(vjp.reshape(-1), u.reshape(-1) @ jacobian)
    assert torch.allclose(numerical(at, "jvp", v), jvp, atol=1e-8)
    assert torch.allclose(numerical(at, "vjp", u), vjp, atol=1e-8)


@settings(max_examples=40)
@given(st.data())
def test_an_entry_is_that_of_the_matrix(data):
    rows, columns = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    w = torch.randn(columns, rows, dtype=torch.float64)
    at = point(lambda x: (x @ w).sigmoid(), torch.randn(columns, dtype=torch.float64))
    row, column = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, columns - 1))
    entry = numerical_entry(at, "jacobian", row, column)
    assert entry == pytest.approx(float(derivative(at, "jacobian").values[row, column]), abs=1e-8)


def test_a_function_that_torch_func_cannot_transform_is_asked_row_by_row():
    asked: list[tuple[Kind, torch.Tensor | None]] = [("jacobian", None), ("vjp", X), ("jvp", X)]
    for kind, vector in asked:
        ours = derivative(point(OldGelu.apply, X), kind, vector)
        theirs = derivative(point(nn.functional.gelu, X), kind, vector)
        assert "one by one" in ours.note and not theirs.note
        assert torch.allclose(ours.values, theirs.values)
    ours = derivative(point(lambda x: OldGelu.apply(x).sum(), X), "hessian").values
    theirs = derivative(point(lambda x: nn.functional.gelu(x).sum(), X), "hessian").values
    assert torch.allclose(ours, theirs)


def test_a_module_and_the_inputs_stay_as_they_were():
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).double()
    module.eval()
    before = {k: v.clone() for k, v in module.state_dict().items()}
    x = X.clone().requires_grad_()
    for kind in ("jacobian",):
        derivative(at_point(module, (x,), 0), kind)
    assert x.grad is None and all(p.grad is None for p in module.parameters())
    assert all(torch.equal(before[k], v) for k, v in module.state_dict().items())


def test_float32_against_float64_and_numbers():
    at = point(lambda x: x.exp().sum(0), X.float())
    found = {c.way: c for c in compare(at, "jacobian", None, "reverse") if c is not None}
    assert list(found) == ["analytic, float32", "numeric, float64", "numeric, float32"]
    truth = torch.autograd.functional.jacobian(lambda x: x.exp().sum(0), X).reshape(2, 4)
    single = torch.autograd.functional.jacobian(lambda x: x.exp().sum(0), X.float())
    expected = float((single.reshape(2, 4).double() - truth).abs().max())
    assert found["analytic, float32"].max_difference == expected
    assert found["numeric, float64"].max_difference < 1e-7
    assert found["numeric, float32"].max_difference > found["numeric, float64"].max_difference


def test_what_a_function_closes_over_is_converted_too():
    w = W.float()

    def f(x):
        made = torch.zeros(2, 3)
        made[0] = (x @ w)[0]
        return made * made.dtype.itemsize  # 8 bytes in float64

    at = point(f, X.float())
    ways = [c for c in compare(at, "jacobian", None, "reverse") if c is not None]
    assert [c.note for c in ways] == ["", "", ""]
    assert ways[1].max_difference < 1e-8
    assert ways[0].relative == pytest.approx(0.5), "float32 has 4 bytes"
    assert w.dtype == torch.float32 and f(X.float()).dtype == torch.float32


def test_a_function_that_fails_in_float64_says_why_there_is_no_comparison():
    def f(x):
        if x.dtype == torch.float64:
            raise ValueError("only float32 here")
        return x

    (only,) = compare(point(f, X.float()), "jacobian", None, "reverse")
    assert math.isnan(only.max_difference) and only.note == "only float32 here"


@pytest.mark.parametrize(
    ("function", "inputs", "kind", "vector", "said"),
    [
        (lambda x: x * 2, (X,), "hessian", None, "one number"),
        (lambda x: (x, x), (X,), "jacobian", None, "returns tuple of 2"),
        (lambda x: x > 0, (X,), "jacobian", None, "bool"),
        (lambda x: x, (X.long(),), "jacobian", None, "int64"),
        (lambda x: x, (X,), "jvp", None, "there is none"),
        (lambda x: x, (X,), "vjp", torch.ones(3), r"it has \(3,\)"),
        (lambda x: x, (torch.zeros(3000),), "jacobian", None, "9,000,000|3,000 × 3,000"),
    ],
)
def test_what_cannot_be_is_told(function, inputs, kind, vector, said):
    with pytest.raises(LabError, match=said):
        derivative(at_point(function, inputs, 0), kind, vector)


# -- gradcheck -----------------------------------------------------------------------------------


def test_gradcheck_passes_and_gives_both_matrices():
    x = X.clone().requires_grad_()
    checked = gradcheck(OldGelu.apply, (x,))
    (pair,) = checked.pairs
    assert checked.ok and not checked.message and pair.worst is None
    expected = torch.autograd.functional.jacobian(nn.functional.gelu, X).reshape(4, 4)
    assert torch.allclose(pair.analytic, expected)
    assert torch.allclose(pair.numeric, expected, atol=1e-6)
    assert gradcheck(OldGelu.apply, (x,), second=True).ok


def test_gradcheck_shows_the_entry_that_fails():
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    checked = gradcheck(Wrong.apply, (x,))
    (pair,) = checked.pairs
    assert not checked.ok and "Jacobian mismatch" in checked.message
    assert pair.worst == (1, 1)
    assert float(pair.analytic[1, 1]) == 6.0 and float(pair.numeric[1, 1]) == pytest.approx(4.0)


def test_gradgradcheck_compares_the_gradients_own_jacobian():
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    checked = gradcheck(lambda t: t**3, (x,), second=True)
    (pair,) = checked.pairs
    assert checked.ok
    assert torch.allclose(pair.analytic, torch.diag(6 * x.detach()))
    assert torch.allclose(pair.numeric, torch.diag(6 * x.detach()), atol=1e-5)


def test_several_inputs_and_outputs():
    a = torch.randn(2, dtype=torch.float64, requires_grad=True)
    b = torch.randn(2, dtype=torch.float64, requires_grad=True)
    checked = gradcheck(lambda a, b: (a * b, a.sum()), (a, b))
    assert checked.ok
    assert [(p.output, p.input) for p in checked.pairs] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert torch.equal(checked.pairs[0].analytic, torch.diag(b.detach()))
    assert torch.equal(checked.pairs[3].analytic, torch.zeros(1, 2, dtype=torch.float64))


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: (x, 1.0), "returns float among its results"),
        (lambda x: {"a": x}, "returns dict;"),
    ],
)
def test_what_a_check_does_not_take_is_told_with_what_to_return(function, said):
    with pytest.raises(LabError, match=said) as refused:
        gradcheck(function, (X.clone().requires_grad_(),))
    assert refused.value.hint == "Return only those to check: lambda x: f(x)[0]."


def test_a_second_check_without_a_graph_says_where_to_look():
    with pytest.raises(LabError, match="No graph leads") as refused:
        gradcheck(lambda x: x.detach() * 2, (X.clone().requires_grad_(),), second=True)
    assert refused.value.hint == "Look for detach(), item() or numpy() in the function."
