"""Products and einsums: shapes, terms and values, against torch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.console.namespace import Namespace
from engine.operations.shapes.operands import operand
from engine.operations.shapes.products import letters_of, product
from engine.system.errors import LabError

SHAPES = st.lists(st.integers(1, 3), max_size=4).map(tuple)


def ask(tensors, op="matmul", equation="", element=None):
    namespace = Namespace()
    names = "abcd"[: len(tensors)]
    namespace.variables.update(zip(names, tensors, strict=True))
    operands = [operand(namespace, name) for name in names]
    return product(operands, op, equation, element)


def check(snapshot, tensors) -> None:
    """A snapshot of whole numbers against plain torch."""
    names = dict(zip("abcd", tensors, strict=False))
    try:
        fact = eval(snapshot.code, {"torch": torch, **names})
    except (RuntimeError, IndexError) as error:
        assert snapshot.shape is None and snapshot.error is not None
        assert snapshot.error.message == str(error)
        return
    assert snapshot.error is None and snapshot.shape == tuple(fact.shape)
    if fact.numel() == 0:
        assert snapshot.element is None
        return
    element = snapshot.element
    assert float(snapshot.value) == fact[element].item()
    total = sum(
        torch.tensor([float(f) for f in term.split(" · ")]).prod().item() for term in snapshot.terms
    )
    if snapshot.count == len(snapshot.terms):
        assert total == fact[element].item()
    assert torch.equal(
        torch.einsum(snapshot.equation, *tensors), fact
    )  # the letters mean this product


def whole(shape) -> torch.Tensor:
    return torch.randint(-3, 4, shape).double()


@settings(max_examples=150)
@given(
    st.sampled_from(["matmul", "mm", "bmm", "mv", "dot", "outer"]),
    SHAPES,
    SHAPES,
    st.booleans(),
    st.data(),
)
def test_products_are_torchs(op, a, b, fitting, data) -> None:
    ranks = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1), "outer": (1, 1)}
    if fitting and op in ranks:
        a = (*a, 2, 2, 2)[: ranks[op][0]]
        b = (*b, 2, 2, 2)[: ranks[op][1]]
    if fitting and a and b and op != "outer":
        k = -2 if len(b) > 1 else -1
        b = (*b[:k], a[-1], *b[len(b) + k + 1 :])
    tensors = [whole(a), whole(b)]
    guess = data.draw(st.lists(st.integers(0, 2), max_size=4).map(tuple))
    check(ask(tensors, op, element=guess), tensors)


@given(
    st.sampled_from(
        [
            ("ij,jk->ik", (2, 3), (3, 4)),
            ("bij,kj->bik", (2, 3, 4), (5, 4)),
            ("...i,...i->...", (2, 3, 4), (3, 4)),
            ("...ij,...jk", (5, 1, 2, 3), (4, 3, 2)),
            ("ii->i", (3, 3)),
            ("ii->", (3, 3)),
            ("ij->ji", (2, 3)),
            ("i,i,i->", (3,), (3,), (3,)),
            ("ij,jk,kl,lm", (2, 2), (2, 3), (3, 2), (2, 2)),
            ("ij,j", (2, 3), (1,)),
            (" i j , j k -> i k ", (2, 3), (3, 1)),
        ]
    ),
    st.data(),
)
def test_einsums_are_torchs(case, data) -> None:
    equation, *shapes = case
    tensors = [whole(shape) for shape in shapes]
    guess = data.draw(st.lists(st.integers(0, 2), max_size=4).map(tuple))
    snapshot = ask(tensors, "einsum", equation, guess)
    assert snapshot.shape is not None
    check(snapshot, tensors)


def test_row_meets_column() -> None:
    a = torch.tensor([[1.0, 2, 3], [4, 5, 6]])
    b = torch.arange(12.0).reshape(3, 4)
    snapshot = ask([a, b], element=(1, 2))
    assert snapshot.equation == "ik,kj->ij"
    assert snapshot.reads == ((1, None), (None, 2))
    assert snapshot.terms == ("4 · 2", "5 · 6", "6 · 10") and snapshot.value == "98"


def test_a_batch_of_one_is_stretched_over_the_other() -> None:
    snapshot = ask([torch.ones(1, 2, 3), torch.ones(5, 3, 4)], element=(4, 1, 2))
    assert snapshot.shape == (5, 2, 4)
    assert snapshot.reads == ((0, 1, None), (4, None, 2))
    refused = ask([torch.ones(1, 2, 3), torch.ones(5, 3, 4)], "bmm")
    assert refused.conflicts == "b" and refused.error is not None
    assert "does not broadcast" in refused.error.hint


def test_the_inner_mismatch_is_named_and_the_transpose_that_fits() -> None:
    tensors = [torch.ones(2, 3), torch.ones(4, 3)]
    snapshot = ask(tensors)
    with pytest.raises(RuntimeError) as fact:
        tensors[0] @ tensors[1]
    assert snapshot.error is not None and snapshot.conflicts == "k"
    assert snapshot.error.message == str(fact.value)
    assert "a's dim 1 has 3 but b's dim 0 has 4" in snapshot.error.hint
    assert "b.mT is (3, 4), and would fit" in snapshot.error.hint


def test_dtypes_that_differ_are_explained() -> None:
    tensors = [torch.ones(2, 2), torch.ones(2, 2, dtype=torch.int64)]
    snapshot = ask(tensors)
    with pytest.raises(RuntimeError) as fact:
        tensors[0] @ tensors[1]
    assert snapshot.error is not None and snapshot.shape is None
    assert snapshot.error.message == str(fact.value)
    assert "must have one dtype here" in snapshot.error.hint


def test_a_dtype_without_a_kernel_is_refused_in_torchs_words() -> None:
    tensors = [torch.ones(2, 2, dtype=torch.bool)] * 2
    snapshot = ask(tensors)
    with pytest.raises(RuntimeError) as fact:
        tensors[0] @ tensors[1]
    assert snapshot.error is not None and snapshot.shape is None
    assert snapshot.error.message == str(fact.value)


def test_wrong_ranks_are_explained() -> None:
    snapshot = ask([torch.ones(2, 2, 2), torch.ones(2, 2)], "mm")
    assert snapshot.error is not None
    assert snapshot.error.message == "self must be a matrix"
    assert "takes 2-D and 2-D tensors and got 3-D and 2-D" in snapshot.error.hint


@pytest.mark.parametrize(
    ("equation", "shapes", "says"),
    [
        ("", [(2,)], "not an einsum"),
        ("i;j", [(2,)], "not an einsum"),
        ("ij", [(2,)], "does not fit"),
        ("i,j", [(2,)], "names 2 operands"),
        ("i->ii", [(2,)], "once"),
        ("i->j", [(2,)], "once"),
    ],
)
def test_equations_that_cannot_be_read(equation: str, shapes, says: str) -> None:
    with pytest.raises(LabError, match=says):
        letters_of("einsum", shapes, equation)


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        ("matmul", [(2, 3)]), ("matmul", [(2, 3), ()]), ("matmul", [(2,), (2,), (2,)]),
        ("mm", [(2, 3)]), ("mm", [(2, 3), (3,)]), ("bmm", [(2, 3), (3, 2)]), ("dot", []),
    ],
)  # fmt: skip
def test_a_wrong_number_of_operands_or_dimensions_has_no_letters(op: str, shapes) -> None:
    assert letters_of(op, shapes) is None


def test_large_products_show_only_their_window() -> None:
    a = torch.ones(1, 1).expand(1_000_000, 300)
    snapshot = ask([a, torch.ones(300, 7)], element=(999_999, 6))
    assert snapshot.value == "300" and snapshot.shape == (1_000_000, 7)
    assert snapshot.result is not None and snapshot.result.size == (8, 7)
    long = ask([torch.ones(1, 1).expand(4, 1 << 24), torch.ones(1, 1).expand(1 << 24, 4)])
    assert long.value == "" and "run the line" in long.note
