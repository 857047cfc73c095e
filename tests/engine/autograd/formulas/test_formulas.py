"""Every formula of the book against the engine's own gradients, whole and element by element."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from engine.autograd import BackwardStepper
from engine.autograd.formulas import MissingValue, names, rule_of
from engine.autograd.formulas.book import words_of
from engine.autograd.formulas.input_rules import TextOnly
from engine.autograd.formulas.node_values import NodeValues
from tests.engine.autograd.formulas.rule_cases import CASES
from tests.examples import examples

NOT_ON_THIS_BUILD = {
    "AddBackward1": "add.Scalar becomes add.Tensor before autograd sees it",
    "SubBackward1": "as add",
    "AccumulateGrad": "every case ends in some",
    "MkldnnRnnLayerBackward0": "float32 only: below",
    "NotImplemented": "has no derivative: below",
    "ReprBackward0": "has no derivative",
    "ErrorBackward0": "has no derivative",
}
IN_FLOAT32 = {"CeluBackward0": 1e-6, "HardsigmoidBackward0": 1e-6}
"""torch rounds their constants 1 / alpha and 1 / 6 to float32, whatever the dtype."""


def steps_of(name, seed=0):
    """All steps of a case's backward with random gradients."""
    torch.manual_seed(seed)
    found = CASES[name]()
    roots = [found] if isinstance(found, torch.Tensor) else list(found)
    roots = [root for root in roots if root.requires_grad]
    stepper = BackwardStepper(roots, [torch.randn_like(root) for root in roots])
    steps = []
    while (step := stepper.step()) is not None:
        steps.append(step)
    assert any(step.node.name == name for step in steps), [s.node.name for s in steps]
    return steps


