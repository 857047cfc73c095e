"""Reductions: shapes, terms and values, against torch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.console.namespace import Namespace
from engine.operations.shapes.operands import operand
from engine.operations.shapes.reductions import OPS, WINNERS, reduction
from engine.system.errors import LabError
from engine.tensors.texts import texts

ONE_DIM = ("prod", "max", "min", "argmax", "argmin", "median")
"""These fold one dimension or all of them."""
SHAPES = st.lists(st.integers(1, 4), max_size=4).map(tuple)


def ask(x: torch.Tensor, op: str, dims=None, keepdim=False, element=None):
    namespace = Namespace()
    namespace.variables["x"] = x
    return reduction(operand(namespace, "x"), op, dims, keepdim, element)


def run(code: str, x: torch.Tensor) -> torch.Tensor:
    return eval(code, {"x": x, "torch": torch})


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")  # by plain torch, the oracle
@settings(max_examples=150)
@given(st.sampled_from(OPS), SHAPES, st.booleans(), st.data())
def test_shape_dtype_and_elements_are_torchs(op, shape, keepdim, data) -> None:
    x = torch.randn(shape, dtype=torch.float64)
    dims = data.draw(st.none() | st.sets(st.integers(0, 3), max_size=2).map(tuple))
    if op in ONE_DIM and dims:
        dims = dims[:1]
    guess = tuple(data.draw(st.integers(0, size - 1)) for size in shape)
    snapshot = ask(x, op, dims, keepdim, guess)
    try:
        fact = run(snapshot.code, x)
    except (RuntimeError, IndexError, TypeError) as error:
        assert snapshot.error is not None and snapshot.shape is None
        assert snapshot.error.message.splitlines()[0] == str(error).splitlines()[0]
        return
    assert snapshot.error is None
    assert snapshot.shape == tuple(fact.shape)
    assert snapshot.dtype == str(fact.dtype).removeprefix("torch.")
    element = snapshot.element
    assert element is not None
    fold = x[tuple(slice(None) if at is None else at for at in snapshot.reads)]
    assert fold.numel() == snapshot.count
    # What folds into the element gives the element.
    again = getattr(fold.flatten(), op)(*(() if op != "logsumexp" else (0,)))
    assert torch.allclose(again.double(), fact[element].double(), equal_nan=True)
    if "nan" not in snapshot.value:
        expected = f"{fact[element].item():.4g}" if fact.is_floating_point() else None
        assert snapshot.value == (expected or str(fact[element].item()))
    if op in WINNERS:
        assert snapshot.winner is not None
        assert x[snapshot.winner] == (fold.max() if "max" in op else fold.min())


def test_the_terms_are_the_elements_that_fold() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    snapshot = ask(x, "sum", (1,), element=(1, 2))
    assert snapshot.reads == (1, None, 2)
    assert snapshot.terms == ("14", "18", "22") and snapshot.value == "54"
    assert snapshot.code == "x.sum(dim=1)"


def test_a_result_far_into_a_large_tensor_costs_only_its_window() -> None:
    x = torch.arange(1_000_000, dtype=torch.float32).reshape(1000, 1000)
    snapshot = ask(x, "amax", (1,), element=(777,))
    assert snapshot.value == "7.78e+05"
    assert snapshot.winner == (777, 999)
    assert snapshot.source.start == (776, 0)
    assert snapshot.result is not None and snapshot.result.size == (10,)


def test_too_many_elements_are_not_folded_at_every_look() -> None:
    snapshot = ask(torch.zeros(1).expand(1 << 25), "sum")
    assert snapshot.shape == () and snapshot.value == ""
    assert "run the line" in snapshot.note


@pytest.mark.parametrize(
    ("x", "op", "dims", "says"),
    [
        (torch.arange(3), "mean", None, "float"),
        (torch.zeros(2, 3), "sum", (5,), "no dim 5: choose from -2 to 1"),
        (torch.zeros(2, 3), "sum", (1, -1), "twice"),
        (torch.zeros(2, 3), "prod", (0, 1), "prod reduces one dimension"),
        (torch.zeros(2, 3), "max", (0, 1), "max reduces one dimension"),
        (torch.zeros(0), "amax", None, "no elements"),
        (torch.zeros(2).to(torch.float8_e4m3fn), "sum", None, ".float()"),
    ],
)
def test_torchs_errors_are_explained(x: torch.Tensor, op: str, dims, says: str) -> None:
    snapshot = ask(x, op, dims)
    with pytest.raises((RuntimeError, TypeError, IndexError)) as fact:
        run(snapshot.code, x)
    assert snapshot.error is not None
    assert snapshot.error.message.splitlines()[0] == str(fact.value).splitlines()[0]
    assert says in snapshot.error.hint


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,), (2, 0, 3)])
@pytest.mark.parametrize("op", ["sum", "prod", "mean", "any", "all"])
def test_of_no_elements_a_reduction_gives_what_torch_gives(shape: tuple[int, ...], op: str) -> None:
    x = torch.zeros(shape)
    snapshot = ask(x, op)
    fact = getattr(x, op)()
    assert snapshot.error is None and (snapshot.shape, snapshot.count) == ((), 0)
    assert snapshot.terms == ()
    assert snapshot.value == texts(fact)[0]


def test_an_unknown_reduction_is_refused() -> None:
    with pytest.raises(LabError, match="not a reduction"):
        ask(torch.zeros(3), "__class__")


def test_a_typed_shape_has_a_result_without_numbers() -> None:
    snapshot = reduction(operand(Namespace(), "(2, 3, 4)"), "sum", (0,))
    assert snapshot.shape == (3, 4) and snapshot.value == "" and snapshot.terms == ()


def test_looking_leaves_graph_version_and_random_numbers_alone() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    before = torch.get_rng_state()
    ask(x, "std", (1,))
    assert torch.equal(before, torch.get_rng_state())
    assert x._version == 0 and x.grad is None
