"""Formulas as text: brackets, signs, numbers, sums, and what each symbol is."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from engine.autograd import BackwardStepper
from engine.autograd.formulas import MissingValue, rule_of
from engine.autograd.formulas.expression import Expression
from engine.autograd.formulas.input_rules import fitted
from engine.autograd.formulas.node_values import NodeValues, gradient_number, signed
from engine.autograd.formulas.numbers import Term, at, factor_text, number_text, write_sum


def node_of(tensor: torch.Tensor) -> Any:
    return BackwardStepper(tensor.sum()).graph.node_of(tensor.grad_fn)


def rule_for(tensor: torch.Tensor, *incoming: Any) -> Any:
    return rule_of(node_of(tensor), incoming)


@pytest.mark.parametrize(("source", "text", "with_numbers"), [
    ("g * (1 - y**2)", "g · (1 - y²)", "(-2) · (1 - (-2)²)"),
    ("a * (b * c)", "a · b · c", "(-2) · (-2) · (-2)"),
    ("a + (b + c)", "a + b + c", "(-2) + (-2) + (-2)"),
    ("a - b - c", "a - b - c", "(-2) - (-2) - (-2)"),
    ("a - (b - c)", "a - (b - c)", "(-2) - ((-2) - (-2))"),
    ("g / a / b", "g / a / b", "(-2) / (-2) / (-2)"),
    ("g / (a * b)", "g / (a · b)", "(-2) / ((-2) · (-2))"),
    ("g / a * b", "g / a · b", "(-2) / (-2) · (-2)"),
    ("-g * y", "(-g) · y", "(-(-2)) · (-2)"),
    ("-(a + b)", "-(a + b)", "-((-2) + (-2))"),
    ("-(a * b)", "-a · b", "-(-2) · (-2)"),
    ("a - -b", "a - (-b)", "(-2) - (-(-2))"),
    ("(a * b)**2", "(a · b)²", "((-2) · (-2))²"),
    ("(a**2)**3", "(a²)³", "((-2)²)³"),
    ("a**2**3", "a^(2³)", "(-2)^(2³)"),
    ("a**(b - 1)", "a^(b - 1)", "(-2)^((-2) - 1)"),
    ("a**-1", "a^(-1)", "(-2)^(-1)"),
    ("a**0.5", "a^0.5", "(-2)^0.5"),
    ("sqrt(x)**2", "(√x)²", "(√(-2))²"),
    ("sqrt(x + 1)", "√(x + 1)", "√((-2) + 1)"),
    ("abs(x - 1)", "|x - 1|", "|(-2) - 1|"),
    ("sigmoid(x) + digamma(x) + trigamma(x)", "σ(x) + ψ(x) + ψ₁(x)", "σ(-2) + ψ(-2) + ψ₁(-2)"),
    ("max(a, b + 1)", "max(a, b + 1)", "max(-2, (-2) + 1)"),
    ("alpha * beta / pi", "α · β / π", "(-2) · (-2) / π"),
    ("x * nan", "x · nan", "(-2) · nan"),
    ("where(x > 0 and x <= 1, g, 0)", "g if x > 0 and x ≤ 1 else 0",
     "-2 if -2 > 0 and -2 ≤ 1 else 0"),
    ("where(x >= 0 or y == 1, g, h)", "g if x ≥ 0 or y = 1 else h",
     "-2 if -2 ≥ 0 or -2 = 1 else -2"),
    ("where(x < 1, where(x > 0, a, b), c)", "(a if x > 0 else b) if x < 1 else c",
     "(-2 if -2 > 0 else -2) if -2 < 1 else -2"),
    ("a * where(x > 0, b, c)", "a · (b if x > 0 else c)", "(-2) · (-2 if -2 > 0 else -2)"),
    ("(a > b) * g", "(a > b) · g", "(-2 > -2) · (-2)"),
])  # fmt: skip
def test_a_formula_has_the_brackets_that_it_needs(
    source: str, text: str, with_numbers: str
) -> None:
    formula = Expression(source)
    assert formula.text() == text
    assert formula.text(lambda name: "-2") == with_numbers


def test_a_term_of_a_sum_is_bracketed_if_it_binds_less_than_the_sum() -> None:
    for source, text in (
        ("where(a > b, a, b)", "(a if a > b else b)"), ("a > b", "(a > b)"),
        ("a + b", "a + b"), ("a * b", "a · b"),
    ):  # fmt: skip
        assert Expression(source).text(within_sum=True) == text
    assert Expression("x**2").text(lambda name: "1e-05") == "(1e-05)²"
    assert Expression("2 * x").text(lambda name: "1e-05") == "2 · 1e-05"


def test_the_symbols_of_a_formula_are_its_names_once() -> None:
    assert set(Expression("g * exp(x) * pi / x").symbols) == {"g", "x"}


@pytest.mark.parametrize(("source", "value"), [
    ("1 / x", math.inf), ("-1 / x", -math.inf), ("x / x", math.nan), ("(x - 1)**0.5", math.nan),
    ("10.0**(x + 400)", math.inf), ("x**0", 1.0), ("where(x >= 0, 2, 3)", 2),
    ("where(x > 0 or x == 0, 2, 3)", 2), ("where(x > 0 and x == 0, 2, 3)", 3),
    ("where(x >= 0 and x <= 0 and x > 1, 2, 3)", 3), ("exp(x)", 1.0), ("max(x, 1 + x)", 1.0),
    ("pi + x", math.pi), ("trigamma(x + 1)", math.pi**2 / 6),
])  # fmt: skip
@pytest.mark.parametrize("of", [float, lambda x: torch.tensor(x, dtype=torch.float64)])
def test_plain_numbers_give_what_tensors_give(source: str, value: float, of: Any) -> None:
    found = Expression(source).evaluate({"x": of(0.0)})
    assert float(found) == pytest.approx(value, nan_ok=True)


def test_complex_numbers_have_roots() -> None:
    assert Expression("x**0.5").evaluate({"x": -1 + 0j}) == pytest.approx(1j)
    assert Expression("1 / x").evaluate({"x": 2j}) == pytest.approx(-0.5j)


@pytest.mark.parametrize("source", ["[a]", "a % b", "f.x", "lambda: 1"])
def test_what_no_formula_has_is_refused(source: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        Expression(source).evaluate({"a": 1.0, "b": 2.0, "f": 1.0})
    with pytest.raises((ValueError, KeyError)):
        Expression(source).text()


# -- numbers


@pytest.mark.parametrize(("value", "text", "factor"), [
    (0.5, "0.5", "0.5"), (-0.5, "-0.5", "(-0.5)"), (3.0, "3", "3"), (1 / 3, "0.33333", "0.33333"),
    (-0.0, "0", "0"), (123456.0, "1.2346e+05", "1.2346e+05"), (-7, "-7", "(-7)"), (7, "7", "7"),
    (1234567, "1234567", "1234567"), (True, "True", "True"), (math.inf, "inf", "inf"),
    (-math.inf, "-inf", "(-inf)"), (1 + 2j, "(1+2j)", "(1+2j)"), (-1.5 - 0.25j, "(-1.5-0.25j)",
    "(-1.5-0.25j)"),
])  # fmt: skip
def test_a_number_has_five_digits_and_brackets_as_a_factor(
    value: Any, text: str, factor: str
) -> None:
    assert (number_text(value), factor_text(value)) == (text, factor)


def test_an_index_is_written_unless_there_is_none() -> None:
    assert (at("g", (0, 2)), at("g", [1]), at("g", ())) == ("g[0, 2]", "g[1]", "g")


def terms(*values: float) -> list[Term]:
    return [Term(f"t{i}", number_text(v), v) for i, v in enumerate(values)]


def test_a_sum_writes_its_first_terms_and_counts_the_rest() -> None:
    told = write_sum("y", terms(1.0, -2.0, -3.0), 3, -4.0, None)
    assert told.lines == ("y = t0 + t1 + t2", "= 1 + (-2) + (-3)", "= -4")
    told = write_sum("y", terms(-1.0, 2.0, 3.0), 1_003, 10.0, None)
    assert told.symbols == "t0 + t1 + t2 + … (1,000 more)"
    assert told.figures == "-1 + 2 + 3 + … (1,000 more: 6)"
    assert (told.value, told.terms) == (10.0, 1_003)


def test_a_sum_of_one_term_or_none_is_short() -> None:
    assert write_sum("y", terms(2.5), 1, 2.5, None).lines == ("y = t0", "= 2.5")
    nothing = write_sum("y", [], 0, 0.0, None)
    assert nothing.lines == ("y = 0 (no gradient reaches it)", "= 0")
    assert (nothing.value, nothing.terms) == (0.0, 0)


def test_a_factor_multiplies_the_whole_sum() -> None:
    one = write_sum("y", terms(2.5), 1, 2.5, ("α", 4.0))
    assert one.lines == ("y = α · t0", "= 4 · 2.5", "= 10") and one.value == 10.0
    two = write_sum("y", terms(1.0, 2.0), 2, 3.0, ("α", 4.0))
    assert two.lines == ("y = α · (t0 + t1)", "= 4 · (1 + 2)", "= 12")


# -- the values of a node


def test_gradients_are_told_from_other_symbols() -> None:
    assert [gradient_number(s) for s in ("g", "g0", "g12", "gamma", "x", "ag1")] == [
        0, 0, 12, None, None, None,
    ]  # fmt: skip


def test_numbers_that_torch_gives_without_a_sign_get_one() -> None:
    assert signed((2**64 - 1, 2**63, 2**63 - 1, 5)) == (-1, -(2**63), 2**63 - 1, 5)
    assert signed([True, 2**64 - 2, None, 1.5]) == (True, -2, None, 1.5)
    assert signed(True) is True and signed("sum") == "sum"


def test_dims_are_counted_from_the_left_and_none_means_all() -> None:
    x = torch.rand(2, 3, 4, requires_grad=True)
    assert NodeValues(node_of(x.sum(-1)), [None]).dims() == (2,)
    assert NodeValues(node_of(x.sum((-1, 0))), [None]).dims() == (0, 2)
    assert NodeValues(node_of(x.amax(())), [None]).dims() == (0, 1, 2)
    assert NodeValues(node_of(x.sum(-1)), [None]).dims(rank=5) == (4,)
    y = torch.rand((), requires_grad=True)
    assert NodeValues(node_of(y.sum(0)), [None]).dims() == ()


def test_what_is_missing_is_named() -> None:
    a = torch.rand(3, requires_grad=True)
    given = NodeValues(node_of(a * torch.ones(3)), [None], {"a": "self", "b": "other"})
    assert given.has("b") and not given.has("a") and not given.has("c")
    for symbol, words in (("a", "self: never set"), ("nothing", "torch does not show nothing")):
        with pytest.raises(MissingValue, match=words):
            given[symbol]
    with pytest.raises(MissingValue, match="indices was not saved"):
        given.saved_list("indices")
    with pytest.raises(MissingValue, match="c was not saved"):
        given.saved("c")
    assert given.number("nothing", 5) == 5
    with pytest.raises(MissingValue, match="shape of input 1, which needs no gradient"):
        given.shape(1)
    assert given.shape(0) == (3,) and given.target(1) is None
    assert (given.torch_name("b"), given.torch_name("g0"), given.torch_name("k")) == (
        "other", "", "k",
    )  # fmt: skip


def test_what_hooks_have_packed_is_not_read() -> None:
    x = torch.rand(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
        packed = x.sin()
    assert NodeValues(node_of(x.sin()), [None]).has("x")
    given = NodeValues(node_of(packed), [None])
    assert not given.has("x")
    with pytest.raises(MissingValue, match="self: packed by hooks"):
        given["x"]


def test_an_undefined_gradient_counts_as_zeros_of_the_right_shape() -> None:
    x = torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
    a, b = x.split((1, 1))
    given = NodeValues(node_of(a), [None, torch.ones(1, 3, dtype=torch.float64)])
    assert given["g0"].dtype == torch.float64 and given["g0"].tolist() == [[0, 0, 0]]
    assert given["g1"].tolist() == [[1, 1, 1]] and len(given.gradients) == 2
    other = given.with_gradients([torch.ones(1, 3), torch.zeros(1, 3)])
    assert other["g"].tolist() == [[1, 1, 1]] and other["g1"].tolist() == [[0, 0, 0]]
    assert not given.is_complex and b.grad_fn is a.grad_fn
    z = torch.ones(2, dtype=torch.complex64)
    assert NodeValues(node_of(torch.ones(2, requires_grad=True) * z), [None]).is_complex


def test_a_gradient_is_summed_and_cast_to_its_input() -> None:
    target = node_of(torch.ones(1, 3, dtype=torch.float64, requires_grad=True) * 2).fn
    metadata = target._input_metadata[0]
    found = fitted(torch.full((2, 3), 1 + 5j, dtype=torch.complex64), metadata)
    assert found.dtype == torch.float64 and found.tolist() == [[2, 2, 2]]
    assert fitted(torch.ones(1, 3), metadata).shape == (1, 3)


# -- symbols, labels, and words


def test_symbols_of_every_kind_are_explained() -> None:
    x = torch.rand(2, 3, requires_grad=True)
    weight, bias = torch.rand(4, 3, requires_grad=True), torch.rand(4, requires_grad=True)
    linear = rule_for(F.linear(x, weight, bias), torch.ones(2, 4))
    told = {s.name: s for i in linear.inputs for s in linear.symbols(i)}
    assert told["g"].meaning == "the incoming gradient" and told["g"].shape == (2, 4)
    product = {s.name: s for s in rule_for(x * x.detach(), torch.ones(2, 3)).symbols(0)}
    assert (product["b"].meaning, product["b"].saved) == (
        "the other operand, as it was in forward", "other",
    )  # fmt: skip
    result = {s.name: s for s in rule_for(x.exp(), torch.ones(2, 3)).symbols(0)}
    assert result["y"].meaning == "the result of forward" and result["y"].shape == (2, 3)
    slope = {s.name: s for s in rule_for(F.leaky_relu(x, 0.25), torch.ones(2, 3)).symbols(0)}
    (number,) = (s for s in slope.values() if s.shape is None)
    assert number.text == "0.25" and number.meaning == "a parameter of the operation"
    clamped = rule_for(x.clamp(min=0.25), torch.ones(2, 3)).symbols(0)
    texts = {s.name: s.text for s in clamped if s.shape is None}
    assert "0.25" in texts.values()


@pytest.mark.parametrize(("weight", "told"), [(None, "1"), (torch.tensor([1.0, 3.0]), "")])
def test_the_weights_of_classes_are_told_or_1(weight: torch.Tensor | None, told: str) -> None:
    x = torch.rand(3, 2).log().requires_grad_()
    loss = F.nll_loss(x, torch.tensor([0, 1, 1]), weight)
    symbols = {s.name: s for s in rule_for(loss, torch.ones(())).symbols(0)}
    assert list(symbols) == ["g", "w", "t", "W"] and not any(s.note for s in symbols.values())
    assert symbols["w"].text == told and symbols["w"].meaning.startswith("the weight of each class")
    assert symbols["w"].shape == (None if weight is None else (2,))
    assert symbols["t"].shape == (3,) and symbols["W"].saved == "total_weight"


def test_inputs_without_a_formula_are_numbered_where_there_are_several() -> None:
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a + b

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> Any:  # type: ignore[override]
            return g * 3, None

    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    rule = rule_for(Two.apply(a, b), torch.tensor([1.0, 2.0]))
    assert [rule.label(i) for i in rule.inputs] == ["x0", "x1"]
    assert rule.numbers(0, (1,)).value == 6
    with pytest.raises(MissingValue, match="got no gradient"):
        rule.numbers(1, (0,))
    with pytest.raises(MissingValue, match="cannot run a second time"):
        rule.numbers(0, (1,), may_run=False)
    alone = rule_for(Two.apply(a, b.detach()), torch.ones(2))
    assert alone.inputs == (0,) and alone.label(0) == "x"


def test_joined_inputs_have_the_number_of_their_place() -> None:
    parts = [torch.rand(n, requires_grad=True) for n in (1, 2, 3)]
    rule = rule_for(torch.cat(parts), torch.arange(6.0))
    labels = [rule.label(i) for i in rule.inputs]
    assert len(set(labels)) == 3 and [label[-1] for label in labels] == ["0", "1", "2"]
    assert rule.numbers(2, (0,)).value == 3 and rule.numbers(1, (1,)).value == 2


@pytest.mark.parametrize("element", [(), (2,), (0, 3), (-1, 0), (0, 0, 0)])
def test_only_elements_of_the_input_have_numbers(element: tuple[int, ...]) -> None:
    rule = rule_for(torch.rand(2, 3, requires_grad=True).exp(), torch.ones(2, 3))
    with pytest.raises(IndexError, match=r"no element .* in a gradient of shape \(2, 3\)"):
        rule.numbers(0, element)


def test_a_rule_that_hides_its_use_of_the_gradient_is_told_as_such() -> None:
    class Hidden(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return torch.from_numpy(g.detach().numpy() * 2)

    x = torch.ones(2, requires_grad=True)
    rule = rule_for(Hidden.apply(x), torch.tensor([1.0, 0.0]))
    with pytest.raises((MissingValue, RuntimeError)):
        rule.numbers(0, (0,))


def test_complex_gradients_have_complex_numbers() -> None:
    a = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    b = torch.tensor([0.5 - 1j, 2 + 2j], requires_grad=True)
    g = torch.tensor([1 + 1j, -2 + 0.5j])
    (expected,) = torch.autograd.grad(a * b, a, g)
    rule = rule_for(a * b, g)
    for place in (0, 1):
        numbers = rule.numbers(0, (place,))
        assert numbers.value == pytest.approx(expected[place].item())
        assert numbers.symbols == f"g[{place}] · conj(b[{place}])"
    real = torch.tensor([2.0, 5.0], requires_grad=True)
    (expected,) = torch.autograd.grad(a * real, real, g)
    numbers = rule_for(a * real, g).numbers(1, (1,))
    assert isinstance(numbers.value, float)
    assert numbers.value == pytest.approx(expected[1].item())


def test_a_sum_of_float32_is_taken_in_double_precision() -> None:
    a, b = torch.tensor([1e8, 1.0, -1e8]), torch.tensor(1.0, requires_grad=True)
    assert rule_for(a * b, torch.ones(3)).numbers(1, ()).value == 1.0


def test_a_sparse_operand_is_read_as_if_it_were_dense() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    other = torch.tensor([[0.0, 5.0], [0.0, 0.0]]).to_sparse()
    g = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    rule = rule_for(x.to_sparse() * other, g.to_sparse())
    assert rule.numbers(0, (0, 1)).value == 10.0 and rule.numbers(0, (1, 0)).value == 0.0


@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("training", [True, False])
def test_the_numbers_of_a_channel_are_sums_over_samples_and_places(
    samples: int, training: bool
) -> None:
    x = torch.linspace(-1, 2, samples * 6, dtype=torch.float64).view(samples, 2, 3)
    weight = torch.tensor([1.5, -2.0], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    mean, variance = torch.full((2,), 0.5).double(), torch.full((2,), 2.0).double()
    y = F.batch_norm(x.square(), mean, variance, weight, bias, training)
    g = torch.linspace(1, 2, samples * 6, dtype=torch.float64).view(samples, 2, 3)
    expected = dict(
        zip((1, 2), torch.autograd.grad(y, (weight, bias), g, retain_graph=True), strict=True)
    )
    rule = rule_for(y, g)
    assert rule.inputs == (1, 2)
    for number, gradient in expected.items():
        for channel in (0, 1):
            numbers = rule.numbers(number, (channel,))
            assert numbers.value == pytest.approx(gradient[channel].item())
            assert numbers.terms == samples * 3
