"""Whether a value is a plain tensor or a name, how much tensors differ, and numbers as text."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
import torch

from engine.operations.memory.footprint import Footprint
from engine.tensors.compare import max_difference, same_bits
from engine.tensors.counting import Counts
from engine.tensors.plain import described, is_name, tensor_problem
from engine.tensors.reach import MAX_EXPRESSION, reach
from engine.tensors.texts import cell_text, exact

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(prototype|beta state|Sparse invariant|deprecated).*:UserWarning"
)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: torch.ones(2), ""),
        (lambda: torch.nn.Parameter(torch.ones(2)), ""),
        (lambda: 3, "a tensor is expected, not 3"),
        (lambda: None, "a tensor is expected, not None"),
        (
            lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
            "a dense tensor is expected, not a nested one",
        ),
        (
            lambda: torch.eye(2).to_sparse(),
            "a dense tensor is expected, not one of layout torch.sparse_coo",
        ),
        (
            lambda: torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.quint8),
            "this tensor has no numbers of its own (it is quantized, or on the meta device)",
        ),
        (
            lambda: torch.ones(2, device="meta"),
            "this tensor has no numbers of its own (it is quantized, or on the meta device)",
        ),
    ],
)
def test_why_a_value_is_no_plain_tensor(make: Any, problem: str) -> None:
    assert tensor_problem(make()) == problem


def test_a_name_is_text_of_bounded_length_that_can_be_written() -> None:
    assert is_name("") and is_name("größe") and is_name("a" * 1000)
    assert not (is_name("a" * 1001) or is_name("\ud800") or is_name(3) or is_name(b"a"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2**63 - 1, str(2**63 - 1)),
        (2**63, "a whole number of more than 64 bits"),
        (-(2**63) + 1, str(-(2**63) + 1)),
        (-(2**63), "a whole number of more than 64 bits"),
        (1.5, "1.5"),
        (True, "True"),
        ("ü", r"'\xfc'"),
        ("a" * 38, repr("a" * 38)),
        ("a" * 39, "a str"),
        (None, "None"),
        ([1], "a list"),
    ],
)
def test_a_value_in_a_message_is_short_and_plain(value: object, text: str) -> None:
    assert described(value) == text


def test_bits_are_the_same_whatever_the_layout_and_the_graph() -> None:
    x = torch.arange(6.0).view(2, 3)
    assert same_bits(x, x.T.contiguous().T) and same_bits(x.requires_grad_(), x.detach())
    assert not same_bits(x, x.view(3, 2)) and not same_bits(x, x.double())
    assert not same_bits(torch.tensor([0.0]), torch.tensor([-0.0]))
    assert same_bits(torch.tensor([math.nan]), torch.tensor([math.nan]))
    assert same_bits(torch.tensor([True]), torch.tensor([True]))


@pytest.mark.parametrize(
    ("a", "b", "difference"),
    [
        ([1.0, 2.0], [1.5, -1.0], 3.0),
        ([], [], 0.0),
        ([math.inf, 1.0], [math.inf, 1.25], 0.25),
        ([math.nan, 1.0], [math.nan, 1.25], 0.25),
        ([math.inf], [-math.inf], math.inf),
        ([math.inf], [1.0], math.inf),
        ([math.nan], [1.0], math.inf),
        ([1.0], [math.nan], math.inf),
        ([3 + 4j], [0.0], 5.0),
        ([0.0], [3 + 4j], 5.0),
    ],
)
def test_the_largest_difference_counts_what_is_not_finite(a, b, difference: float) -> None:
    assert max_difference(torch.tensor(a), torch.tensor(b)) == difference


def test_a_sparse_tensor_differs_by_its_elements() -> None:
    x = torch.eye(3)
    assert max_difference(x.to_sparse(), x * 3) == 2.0


@pytest.mark.parametrize(
    ("print_", "end"),
    [
        (Footprint((3, 4), (4, 1), 2), 14),
        (Footprint((3, 4), (1, 5), 0), 18),
        (Footprint((), (), 7), 8),
        (Footprint((0, 4), (4, 1), 5), 5),
        (Footprint((5,), (0,), 3), 4),
    ],
)
def test_a_footprint_ends_after_its_last_cell(print_: Footprint, end: int) -> None:
    assert print_.end == end


def test_expressions_that_are_too_long_are_left_out() -> None:
    t = torch.ones(1)
    name = "a" * MAX_EXPRESSION
    found = reach({name: t, f"{name}a": t, "d": {"k" * (MAX_EXPRESSION - 2): t, "s": t}})
    assert list(found.held) == [name, "d['s']"]
    just = "k" * (MAX_EXPRESSION - len("d['']"))
    assert list(reach({"d": {just: t}}).held) == [f"d['{just}']"]
    assert list(reach({"d": {just + "k": t}}).held) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (True, "True"),
        (1234567, "1234567"),
        (1.0, "1"),
        (0.123456, "0.1235"),
        (123456.0, "1.235e+05"),
        (1.2345 + 2j, "1.23+2j"),
        (-0.5 - 1e-9j, "-0.5-1e-09j"),
        (math.nan, "nan"),
    ],
)
def test_a_number_in_a_cell_has_four_digits(value: object, text: str) -> None:
    assert cell_text(value) == text


@pytest.mark.parametrize("number", [0.1, 1e-30, 5e-324, 2.0**70, -3.0, 0.0])
def test_a_binary_fraction_is_written_with_all_its_digits(number: float) -> None:
    assert Fraction(exact(number)) == Fraction(number)
    assert not exact(number).endswith(".")


def test_what_is_not_finite_is_written_as_a_word() -> None:
    assert [exact(number) for number in (math.inf, -math.inf, math.nan)] == ["inf", "-inf", "nan"]


def test_numbers_that_come_in_pieces_are_counted_as_at_once() -> None:
    x = torch.randn(50, dtype=torch.float64)
    x[3], x[7], x[11], x[13] = math.nan, math.inf, -math.inf, 0.0
    counts = Counts()
    assert (counts.mean, counts.std, counts.norm) == (None, None, None)
    for piece in (x[:4], x[4:5], x[5:5], x[5:]):
        counts.count(piece)
    counts.count(x[:2], times=3)
    counts.count_zeros(0)
    counts.count_zeros(5)
    finite = x[torch.isfinite(x)]
    whole = torch.cat([finite, *[x[:2]] * 3, torch.zeros(5, dtype=torch.float64)])
    assert (counts.finite, counts.zeros, counts.nans) == (len(whole), 6, 1)
    assert (counts.positive_infs, counts.negative_infs) == (1, 1)
    assert (counts.minimum, counts.maximum) == (whole.min().item(), whole.max().item())
    assert counts.mean == pytest.approx(whole.mean().item())
    assert counts.std == pytest.approx(whole.std().item())
    assert counts.norm == pytest.approx(whole.norm().item())
    single = Counts()
    found = single.count(torch.tensor([2.0], dtype=torch.float64))
    assert found is not None and (found[1:], single.std) == ((2.0, 2.0), None)
    assert single.count(torch.tensor([math.nan], dtype=torch.float64)) is None
