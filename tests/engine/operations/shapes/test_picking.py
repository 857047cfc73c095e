"""Indexing: the elements that an index reads or writes, against torch and numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.console.namespace import Namespace
from engine.operations.shapes import picking
from engine.operations.shapes.index_plan import plan_of
from engine.operations.shapes.index_text import parse
from engine.operations.shapes.picking import pick
from engine.protocol import Cells
from engine.system.errors import LabError
from engine.tensors.texts import cell_text
from tests.examples import examples

SIZES = (2, 3, 4, 5)
METHODS = (
    *("gather", "take_along_dim", "index_select", "masked_select", "select", "narrow"),
    *("scatter_", "scatter_add", "index_add_", "index_copy", "index_fill_", "index_put_"),
    "masked_fill_",
)


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
    for start in (0, 1):  # a window beside the ends of each dimension
        begin = tuple(min(start, n - 1) for n in base.shape)
        size = tuple(max(1, n - 1 - at) for n, at in zip(base.shape, begin, strict=True))
        shown = tuple(slice(at, at + n) for at, n in zip(begin, size, strict=True))
        found = plan.counts(Cells(tuple(base.shape), begin, size))
        assert found == counts[shown].flatten().tolist(), (source, begin, size)


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


@settings(max_examples=examples(100))
@given(_indices())
def test_any_index_reads_what_torch_reads(index: str) -> None:
    namespace = Namespace()
    namespace.variables["x"] = torch.arange(120).reshape(SIZES)
    check(namespace, f"x[{index}]")


@st.composite
def _methods(draw) -> tuple[str, str, dict[str, torch.Tensor]]:
    """A call on a (2, 3, 4) tensor x; how plain torch reads the same places; its tensors."""
    name = draw(st.sampled_from(METHODS))
    d = draw(st.integers(-3, 2))
    size = (2, 3, 4)[d]
    if name in ("masked_select", "masked_fill_"):
        shape = draw(st.sampled_from([(4,), (3, 1), (1, 3, 4), (2, 3, 4), ()]))
        mask = torch.tensor(draw(st.lists(st.booleans(), min_size=24, max_size=24)))
        mask = mask[: int(np.prod(shape))].reshape(shape).clone()
        value = ", 0" if name == "masked_fill_" else ""
        return f"x.{name}(i{value})", "x.masked_select(i)", {"i": mask}
    if name == "select":
        call = f"x.select({d}, {draw(st.integers(-size, size - 1))})"
        return call, call, {}
    if name == "narrow":
        start = draw(st.integers(0, size))
        call = f"x.narrow({d}, {start}, {draw(st.integers(0, size - start))})"
        return call, call, {}
    least = 0 if name in ("gather", "scatter_", "scatter_add") else -size
    if name in ("gather", "take_along_dim", "scatter_", "scatter_add"):
        shape = [draw(st.integers(1, n)) for n in (2, 3, 4)]
        if name == "take_along_dim":
            shape = [draw(st.sampled_from([1, n])) for n in (2, 3, 4)]
        shape[d] = draw(st.integers(0, 5))
        count = int(np.prod(shape))
        places = draw(st.lists(st.integers(least, size - 1), min_size=count, max_size=count))
        index = torch.tensor(places, dtype=torch.int64).reshape(shape)
        called = {
            "gather": f"x.gather({d}, i)",
            "take_along_dim": f"x.take_along_dim(i, {d})",
            "scatter_": f"x.scatter_({d}, i, 0)",
            "scatter_add": f"x.scatter_add({d}, i, v)",
        }[name]
        read = called if name == "take_along_dim" else f"x.gather({d}, i)"
        return called, read, {"i": index, "v": torch.ones(shape, dtype=torch.int64)}
    places = draw(st.lists(st.integers(0, size - 1), max_size=5))
    index = torch.tensor(places, dtype=torch.int64)
    if name == "index_put_":
        first = torch.tensor([[at % 2] for at in places], dtype=torch.int64).reshape(-1, 1)
        tensors = {"i": first, "j": torch.arange(3)}
        return "x.index_put_((i, j), torch.tensor(1))", "x[i, j]", tensors
    shape = [2, 3, 4]
    shape[d] = len(places)
    value = "1" if name == "index_fill_" else "v"
    source = f"x.{name}({d}, i{'' if name == 'index_select' else f', {value}'})"
    tensors = {"i": index, "v": torch.ones(shape, dtype=torch.int64)}
    return source, f"x.index_select({d}, i)", tensors


@given(_methods())
def test_any_method_reads_and_writes_where_torch_does(case) -> None:
    source, read, tensors = case
    positions = torch.arange(24).reshape(2, 3, 4)
    fact = eval(read, {"x": positions, **tensors})  # each element is the place that it comes from
    namespace = namespace_of({"x": positions, **tensors})
    plan = plan_of(parse(namespace, source), (2, 3, 4))
    assert plan.shape == tuple(fact.shape), source
    for element in np.ndindex(*fact.shape):
        assert positions[plan.source_of(element)] == fact[element], (source, element)
    for place in np.ndindex(2, 3, 4):
        from_here = plan.elements_from(place, 100)
        assert from_here == [tuple(at) for at in (fact == positions[place]).nonzero().tolist()]
    told = pick(namespace, source)
    assert told.error is None and told.source.size == (2, 3, 4)
    assert told.picked == tuple(fact.flatten().bincount(minlength=24).tolist())


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
    assert snapshot.parts[2].rule == "keeps 2 of 4 of dim 2, from 0 in steps of 2"
    many = pick(namespace, "x[[0, 1, 0, 1, 0, 1, 0], rows[[0, 1, 2, 0, 1, 2, 0]]]")
    assert [p.rule for p in many.parts] == [
        "picks 0, 1, 0, 1, 0, 1, … of dim 0, in this order; an index may repeat",
        "picks 1, 0, 1, 1, 0, 1, … of dim 1, in this order; an index may repeat",
        "keeps all 4 of dim 2",
    ]
    few = pick(namespace, "x[[1, 0]]").parts[0]
    assert few.rule == "picks 1, 0 of dim 0, in this order; an index may repeat"


def test_a_mask_is_a_copy_and_says_so(namespace: Namespace) -> None:
    snapshot = pick(namespace, "x[x > 20]")
    assert snapshot.shape == (3,) and not snapshot.is_view
    assert snapshot.result is not None and snapshot.result.texts == ("21", "22", "23")
    assert "3 True places of dims 0 to 2" in snapshot.parts[0].rule


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("x[5]", "Choose one from 0 to 1"),
        ("x[0, 0, 0, 0]", "at most 3 indices"),
        ("x[::-1]", "flip"),
        ("x[mask]", "mask has the shape"),
        ("x[[0, 1], [0, 1, 2]]", "shapes [2], [3] do not broadcast"),
        ("x[[9]]", "Choose one from 0 to 1"),
        ("a.gather(1, rows)", "as many dimensions as the tensor"),
        ("a.gather(1, torch.tensor([[0], [0], [0]]))", "index (3, 1) must not be larger"),
        ("x.narrow(0, 5, 1)", "Choose a start from -2 to 2"),
        ("x.masked_select(i)", "A mask or condition is bool"),
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
        ("x", "not an index of a tensor"),
        ("x[", "not an expression"),
        ("x.sum()", "not an index that can be shown"),
        ("x[torch.randn(3) > 0]", "computes something"),
        ("x[print(1)]", "computes something"),
        ("x[torch.zeros(16777217) > 0]", "is too large to be made here"),
        ("x[torch.arange(end=2)]", "keyword arguments cannot be used here"),
        ("x[1.5]", "cannot be used"),
        ("x[[[0, 1], [1, 0]]]", "flat list"),
        ("x[x]", "int64"),
        ("missing[0]", "no variable"),
        ("x.gather(1)", "takes dim, index"),
        ("x[..., ...]", "Only one ..."),
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


# -- writing ---------------------------------------------------------------------------------------

WRITES = [
    "x[1] = 7.0",
    "x[:, ::2] = 1",
    "x[0, 1:, -1] = torch.tensor([5.0, 6.0])",
    "x[x > 12] = 0",
    "x[:, mask] = -1.5",
    "x[..., [0, 2]] += 10",
    "x[rows] *= 2",
    "x[rows, [0, 0, 0]] -= 1",
    "x[None, :, 0] = 3",
    "x.masked_fill_(x > 5, float('-inf'))",
    "x.masked_fill(x < 2, 9)",
    "x.index_fill_(2, torch.tensor([0, 3]), -1)",
    "x.index_add_(0, torch.tensor([1, 1, 0]), torch.ones(3, 3, 4))",
    "x.index_copy(dim=1, index=torch.tensor([2, 0]), source=torch.zeros(2, 2, 4))",
    "x.index_put_((rows, torch.tensor([0, 2, 0])), torch.tensor(1.0), accumulate=True)",
    "a.scatter_(1, i, 9)",
    "a.scatter_add_(0, torch.tensor([[0, 0, 1]]), a * 3)",
    "a.scatter(1, torch.tensor([[2, 0]]), a)",
    "a[torch.tensor([1, 0]), torch.tensor([2, 2])] = torch.tensor([10, 20])",
    "a[0, 0] = 5",
    "a[[0, 1]] = 2.5",
    "x[0] = torch.ones(1, 1, 3, 4)",
    "x[0, 0, 0] = torch.tensor([5.0])",
    "torch.scatter_add(a, 1, i, torch.tensor([[1, 2], [3, 4]]))",
]


@pytest.mark.parametrize("source", WRITES)
def test_what_is_written_where_is_what_torch_writes(namespace, source) -> None:
    before = {name: value.clone() for name, value in namespace.tensors().items()}
    told = pick(namespace, source)
    for name, value in namespace.tensors().items():
        assert torch.equal(value, before[name]) and value._version == 0  # only looked at
    assert told.error is None and told.shape is not None and told.after is not None
    name = told.expression
    exec(f"result = {source}" if source.endswith(")") and "= " not in source else source,
         namespace.variables)  # fmt: skip
    in_place = namespace.variables[name]._version > 0
    fact = namespace.variables[name] if in_place else namespace.variables["result"]
    assert told.write == ("in place" if in_place else "copy")
    assert told.after.texts == texts(fact)
    assert told.source.texts == texts(before[name])
    # Each value goes where it is said to go: what is not named stays, the counts add up.
    picked = torch.tensor(told.picked).reshape(told.source_shape)
    assert torch.equal(fact[picked == 0], before[name][picked == 0])
    assert int(picked.sum()) == int(np.prod(told.shape))
    counts = torch.zeros_like(picked)
    for element in np.ndindex(*told.shape):
        shown = pick(namespace_of(before), source, tuple(element))
        counts[shown.reads] += 1
        assert len(shown.others) == int(picked[shown.reads]) - 1 and shown.element == element
    assert torch.equal(counts, picked)


def texts(t: torch.Tensor) -> tuple[str, ...]:
    return tuple(cell_text(item) for item in t.flatten().tolist())


def namespace_of(variables: dict[str, torch.Tensor]) -> Namespace:
    namespace = Namespace()
    namespace.variables.update(variables)
    return namespace


def test_places_named_twice_are_told_with_their_values(namespace) -> None:
    told = pick(namespace, "a.scatter_add_(1, torch.tensor([[0, 0, 2]]), a * 1)", (0, 1))
    assert told.picked == (2, 0, 1, 0, 0, 0) and told.reads == (0, 0)
    assert told.others == ((0, 0),) and told.value == "a * 1"
    assert told.after is not None and told.after.texts[0] == str(0 + 0 + 1)
    assert "sum" in told.why
    assert "one of the values stays" in pick(namespace, "a[[0, 0]] = 1").why
    assert "do not add up" in pick(namespace, "a[[0, 0]] += 1").why
    assert "stays as it is" in pick(namespace, "a.scatter(1, i, 0)").why


def test_of_many_values_for_one_place_the_first_are_named(namespace) -> None:
    told = pick(namespace, "a[torch.arange(40) // 40, 0] = 1")
    assert told.picked == (40, 0, 0, 0, 0, 0) and told.element == (0,)
    assert told.others == tuple((k,) for k in range(1, 17))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x[5] = 1", "out of bounds"),
        ("x[0] = torch.tensor([1.0, 2.0])", "expand"),
        ("a.scatter_(1, i, x)", "dtype"),
        ("a.index_add_(0, rows, a)", "index"),
        ("a.scatter_add_(1, i, a)", "single memory location"),
        ("x[:, mask, :2] = torch.ones(3)", "shape mismatch"),
        ("x[0, 0] = [1.0, 2.0, 3.0, 4.0]", "can't assign a list"),
        ("x[0, 0, 0] = (1.0,)", "can't assign a tuple"),
        ("x[0, 0] += [1.0, 2.0, 3.0, 4.0]", "unsupported operand"),
    ],
)
def test_what_torch_refuses_to_write_is_told_in_its_words(namespace, source, words) -> None:
    with pytest.raises((RuntimeError, IndexError, TypeError)) as refused:
        exec(source, namespace.variables)
    told = pick(namespace, source)
    assert told.error is not None and words in told.error.message
    assert told.error.message == str(refused.value) and told.after is None


@pytest.mark.parametrize(
    "source", ["x = 1", "x.scatter_(1)", "x[0]; x[1]", "x[0] = y = 2", "x.data = a", "del x"]
)
def test_lines_that_write_no_element_are_told_so(namespace, source) -> None:
    with pytest.raises(LabError):
        pick(namespace, source)


def test_a_large_tensor_is_not_copied_to_be_written(namespace) -> None:
    namespace.variables["big"] = torch.zeros(1).expand(10**9)
    told = pick(namespace, "big[5:10] = 1")
    assert told.after is None and told.picked[:12] == (0,) * 5 + (1,) * 5
    refused = pick(namespace, "big[5:7] = [1, 2]")
    assert refused.error is not None and "can't assign a list" in refused.error.message


def test_the_rule_of_gather_and_scatter_says_which_place_the_index_takes(
    namespace: Namespace,
) -> None:
    (read,) = pick(namespace, "a.gather(0, torch.tensor([[1]]))").parts
    assert read.rule.startswith("result[i, j] = source[index[i, j], j]: ")
    (written,) = pick(namespace, "a.scatter_(1, i, 9)").parts
    assert written.rule.startswith("self[i, index[i, j]] = src[i, j]: ")
    (added,) = pick(namespace, "a.scatter_add_(0, torch.tensor([[0, 0, 1]]), a * 3)").parts
    assert added.rule.startswith("self[index[i, j], j] += src[i, j]: ")


def test_a_result_that_is_large_is_planned_and_not_copied(
    namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picking, "MAX_PICKED", 24)
    for source in ("x[[0, 1, 0]]", "x[0, :, ::2]", "x.index_select(0, torch.tensor([0, 1]))"):
        shown = pick(namespace, source)
        numbers = eval(source, dict(namespace.variables))
        assert shown.shape == tuple(numbers.shape) and shown.result is not None
        told = shown.result.texts is not None and len(shown.result.texts) > 0
        assert told == (source != "x[[0, 1, 0]]"), source
