"""Broadcasting step by step, against torch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.console.namespace import Namespace
from engine.operations.shapes.broadcasting import broadcast, broadcast_dims, read_element
from engine.operations.shapes.elements import MAX_TRIED, trial, window_sizes
from engine.operations.shapes.operands import MAX_DIMS, Operand, operand
from engine.system.errors import LabError

SHAPES = st.lists(st.sampled_from([0, 1, 2, 3, 5]), max_size=4).map(tuple)


@pytest.fixture
def namespace() -> Namespace:
    return Namespace()


def ask(namespace: Namespace, *texts: str, **options):
    return broadcast([operand(namespace, text) for text in texts], **options)


# -- the rule --------------------------------------------------------------------------------------


def result_shape(dims):
    sizes = tuple(dim.size for dim in reversed(dims))
    return None if None in sizes else sizes


@given(st.lists(SHAPES, min_size=2, max_size=4))
def test_the_rule_says_what_torch_does(shapes) -> None:
    predicted = result_shape(broadcast_dims(shapes))
    try:
        fact = tuple(torch.broadcast_shapes(*shapes))
    except RuntimeError:
        fact = None
    assert predicted == fact


@given(SHAPES, SHAPES)
def test_in_place_fits_when_torch_adds_in_place(a, b) -> None:
    predicted = result_shape(broadcast_dims([a, b], in_place=True))
    try:
        fact = tuple(torch.zeros(a).add_(torch.zeros(b)).shape)
    except RuntimeError:
        fact = None
    assert predicted == fact


def test_each_dimension_says_which_operand_is_stretched() -> None:
    dims = broadcast_dims([(8, 1, 6, 1), (7, 1, 5)])
    assert [dim.dim for dim in dims] == [-1, -2, -3, -4]
    assert [dim.size for dim in dims] == [5, 6, 7, 8]
    assert [dim.roles for dim in dims] == [
        ("stretched", "same"),
        ("same", "stretched"),
        ("stretched", "same"),
        ("same", "added"),
    ]
    assert dims[0].text == "a's 1 is stretched to 5."
    assert dims[3].sizes == (8, None)


def test_who_does_not_fit_is_told() -> None:
    (two,) = broadcast_dims([(3,), (4,)])
    assert two.text == "a has 3 but b has 4: neither is 1, so neither can be stretched."
    (three,) = broadcast_dims([(3,), (1,), (4,), (5,)])
    assert three.text == "a has 3 but c has 4 but d has 5: none is 1, so none can be stretched."
    assert three.roles == ("conflict", "stretched", "conflict", "conflict")


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ((), ()), ((50,), (10,)), ((3, 50), (3, 10)), ((50, 50), (8, 10)),
        ((5, 20, 20), (5, 8, 10)),
        ((20, 20, 20), (6, 8, 10)), ((3, 4, 20, 20), (1, 4, 8, 10)), ((9, 2, 3, 4), (3, 2, 3, 4)),
        ((2, 0, 3, 4), (2, 0, 3, 4)),
    ],
)  # fmt: skip
def test_a_window_has_room_for_some_tiles_of_rows_and_columns(shape, sizes) -> None:
    assert window_sizes(shape) == sizes


# -- against live tensors --------------------------------------------------------------------------


@given(st.lists(SHAPES, min_size=2, max_size=3), st.data())
def test_shapes_strides_and_elements_are_torchs(shapes, data) -> None:
    namespace = Namespace()
    tensors = [torch.randn(shape) for shape in shapes]
    names = "abc"[: len(shapes)]
    namespace.variables.update(zip(names, tensors, strict=True))
    try:
        stretched = torch.broadcast_tensors(*tensors)
    except RuntimeError:
        stretched = None
    if stretched is None:
        assert ask(namespace, *names).shape is None
        return
    shape = tuple(stretched[0].shape)
    element = tuple(data.draw(st.integers(0, max(size - 1, 0))) for size in shape)
    snapshot = ask(namespace, *names, element=element)
    assert snapshot.shape == shape
    assert snapshot.strides == tuple(t.stride() for t in stretched)
    if 0 in shape:
        assert snapshot.element is None
        return
    assert snapshot.element == element
    for tensor, read, whole in zip(tensors, snapshot.reads, stretched, strict=True):
        assert tensor[read] == whole[element]


def test_the_results_window_holds_the_sum_in_torchs_numbers(namespace: Namespace) -> None:
    namespace.variables["col"] = torch.tensor([[10], [20], [30]])
    namespace.variables["row"] = torch.arange(40)
    snapshot = ask(namespace, "col", "row", element=(2, 25))
    assert snapshot.result is not None
    assert snapshot.result.start == (0, 20) and snapshot.result.size == (3, 10)
    fact = (namespace.variables["col"] + namespace.variables["row"])[:, 20:30]
    assert snapshot.result.texts == tuple(str(n) for n in fact.flatten().tolist())
    assert snapshot.cells[0].size == (3, 1) and snapshot.cells[1].start == (20,)


def test_looking_leaves_graph_version_and_random_numbers_alone(namespace: Namespace) -> None:
    x = torch.randn(3, 1, requires_grad=True)
    namespace.variables["x"] = x
    before = torch.get_rng_state()
    ask(namespace, "x", "(4,)", in_place=False)
    ask(namespace, "x", "(3, 4)", in_place=True)
    assert torch.equal(before, torch.get_rng_state())
    assert x._version == 0 and x.grad_fn is None


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.uint16, torch.bool, torch.complex64])
def test_numbers_of_rare_dtypes_are_added(namespace: Namespace, dtype: torch.dtype) -> None:
    namespace.variables["x"] = torch.ones(2, dtype=dtype)
    snapshot = ask(namespace, "x", "x")
    assert snapshot.result is not None and len(snapshot.result.texts) == 2


# -- errors ----------------------------------------------------------------------------------------


def test_torchs_message_is_kept_whole_and_the_dimension_is_named(namespace: Namespace) -> None:
    snapshot = ask(namespace, "(8, 3, 6)", "(4, 6)")
    with pytest.raises(RuntimeError) as fact:
        torch.zeros(8, 3, 6) + torch.zeros(4, 6)
    assert snapshot.error is not None
    assert snapshot.error.message == str(fact.value)
    assert "(8, 3, 6)" in snapshot.error.hint and "(4, 6)" in snapshot.error.hint
    assert "dim -2: a has 3 but b has 4" in snapshot.error.hint
    assert snapshot.shape is None and snapshot.dims[1].size is None


def test_of_several_operands_the_dimension_torch_names_is_named(namespace: Namespace) -> None:
    snapshot = ask(namespace, "(8, 3, 6)", "(4, 6)", "(2, 3, 4)")
    with pytest.raises(RuntimeError, match="at non-singleton dimension 1") as fact:
        torch.zeros(8, 3, 6) + torch.zeros(4, 6) + torch.zeros(2, 3, 4)
    assert snapshot.error is not None and snapshot.error.message == str(fact.value)
    assert snapshot.fails_at == -2 and "do not broadcast at dim -2" in snapshot.error.hint
    others = ask(namespace, "(8, 3, 6)", "(4, 6)", "(2, 5)", in_place=True)
    assert others.fails_at == -1


def test_in_place_the_dimension_torch_names_is_named_before_one_that_would_grow(
    namespace: Namespace,
) -> None:
    snapshot = ask(namespace, "(3, 1)", "(4, 2)", in_place=True)
    with pytest.raises(RuntimeError, match="at non-singleton dimension 0") as fact:
        torch.zeros(3, 1).add_(torch.zeros(4, 2))
    assert snapshot.error is not None and snapshot.error.message == str(fact.value)
    assert snapshot.fails_at == -2
    assert "do not broadcast at dim -2: a has 3 but b has 4: neither is 1" in snapshot.error.hint


def test_in_place_refusal_is_torchs_and_says_what_to_write(namespace: Namespace) -> None:
    snapshot = ask(namespace, "(3, 1)", "(3, 4)", in_place=True)
    with pytest.raises(RuntimeError) as fact:
        torch.zeros(3, 1).add_(torch.zeros(3, 4))
    assert snapshot.error is not None
    assert snapshot.error.message == str(fact.value)
    assert "a = a + b" in snapshot.error.hint
    assert snapshot.dims[0].roles == ("conflict", "same")


def test_a_huge_shape_costs_nothing(namespace: Namespace) -> None:
    snapshot = ask(namespace, "(100000, 1, 1000)", "(100000, 1)")
    assert snapshot.shape == (100000, 100000, 1000)
    failed = ask(namespace, "(100000, 100000)", "(3, 7)", in_place=True)
    assert failed.error is not None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("(2, -1)", "negative"),
        ("(1,) * 3", "only names"),
        ("missing", "no variable"),
        (str((1,) * (MAX_DIMS + 1)), "9 dimensions"),
        ("torch", "not a tensor"),
    ],
)
def test_what_is_no_operand_is_refused_in_words(namespace: Namespace, text: str, says: str) -> None:
    with pytest.raises(LabError, match=says):
        operand(namespace, text)


@pytest.mark.parametrize(
    ("text", "shape"),
    [("()", ()), ("3", (3,)), ("2 x 3", (2, 3)), ("[4,5]", (4, 5)), ("2.5", ()), ("(7,)", (7,))],
)
def test_shapes_are_typed_in_many_ways(namespace: Namespace, text: str, shape) -> None:
    assert operand(namespace, text).shape == shape


def test_one_or_five_operands_are_refused(namespace: Namespace) -> None:
    with pytest.raises(LabError, match="two to four"):
        ask(namespace, "(1,)")


def test_an_element_of_the_result_reads_index_0_of_what_is_stretched() -> None:
    assert read_element((4, 2, 3), (1, 4)) == (0, 3)


def test_an_operation_is_tried_on_a_small_tensor_itself_and_on_meta_for_a_large_one() -> None:
    small, large = torch.ones(MAX_TRIED), torch.ones(MAX_TRIED + 1, dtype=torch.float64)
    assert trial(Operand("x", (MAX_TRIED,), small)) is small
    tried = trial(Operand("x", (MAX_TRIED + 1,), large))
    assert tried.is_meta and tried.shape == large.shape and tried.dtype == torch.float64
    assert trial(Operand("(2, 3)", (2, 3))).equal(torch.zeros(2, 3))
    assert trial(Operand("(1025, 64)", (1025, 64))).is_meta
    assert trial(Operand("m", (2,), torch.ones(2, device="meta"))).is_meta
    unread = torch.sparse_coo_tensor(torch.tensor([[0, 0]]), torch.ones(2), (3,)).to("meta")
    assert trial(Operand("s", (3,), unread)).layout == torch.strided
