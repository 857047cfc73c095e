from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import LabError
from engine.tensors.index_plan import plan_of
from engine.tensors.index_text import parse
from engine.tensors.namespace import Namespace
from engine.tensors.picking import pick

SIZES = (2, 3, 4, 5)


@pytest.fixture
def namespace() -> Namespace:
    namespace = Namespace()
    namespace.variables.update(
        x=torch.arange(24.0).reshape(2, 3, 4),
        a=torch.arange(6).reshape(2, 3),
        i=torch.tensor([[0, 1], [2, 0]]),
        rows=torch.tensor([1, 0, 1]),
        mask=torch.tensor([True, False, True]),
    )
    return namespace


def check(namespace: Namespace, source: str) -> None:
    """Every element of the result comes from where the plan says; the counts are right."""
    fact = eval(source, namespace.variables)
    indexing = parse(namespace, source)
    base = namespace.tensor(indexing.base)
    plan = plan_of(indexing, tuple(base.shape))
    assert plan.shape == tuple(fact.shape), source
    counts = torch.zeros(base.shape, dtype=torch.int64)
    for element in np.ndindex(*fact.shape):
        read = plan.source_of(element)
        assert base[read] == fact[element], (source, element)
        counts[read] += 1
    snapshot = pick(namespace, source)
    assert snapshot.shape == tuple(fact.shape)
    assert snapshot.is_view == (
        fact.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    )
    shown = tuple(
        slice(start, start + size)
        for start, size in zip(snapshot.source.start, snapshot.source.size, strict=True)
    )
    assert snapshot.picked == tuple(counts[shown].flatten().tolist())


@st.composite
def _indices(draw) -> str:
    """An index of a (2, 3, 4, 5) tensor, as typed."""
    parts: list[str] = []
    d = 0
    length = draw(st.none() | st.integers(1, 4))  # of all index tensors, which must broadcast
    dots = draw(st.booleans())
    while d < 4:
        kind = draw(
            st.sampled_from(["int", "slice", "all", "new", "list", "mask", "matrix", "end"])
        )
        size = SIZES[d]
        if kind == "end":
            break
        if kind == "new":
            parts.append("None")
            continue
        if kind == "int":
            parts.append(str(draw(st.integers(-size, size - 1))))
        elif kind == "slice":
            ends = [draw(st.none() | st.integers(-6, 6)) for _ in range(2)]
            step = draw(st.none() | st.integers(1, 3))
            parts.append(":".join("" if end is None else str(end) for end in (*ends, step)))
        elif kind == "all":
            parts.append(":")
        elif kind == "mask" and length is None:
            bits = draw(st.lists(st.booleans(), min_size=size, max_size=size))
            parts.append(f"torch.tensor({bits})")
            length = -1
        elif kind == "list" and length is not None and length > 0:
            at = st.integers(-size, size - 1)
            parts.append(str(draw(st.lists(at, min_size=length, max_size=length))))
        elif kind == "matrix" and length is not None and length > 0:
            at = st.lists(st.integers(0, size - 1), min_size=length, max_size=length)
            parts.append(f"torch.tensor({[draw(at), draw(at)]})")
        else:
            parts.append(":")
        d += 1
    if dots:
        parts.insert(draw(st.integers(0, len(parts))), "...")
    if len([p for p in parts if p == "None"]) > 3 or not parts:
        return "..."
    # Before the dots parts count from the left, after them from the right: sizes then differ.
    return ", ".join(parts) if "..." not in parts or parts[-1] == "..." else "..., 0"


@settings(deadline=None, max_examples=250)
@given(_indices())
def test_any_index_reads_what_torch_reads(index: str) -> None:
    namespace = Namespace()
    namespace.variables["x"] = torch.arange(120).reshape(SIZES)
    check(namespace, f"x[{index}]")


