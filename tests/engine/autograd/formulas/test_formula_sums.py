"""The sums in a rule: weights, terms of several gradients, and dims in which forward broadcast."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.autograd.formulas.numbers import Term, sum_over_gradients
from tests.engine.autograd.formulas.test_formula_texts import rule_for


class Twice(torch.autograd.Function):
    """Its backward multiplies by the numbers that it was given."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        ctx.weights = weights
        return x * weights

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:  # type: ignore[override]
        return g * ctx.weights, None


@pytest.mark.parametrize(
    ("weight", "symbols", "figures"),
    [
        (1.0, "g[1]", "3"), (2.0, "g[1] · 2", "3 · 2"), (-1.0, "g[1] · (-1)", "3 · (-1)"),
        (0.5, "g[1] · 0.5", "3 · 0.5"),
    ],
)  # fmt: skip
def test_a_weight_of_one_is_not_written(weight: float, symbols: str, figures: str) -> None:
    x = torch.ones(2, requires_grad=True)
    rule = rule_for(Twice.apply(x, torch.tensor([7.0, weight])), torch.tensor([9.0, 3.0]))
    numbers = rule.numbers(0, (1,))
    assert (numbers.symbols, numbers.figures, numbers.terms) == (symbols, figures, 1)
    assert numbers.value == 3 * weight


class Pair(torch.autograd.Function):
    """Its second input gets something of the second gradient alone."""

    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor) -> Any:
        return a * 1, b * 2

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor, h: torch.Tensor) -> Any:  # type: ignore[override]
        return g + 3 * h, 2 * h


def test_a_gradient_that_takes_no_part_has_no_term() -> None:
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    first, _ = Pair.apply(a, b)
    rule = rule_for(first, torch.tensor([1.0, 2.0]), torch.tensor([5.0, 7.0]))
    assert rule.numbers(1, (1,)).lines == ("∂L/∂x1[1] = g1[1] · 2", "= 7 · 2", "= 14")
    assert rule.numbers(0, (0,)).lines == (
        "∂L/∂x0[0] = g0[0] + g1[0] · 3", "= 1 + 5 · 3", "= 16",
    )  # fmt: skip


def test_a_sum_over_several_gradients_names_each_and_writes_three_terms() -> None:
    values = torch.tensor([1.0, 2.0, 4.0])
    mask = torch.tensor([True, False, True])

    def term(name: str, output: int, index: tuple[int, ...]) -> Term:
        return Term(f"{name}!{output}", str(index), float(values[index]))

    found = sum_over_gradients("y", [(mask, values[mask]), (~mask | mask, values)], term)
    assert found.symbols == "g0[0]!0 + g0[2]!0 + g1[0]!1 + … (2 more)"
    assert found.figures == "(0,) + (2,) + (0,) + … (2 more: 6)"
    assert (found.value, found.terms) == (12.0, 5)
    alone = sum_over_gradients("y", [(mask, values[mask])], term)
    assert alone.symbols == "g[0]!0 + g[2]!0" and alone.value == 5.0


@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ((2, 3), ""), ((1, 3), "0"), ((3,), "0"), ((2, 1), "1"), ((1, 1), "0, 1"), ((1,), "0, 1"),
        ((), "0, 1"),
    ],
)  # fmt: skip
def test_a_formula_says_over_which_dims_it_is_summed(shape: tuple[int, ...], dims: str) -> None:
    a, b = torch.ones(shape, requires_grad=True), torch.ones(2, 3)
    several = "s" if ", " in dims else ""
    end = f", over dim{several} {dims}" if dims else ""
    sign = "Σ " if dims else ""
    assert rule_for(a * b, b).formula(0) == f"∂L/∂a = {sign}g · b{end}"
    chosen = rule_for(torch.where(b > 0, a, b), b)
    text = chosen.formula(*chosen.inputs).partition(" = ")[2]
    assert text.startswith("Σ (g if ") is bool(dims) and text.endswith(end or " else 0")


