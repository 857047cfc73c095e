"""Sizes, shortened words and verdicts of derivatives at their bounds; the check as a line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from engine.autograd.derivatives.code import check_code_of, code_of
from engine.autograd.derivatives.differences import (
    _against,
    central_difference,
    numerical_entry,
    step_of,
)
from engine.autograd.derivatives.functions import (
    _check_size,
    at_point,
    shortened,
    units,
    vjp_of,
)
from engine.autograd.derivatives.gradient_check import gradcheck
from engine.autograd.derivatives.gradient_flow import BINS, alive_units, histogram_of, verdicts
from engine.autograd.derivatives.precision import in_precision
from engine.protocol import DerivativeCommand, GradcheckCommand
from engine.system.errors import LabError


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("", ""),
        ("one\ntwo", "one"),
        ("x" * 240, "x" * 240),
        ("x" * 241, "x" * 239 + "…"),
    ],
)
def test_a_message_is_cut_to_its_first_240_characters(message: str, told: str) -> None:
    assert shortened(message) == told


def test_a_matrix_has_at_most_four_million_entries() -> None:
    _check_size(2000, 2000)
    with pytest.raises(LabError, match="2,000 × 2,001 entries; the limit is 4,000,000"):
        _check_size(2000, 2001)


def test_unit_tensors_come_in_the_order_of_the_elements() -> None:
    found = list(units(torch.zeros(2, 2, dtype=torch.float64)))
    assert torch.equal(torch.stack([u.flatten() for u in found]), torch.eye(4).double())
    assert [u.shape for u in found] == [(2, 2)] * 4 and not list(units(torch.zeros(0)))


def test_what_a_result_does_not_depend_on_has_zeros() -> None:
    x = torch.ones(3, requires_grad=True)
    other = torch.ones(2, requires_grad=True)
    assert vjp_of(torch.ones(()), x, None).tolist() == [0, 0, 0]
    assert vjp_of(other.sum(), x, None).tolist() == [0, 0, 0]
    assert vjp_of((x * 2).sum(), x, None).tolist() == [2, 2, 2]


@pytest.mark.parametrize("argument", [-1, 2])
def test_inputs_are_counted_from_0(argument: int) -> None:
    with pytest.raises(LabError, match=f"There is no input {argument}: 2 were given"):
        at_point(torch.add, (torch.ones(1), torch.ones(1)), argument)
    assert at_point(torch.add, (torch.ones(1), torch.zeros(1)), 1).x.item() == 0


def test_a_central_difference_is_that_of_two_calls() -> None:
    x, along = torch.tensor([1.0, 2.0]).double(), torch.tensor([1.0, -3.0]).double()
    found = central_difference(lambda t: t**3, x, along, 0.5)
    assert torch.allclose(found, ((x + along / 2) ** 3 - (x - along / 2) ** 3) / 1.0)
    assert step_of(torch.float64) == pytest.approx(torch.finfo(torch.float64).eps ** (1 / 3))
    at = at_point(lambda t: t**2 * torch.tensor([1.0, 5.0]).double(), (x,), 0)
    assert numerical_entry(at, "jacobian", 1, 1) == pytest.approx(20.0)
    assert numerical_entry(at, "jacobian", 0, 1) == 0.0
    # Of a cubic the difference is off by the square of the step.
    assert numerical_entry(at_point(lambda t: t**3, (x,), 0), "jacobian", 0, 0, eps=0.5) == (
        pytest.approx(3.25)
    )


def test_a_difference_is_relative_to_the_largest_entry() -> None:
    truth = torch.tensor([0.0, 4.0, -8.0]).double()
    found = _against("way", torch.tensor([0.5, 4.0, -8.0]), truth)
    assert (found.way, found.max_difference, found.relative) == ("way", 0.5, 0.0625)
    found = _against("way", torch.tensor([0.5]), torch.zeros(1).double())
    assert (found.max_difference, found.relative) == (0.5, 0.5)
    assert _against("way", torch.zeros(0), torch.zeros(0)).relative == 0.0


def test_in_another_precision_the_same_tensor_has_one_copy() -> None:
    weight, count = torch.ones(2), torch.zeros(1)
    places = torch.tensor([1, 0])

    def function(x: torch.Tensor) -> torch.Tensor:
        count.add_(1)
        return (x[places] * weight + count) * count

    found = in_precision(function, torch.float64)(torch.tensor([1.0, 2.0]))
    assert found.dtype == torch.float64 and found.tolist() == [3.0, 2.0]
    assert count.tolist() == [0.0] and weight.dtype == torch.float32
    assert in_precision(lambda: "text", torch.float64)() == "text"


# -- gradients that vanish or explode --------------------------------------------------------------


@pytest.mark.parametrize(
    ("norms", "sizes", "told"),
    [
        ([1.0, 1.0], [1000.0, 1.0], ["", "vanishing"]),
        ([1.0, 1.0], [1000.0, 1.01], ["", ""]),
        ([1000.0, 999.0], [1.0, 1.0], ["exploding", ""]),
        ([math.inf, math.nan], [1.0, 1.0], ["exploding", "exploding"]),
        ([math.nan, math.nan], [math.nan, math.nan], ["", ""]),
        ([math.nan, 1.0], [math.nan, 1.0], ["exploding", ""]),
        ([0.0, 0.0], [0.0, 0.0], ["vanishing", "vanishing"]),
    ],
)
def test_a_layer_is_judged_by_its_norm_and_by_the_largest(
    norms: list[float], sizes: list[float], told: list[str]
) -> None:
    assert verdicts(np.array(norms, np.float32), np.array(sizes, np.float32)) == told


def test_sizes_are_counted_by_powers_of_ten_from_12_to_4() -> None:
    def bins(*sizes: float) -> list[int]:
        return np.flatnonzero(histogram_of(torch.tensor(sizes, dtype=torch.float64))).tolist()

    assert bins(1.001e-12) == [0] and bins(1e-20) == [0] and bins(9.9e3) == [BINS - 1]
    assert bins(1e9) == [BINS - 1] and bins(1.001) == [24] and bins(0.999) == [23]
    assert bins(0.0, math.inf, math.nan) == []
    assert histogram_of(torch.tensor([1.1, 1.2, 5.0]))[24:26].tolist() == [2, 1]


def test_units_lie_along_the_second_dimension_or_the_last() -> None:
    for shape, dim in (
        ((4,), 0),
        ((2, 4), 1),
        ((2, 3, 4), 2),
        ((2, 4, 3, 3), 1),
        ((2, 4, 3, 3, 3), 1),
    ):
        out = torch.zeros(shape)
        out.select(dim, 2).fill_(1.0)
        assert alive_units(torch.nn.ReLU(), out).tolist() == [False, False, True, False]
    values = torch.tensor([[-1.0, 0.5, 0.6, 1.0, 2.0]])
    for module, alive in (
        (torch.nn.Threshold(0.5, 2.0), [False, False, True, True, False]),
        (torch.nn.Hardtanh(-1.0, 1.0), [False, True, True, False, False]),
        (torch.nn.ReLU6(), [False, True, True, True, True]),
    ):
        assert alive_units(module, values).tolist() == alive


# -- as lines of Python ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, "torch.autograd.gradcheck(model, (x[:1].detach().double().requires_grad_(),))"),
        (
            {"function": " f ", "inputs": (" a ", "b"), "double": False},
            "torch.autograd.gradcheck(f, (a.detach().requires_grad_(),"
            " b.detach().requires_grad_(),))",
        ),
        (
            {"function": "f", "inputs": ("a",), "second": True, "eps": 1e-4, "rtol": 0.5},
            "torch.autograd.gradgradcheck(f, (a.detach().double().requires_grad_(),),"
            " eps=0.0001, rtol=0.5)",
        ),
        (
            {"function": "f", "inputs": ("a",), "atol": 0.25},
            "torch.autograd.gradcheck(f, (a.detach().double().requires_grad_(),), atol=0.25)",
        ),
    ],
)
def test_a_check_as_a_line_runs_it(options: dict[str, Any], line: str) -> None:
    assert check_code_of(GradcheckCommand(**options)) == line
    a, f = torch.ones(2), lambda *given: sum(t.square().sum() for t in given)
    names = {"torch": torch, "a": a, "b": a, "x": a, "f": f, "model": f}
    if options.get("double", True):
        assert eval(line, names) is True


def test_a_product_of_several_arguments_is_a_function_of_the_chosen_one() -> None:
    command = DerivativeCommand(kind="vjp", function="f g", inputs=("a", "b", "c"), argument=1)
    assert code_of(command) == (
        "(vjp,) = torch.func.vjp(lambda t: (f g)(a, t, c), b)[1](torch.ones_like((f g)(a, b, c)))"
    )
    command = DerivativeCommand(kind="jvp", function="f", inputs=("a", "b"))
    assert code_of(command) == (
        "_, jvp = torch.func.jvp(lambda t: f(t, b), (a,), (torch.ones_like(a),))"
    )


# -- the check of a gradient -----------------------------------------------------------------------


class Off(torch.autograd.Function):
    """The square, with a derivative that is off at the second element by `much`."""

    much = 0.0

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        return g * (2 * x + torch.tensor([0.0, Off.much, 0.0], dtype=x.dtype))


@pytest.mark.parametrize(("much", "worst"), [(0.0, None), (0.001, None), (0.01, (1, 1))])
def test_the_entry_that_exceeds_the_tolerance_most_is_told(
    monkeypatch: pytest.MonkeyPatch, much: float, worst: tuple[int, int] | None
) -> None:
    monkeypatch.setattr(Off, "much", much)
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    found = gradcheck(Off.apply, (x,))
    (pair,) = found.pairs
    assert (found.ok, pair.worst) == (worst is None, worst)
    assert (pair.input, pair.output, pair.output_shape) == (0, 0, (3,))
    assert pair.analytic[1, 1].item() == pytest.approx(4 + much)
    assert torch.allclose(pair.numeric, torch.diag(2 * x.detach()), atol=1e-6)
    other = torch.ones(2)  # it needs no gradient, so it has no matrix
    pairs = gradcheck(lambda a, b: (a * 2, b.sum(), a.sum()), (x, other)).pairs
    assert [(p.input, p.output) for p in pairs] == [(0, 0), (0, 1), (0, 2)]
    assert pairs[1].analytic.tolist() == [[0.0, 0.0, 0.0]]