@pytest.mark.parametrize("name", CASES)
def test_the_formula_gives_what_the_engine_gives(name):
    for seed in range(3):
        for step in steps_of(name, seed):
            if step.node.is_leaf:
                continue
            rule = rule_of(step.node, step.incoming)
            assert not rule.general, step.node.name
            for number in rule.inputs:
                found, expected = rule.compute(number), step.outgoing[number]
                if isinstance(rule._input_rule(number), TextOnly):
                    assert found is None
                    continue
                assert found is not None
                if expected is None:
                    expected = torch.zeros_like(found)
                rtol = IN_FLOAT32.get(step.node.name, 1e-10)
                torch.testing.assert_close(found, expected.to_dense(), rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_of_an_element_give_the_element(name):
    for step in steps_of(name):
        if step.node.name != name:
            continue
        rule = rule_of(step.node, step.incoming)
        for number in rule.inputs:
            expected = step.outgoing[number]
            if expected is None:
                continue
            places = (
                list(
                    torch.cartesian_prod(*map(torch.arange, expected.shape))
                    .reshape(expected.numel(), expected.dim())
                    .tolist()
                )
                if expected.dim()
                else [[]]
            )
            for place in places[:: max(1, len(places) // 6)]:
                numbers = rule.numbers(number, tuple(place))
                want = expected[tuple(place)].item()
                assert numbers.value == pytest.approx(want, rel=1e-5, abs=1e-7)
                assert numbers.lines[-1].startswith("= ")


def test_the_book_has_more_than_a_hundred_nodes_and_each_has_a_case():
    missing = sorted(set(names()) - set(CASES) - set(NOT_ON_THIS_BUILD))
    print(missing)
    assert len(names()) >= 100
    assert not missing


def node_of(tensor):
    return BackwardStepper(tensor.sum()).graph.node_of(tensor.grad_fn)


def rule_for(tensor, *incoming):
    return rule_of(node_of(tensor), incoming)


@settings(max_examples=examples(60))
@given(st.sampled_from(sorted(CASES)), st.integers(0, 2**31))
def test_formulas_hold_for_random_numbers(name, seed):
    for step in steps_of(name, seed):
        rule = rule_of(step.node, step.incoming)
        for number in rule.inputs:
            found, expected = rule.compute(number), step.outgoing[number]
            if found is None or expected is None:
                continue
            torch.testing.assert_close(
                found, expected.to_dense(), rtol=1e-6, atol=1e-8, equal_nan=True
            )


def test_a_product_shows_both_factors():
    a = torch.tensor([[2.0, -1.0]], requires_grad=True)
    b = torch.tensor([[3.0, 0.5]], requires_grad=True)
    rule = rule_for(a * b, torch.tensor([[0.5, 4.0]]))
    assert rule.formula(0) == "∂L/∂a = g · b"
    assert rule.numbers(0, (0, 0)).lines == (
        "∂L/∂a[0, 0] = g[0, 0] · b[0, 0]",
        "= 0.5 · 3",
        "= 1.5",
    )
    assert rule.numbers(1, (0, 1)).lines[1:] == ("= 4 · (-1)", "= -4")


def test_a_broadcast_input_sums_its_terms():
    a = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]).requires_grad_()
    b = torch.tensor(2.0, requires_grad=True)
    numbers = rule_for(a * b, torch.ones(5)).numbers(1, ())
    assert numbers.symbols == "g[0] · a[0] + g[1] · a[1] + g[2] · a[2] + … (2 more)"
    assert numbers.figures == "1 · 1 + 1 · 2 + 1 · 3 + … (2 more: 9)"
    assert (numbers.value, numbers.terms) == (15, 5)


def test_a_linear_layer_names_row_and_column():
    x = torch.tensor([[1.0, 2.0]])
    linear = torch.nn.Linear(2, 3)
    y = linear(x)
    rule = rule_for(y, torch.tensor([[1.0, 10.0, 100.0]]))
    assert rule.inputs == (0, 2)  # the input needs no gradient
    assert rule.formula(2) == "∂L/∂W = xᵀ · g"
    assert rule.numbers(2, (1, 2)).lines == (
        "∂L/∂W[1, 2] = g[0, 2] · x[0, 1]",
        "= 100 · 2",
        "= 200",
    )


def test_a_view_names_the_element_that_it_reads():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    rule = rule_for(x.transpose(0, -1), torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    assert rule.numbers(0, (1, 2)).lines == ("∂L/∂x[1, 2] = g[2, 1]", "= 6")
    picked = rule_for(x[0], torch.tensor([1.0, 2.0, 3.0])).numbers(0, (1, 0))
    assert picked.lines == ("∂L/∂x[1, 0] = 0 (no gradient reaches it)", "= 0")


def test_a_condition_reads_as_a_choice():
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    rule = rule_for(x.relu(), torch.tensor([5.0, 7.0]))
    assert rule.formula(0) == "∂L/∂x = 0 if y ≤ 0 else g"
    assert rule.numbers(0, (1,)).figures == "0 if 2 ≤ 0 else 7"


def test_symbols_are_told_with_shape_value_and_meaning():
    x = torch.randn(2, 3, requires_grad=True)
    power = {s.name: s for s in rule_for(x**3, torch.ones(2, 3)).symbols(0)}
    assert power["x"].saved == "self" and power["x"].shape == (2, 3)
    assert power["n"].text == "3" and power["g"].shape == (2, 3)
    softmax = {s.name: s for s in rule_for(x.softmax(-1), torch.ones(2, 3)).symbols(0)}
    assert softmax["s"].meaning == "Σ g·y along the softmax's `dim`"


def test_negative_dims_are_put_right():
    x = torch.randn(2, 3, requires_grad=True)
    node = node_of(x.cumsum(-1))
    assert NodeValues(node, [None])["dim"] == -1


def test_a_freed_tensor_is_said_to_be_freed():
    x = torch.randn(3, requires_grad=True)
    y = x.exp()
    node = node_of(y)
    y.sum().backward()
    rule = rule_of(node, (torch.ones(3),))
    assert rule.formula(0) == "∂L/∂x = g · y"
    with pytest.raises(MissingValue, match="freed"):
        rule.compute(0)
    assert "freed" in {s.name: s for s in rule.symbols(0)}["y"].note


def test_an_overwritten_tensor_is_told_as_stale():
    x = torch.randn(3, requires_grad=True)
    y = x.exp()
    node = node_of(y)
    y.detach().mul_(2)
    (note,) = [s.note for s in rule_of(node, (torch.ones(3),)).symbols(0) if s.name == "y"]
    assert "modified by an inplace operation" in note


def test_a_packed_tensor_is_said_to_be_packed():
    x = torch.randn(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), torch.from_numpy):
        y = x.sin()
    with pytest.raises(MissingValue, match="packed by hooks"):
        rule_for(y, torch.ones(3)).compute(0)


def test_what_is_not_in_the_book_is_a_vector_jacobian_product_with_true_numbers():
    a = torch.randn(3, 3, dtype=torch.float64)
    x = (a @ a.T + torch.eye(3)).requires_grad_()
    y = torch.linalg.cholesky_ex(x)[0]
    g = torch.randn(3, 3, dtype=torch.float64)
    rule = rule_for(y, g)
    assert rule.general and rule.formula(0) == "∂L/∂x = Σ g · ∂y/∂x, over all elements of y"
    assert rule.compute(0) is None
    (expected,) = torch.autograd.grad(y, x, g, retain_graph=True)
    assert rule.numbers(0, (1, 2)).value == pytest.approx(expected[1, 2].item())


def test_a_python_function_is_told_as_such():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    rule = rule_for(Double.apply(torch.ones(2, requires_grad=True)), torch.tensor([1.0, 3.0]))
    assert rule.general and "backward()" in rule.words
    assert rule.numbers(0, (1,)).lines == ("∂L/∂x[1] = g[1] · 2", "= 3 · 2", "= 6")


def test_complex_numbers_are_conjugated():
    a = torch.randn(2, 3, dtype=torch.complex128, requires_grad=True)
    b = torch.randn(3, 4, dtype=torch.complex128, requires_grad=True)
    real = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    stepper = BackwardStepper(((a @ b * real).exp() / b[0]).sum().abs())
    while (step := stepper.step()) is not None:
        rule = rule_of(step.node, step.incoming)
        for number in rule.inputs:
            found = rule.compute(number)
            if found is not None and step.outgoing[number] is not None:
                torch.testing.assert_close(found, step.outgoing[number], rtol=1e-9, atol=1e-11)
    rule = rule_for(a @ b, torch.ones(2, 4, dtype=torch.complex128))
    assert "conj(b[1, 0])" in rule.numbers(0, (0, 1)).symbols


def test_an_lstm_layer_is_told_in_words_with_numbers_by_its_derivative():
    y = torch.nn.LSTM(3, 2)(torch.randn(4, 1, 3))[0]
    stepper = BackwardStepper(y, torch.randn(4, 1, 2))
    step = stepper.step()
    rule = rule_of(step.node, step.incoming)
    assert not rule.general and "recurrent" in rule.words
    assert rule.compute(1) is None
    assert rule.numbers(1, (2, 1)).value == pytest.approx(step.outgoing[1][2, 1].item(), rel=1e-4)


def test_an_element_that_is_not_there_is_refused():
    x = torch.randn(3, requires_grad=True)
    with pytest.raises(IndexError, match="no element"):
        rule_for(x.exp(), torch.ones(3)).numbers(0, (3,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_dtypes_come_out_as_torch_casts_them(dtype):
    x = torch.randn(4, 4).to(dtype).requires_grad_()
    y = (x.sigmoid() * x).softmax(-1).sum(0)
    stepper = BackwardStepper(y, torch.randn(4).to(dtype))
    while (step := stepper.step()) is not None:
        if step.node.is_leaf:
            continue
        found = rule_of(step.node, step.incoming).compute(0)
        assert found.dtype == dtype
        torch.testing.assert_close(found, step.outgoing[0], rtol=2e-2, atol=1e-2)


EXTREME = torch.tensor([0.0, -1.0, 1.0, 1e30, float("inf"), float("nan")])


@pytest.mark.parametrize(
    "operation",
    [
        *("sqrt", "rsqrt", "log", "log1p", "log2", "reciprocal", "acos", "asin", "atanh", "acosh"),
        *("exp", "expm1", "sinh", "tanh", "sigmoid", "abs", "sign", "relu", "erfinv", "lgamma"),
        *("norm", "prod", "std", "var", "logsumexp", "softmax", "amax", "cumprod", "tan"),
        *(lambda x: x**-1, lambda x: x**0.5, lambda x: x**0, lambda x: 2**x, lambda x: x**x),
        *(lambda x: 1 / x, lambda x: x / x, lambda x: torch.atan2(x, x), lambda x: x.clamp(0, 1)),
        *(F.softplus, F.silu, F.gelu, F.logsigmoid, F.elu, lambda x: F.normalize(x, dim=0)),
        *(lambda x: x.std(unbiased=False), lambda x: x.logit(), lambda x: F.threshold(x, 0.0, 0.0)),
    ],
)
def test_at_the_edge_of_its_domain_a_rule_has_torchs_numbers(operation):
    """Zero divisors, overflow and roots of negative numbers are inf and nan, never an error."""
    with_dim = ("logsumexp", "softmax", "cumprod")
    of_all = operation in ("prod", "cumprod", "amax")  # one NaN there leaves nothing to tell
    for data in (EXTREME, torch.zeros(3), torch.tensor([-2.0, 0.5, 2.0]))[of_all:]:
        x = data.double().requires_grad_()
        if isinstance(operation, str):
            y = getattr(x, operation)(*((0,) if operation in with_dim else ()))
        else:
            y = operation(x)
        for step in iter(BackwardStepper(y, torch.ones_like(y).detach()).step, None):
            if step.node.is_leaf:
                continue
            rule = rule_of(step.node, step.incoming)
            for number in rule.inputs:
                expected = step.outgoing[number]
                if expected is None:
                    continue
                for place in range(expected.numel()):
                    at = torch.unravel_index(torch.tensor(place), expected.shape)
                    element = tuple(map(int, at))
                    found = rule.numbers(number, element)
                    if found is None:
                        continue
                    torch.testing.assert_close(
                        torch.tensor(found.value, dtype=torch.float64),
                        expected[element],
                        rtol=1e-6,
                        atol=1e-8,
                        equal_nan=True,
                        msg=f"{step.node.name} {element}: {found.lines}, torch {expected[element]}",
                    )


def test_the_example_of_the_docstring_holds():
    x = torch.tensor(3.0, requires_grad=True)
    rule = rule_for(x**3, torch.tensor(1.0))
    assert rule.formula(0) == "∂L/∂x = g · n · x^(n - 1)"
    assert rule.numbers(0, ()).lines[1:] == ("= 1 · 3 · 3^(3 - 1)", "= 27")


def test_the_words_of_a_node_are_those_of_the_usual_case():
    assert words_of("PowBackward0").startswith("g times the slope")
    assert words_of("NoSuchBackward0") == ""