@pytest.mark.parametrize(
    "source",
    [
        "x[0]",
        "x[-1, ..., ::2]",
        "x[..., None, 1]",
        "x[:, 1:1]",
        "x[x > 10]",
        "x[x[:, :, 0] > 4]",
        "x[:, mask]",
        "x[:, mask, 1]",
        "x[0, :, [0, 1]]",
        "x[rows, :, [0, 1, 2]]",
        "x[[0], None, [1, 2]]",
        "x[i[0]]",
        "x[:, i]",
        "x[..., i, None]",
        "x[(a > 2) & (a != 4)]",
        "x[torch.arange(2), 1]",
        "a[i[0, 1], i[1]]",
        "a[[True, False]]",
        "a.gather(1, i)",
        "torch.gather(a, dim=1, index=i)",
        "a.gather(0, torch.tensor([[1]]))",
        "a.take_along_dim(i, 1)",
        "x.take_along_dim(torch.tensor([[[0], [2], [1]]]), 2)",
        "x.index_select(1, rows)",
        "x.masked_select(mask[:, None])",
        "rows.masked_select(torch.tensor([[True, False, True], [False, True, True]]))",
        "x.select(1, -1)",
        "x.narrow(2, 1, 2)",
        "x.narrow(2, -3, 2)",
    ],
)
def test_these_read_what_torch_reads(namespace: Namespace, source: str) -> None:
    check(namespace, source)


def test_parts_are_told_with_the_dimensions_they_make(namespace: Namespace) -> None:
    snapshot = pick(namespace, "x[0, :, ::2]", element=(1, 1))
    assert [(p.text, p.source_dims, p.result_dims) for p in snapshot.parts] == [
        ("0", (0,), ()),
        (":", (1,), (0,)),
        ("::2", (2,), (1,)),
    ]
    assert snapshot.reads == (0, 1, 2)
    assert snapshot.is_view and "shares x's memory" in snapshot.why
    assert snapshot.parts[2].rule == "keeps 2 of 4 of dimension 2, from 0 in steps of 2"


def test_a_mask_is_a_copy_and_says_so(namespace: Namespace) -> None:
    snapshot = pick(namespace, "x[x > 20]")
    assert snapshot.shape == (3,) and not snapshot.is_view
    assert snapshot.result is not None and snapshot.result.texts == ("21", "22", "23")
    assert "3 True places of dimensions 0 to 2" in snapshot.parts[0].rule


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("x[5]", "from -n to n - 1"),
        ("x[0, 0, 0, 0]", "at most 3 indices"),
        ("x[::-1]", "flip"),
        ("x[mask]", "mask has the shape"),
        ("x[[0, 1], [0, 1, 2]]", "broadcast"),
        ("x[[9]]", "from -n to n - 1"),
        ("a.gather(1, rows)", "2 dimensions"),
    ],
)
def test_torchs_errors_are_kept_and_explained(namespace: Namespace, source: str, says: str) -> None:
    snapshot = pick(namespace, source)
    with pytest.raises((IndexError, RuntimeError, ValueError)) as fact:
        eval(source, namespace.variables)
    assert snapshot.error is not None
    assert snapshot.error.message == str(fact.value)
    assert says in snapshot.error.hint


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("", "not an expression"),
        ("x", "picks nothing"),
        ("x[", "not an expression"),
        ("x.sum()", "not a way of picking"),
        ("x[torch.randn(3) > 0]", "computes something"),
        ("x[print(1)]", "computes something"),
        ("x[1.5]", "cannot stand"),
        ("x[[[0, 1], [1, 0]]]", "flat list"),
        ("x[x]", "int64"),
        ("missing[0]", "no variable"),
        ("x.gather(1)", "takes dim, index"),
    ],
)
def test_what_is_no_index_is_refused_in_words(namespace: Namespace, source: str, says: str) -> None:
    with pytest.raises(LabError, match=says):
        pick(namespace, source)


def test_a_large_view_costs_only_its_window(namespace: Namespace) -> None:
    namespace.variables["big"] = torch.zeros(1).expand(1 << 20, 1 << 20)
    snapshot = pick(namespace, "big[::2, 5:]", element=(400_000, 7))
    assert snapshot.shape == (1 << 19, (1 << 20) - 5) and snapshot.is_view
    assert snapshot.reads == (800_000, 12)
    many = pick(namespace, "big[[0, 1, 2, 3, 4, 5]]")
    assert many.shape == (6, 1 << 20) and not many.is_view


def test_a_mask_that_picks_millions_is_refused(namespace: Namespace) -> None:
    namespace.variables["all"] = torch.ones(1 << 21, dtype=torch.bool)
    with pytest.raises(LabError, match="2,097,152 elements"):
        pick(namespace, "all[all]")


def test_looking_leaves_graph_version_and_random_numbers_alone(namespace: Namespace) -> None:
    x = torch.randn(3, 4, requires_grad=True)
    namespace.variables["x"] = x
    before = torch.get_rng_state()
    for source in ("x[0]", "x[x > 0]", "x[[0, 2]]"):
        pick(namespace, source)
    assert torch.equal(before, torch.get_rng_state())
    assert x._version == 0 and x.grad is None