def test_terms_that_are_not_zero_are_written_first() -> None:
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    weight = torch.tensor([[0.0, 3.0, 0.0, 7.0, 5.0, 2.0], [1.0] * 6])
    g = torch.tensor([[4.0, 2.0, 4.0, 0.0, -1.0, 3.0]])
    numbers = rule_for(x @ weight, g).numbers(0, (0, 0))
    assert numbers.symbols == (
        "g[0, 1] · b[0, 1] + g[0, 4] · b[0, 4] + g[0, 5] · b[0, 5] + … (3 more)"
    )
    assert numbers.figures == "2 · 3 + (-1 · 5) + 3 · 2 + … (3 more: 0)"
    assert (numbers.value, numbers.terms) == (7.0, 6)


def test_each_element_of_a_broadcast_sum_is_a_term() -> None:
    a = torch.tensor(2.0, requires_grad=True)
    b = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    g = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    numbers = rule_for(a * b, g).numbers(0, ())
    assert numbers.symbols == (
        "g[0, 0] · b[0, 0] + g[0, 1] · b[0, 1] + g[1, 0] · b[1, 0] + … (1 more)"
    )
    assert numbers.figures == "1 · 1 + 2 · (-2) + 3 · 3 + … (1 more: 16)"
    assert (numbers.value, numbers.terms) == (22.0, 4)
    row = torch.ones(1, 2, requires_grad=True)
    numbers = rule_for(row * b, g).numbers(0, (0, 1))
    assert numbers.lines == (
        "∂L/∂a[0, 1] = g[0, 1] · b[0, 1] + g[1, 1] · b[1, 1]", "= 2 · (-2) + 4 · 4", "= 12",
    )  # fmt: skip
    alone = rule_for(b.clone().requires_grad_() * a.detach(), g).numbers(0, (1, 0))
    assert alone.lines == ("∂L/∂a[1, 0] = g[1, 0] · b", "= 3 · 2", "= 6")


def test_pieces_name_the_gradient_that_they_get() -> None:
    x = torch.arange(5.0, requires_grad=True)
    first, second = x.split((2, 3))
    rule = rule_for(first, torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0, 5.0]))
    assert second.grad_fn is first.grad_fn
    told = [rule.numbers(0, (place,)) for place in range(5)]
    assert [each.symbols for each in told] == ["g0[0]", "g0[1]", "g1[0]", "g1[1]", "g1[2]"]
    assert [each.value for each in told] == [1, 2, 3, 4, 5]
    parts = [torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)]
    joined = rule_for(torch.cat([parts[0], parts[1], parts[0]]), torch.arange(1.0, 6.0))
    assert [joined.label(i) for i in joined.inputs] == ["x0", "x1", "x2"]
    assert joined.numbers(1, (0,)).lines == ("∂L/∂x1[0] = g[2]", "= 3")
    assert joined.compute(2).tolist() == [4.0, 5.0]
    twice = rule_for(x[torch.tensor([1, 1, 0, 1, 1])], torch.arange(1.0, 6.0)).numbers(0, (1,))
    assert twice.symbols == "g[0] + g[1] + g[3] + … (1 more)"
    assert twice.figures == "1 + 2 + 4 + … (1 more: 5)" and twice.value == 12


def test_a_complex_rule_tells_the_share_of_each_gradient() -> None:
    z = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    g = torch.tensor([1 + 1j, -2 + 0.5j])
    numbers = rule_for((z * 1).conj().resolve_conj().clone() * 1, g).numbers(0, (1,))
    assert numbers.value == pytest.approx(-2 + 0.5j)
    node = torch.view_as_complex(torch.ones(2, 2, requires_grad=True) * 1)
    for place, value in (((1, 0), -2.0), ((1, 1), 0.5)):
        found = rule_for(node, g).numbers(0, place)
        assert (found.symbols, found.value) == ("share of g[1]", pytest.approx(value))
    pairs = torch.view_as_real(z)
    found = rule_for(pairs, torch.tensor([[1.0, 2.0], [3.0, 4.0]])).numbers(0, (1,))
    assert found.value == pytest.approx(3 + 4j)
    assert found.symbols == "share of g[1, 0] + share of g[1, 1]"
