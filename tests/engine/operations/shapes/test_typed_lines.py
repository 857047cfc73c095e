"""What is typed into a field for an index, an operand or a product: read, or refused with a way."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from engine.console.namespace import Namespace
from engine.operations.shapes import index_text, picking, products, reductions
from engine.operations.shapes.elements import MAX_TRIED
from engine.operations.shapes.index_text import parse
from engine.operations.shapes.operands import MAX_DIMS, MAX_ELEMENTS, operand
from engine.operations.shapes.picking import pick
from engine.operations.shapes.products import MAX_OPERANDS, product
from engine.operations.shapes.reductions import reduction
from engine.system.errors import LabError
from engine.tensors.error_help import explain_error

TRY = "Try x[0, :, ::2]"


@pytest.fixture
def namespace() -> Namespace:
    namespace = Namespace()
    namespace.variables.update(
        x=torch.arange(12.0).reshape(3, 4), z=torch.tensor(1.0), i=torch.tensor([[0, 2], [1, 1]]),
        rows=np.array([0, 2]), n=torch.tensor(2), one=torch.tensor([1]), real=torch.tensor([1.0]),
        yes=torch.tensor(True), half=1.5, words="ab", size=torch.Size([2, 3]),
        far=torch.Size([1 << 40, 1 << 40]), big=torch.zeros(1).expand(1 << 13, 1 << 13),
        sparse=torch.eye(3).to_sparse(), byte=torch.zeros(3, 4, dtype=torch.uint8),
    )  # fmt: skip
    return namespace


def refused(run: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(LabError) as raised:
        run()
    return str(raised.value), raised.value.hint


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("x[rows]", "x[rows]"),
        ("x[n]", "x[2]"),
        ("x[:n]", "x[:2]"),
        ("x[n:]", "x[2:]"),
        ("x[:one]", "x[:1]"),
        ("x[::n]", "x[::2]"),
        ("x[[]]", "x[torch.tensor([], dtype=torch.int64)]"),
        ("x[torch.tensor([2, 0])]", "x[[2, 0]]"),
        ("x[torch.arange(3) != 1]", "x[[0, 2]]"),
        ("x[-1]", "x[2]"),
        ("x[~(x[:, 0] > 3)]", "x[:1]"),
    ],
)
def test_an_index_is_read_as_python_reads_it(namespace: Namespace, source: str, plain: str) -> None:
    found = pick(namespace, source)
    given = eval(plain, {"torch": torch, **namespace.variables})
    assert found.error is None and found.shape == tuple(given.shape)
    assert found.result is not None
    assert [float(text) for text in found.result.texts] == given.flatten().tolist()


@pytest.mark.parametrize(
    ("source", "words", "hint"),
    [
        ("x[yes]", "`yes` is a single bool.", "A mask has the tensor's shape."),
        ("x[:half]", "`half` is not a whole number.", TRY),
        ("x[:real]", "`real` is not a whole number.", TRY),
        ("x[:rows]", "`rows` is not a whole number.", TRY),
        ("x[real]", "`real` holds torch.float32: an index is int64 or int32, a mask is bool.",
         "Write real.long(), or real != 0 for a mask."),
        ("x[[[0], [1]]]", "`[[0], [1]]` is not a flat list of whole numbers.",
         "Write torch.tensor([[...], [...]]) for an index with more dimensions."),
        ("x[True]", "`True` cannot be used in an index.", TRY),
        ("x[words]", "`words` cannot be used in an index.", TRY),
        ("x[words == 1]", "`words == 1` is not a computation of numbers and tensors.", TRY),
        ("x[x > words]", "`x > words` is not a computation of numbers and tensors.", TRY),
        ("x[big > 1]", "`big > 1` is too large to be computed here.",
         "Run it once in the console (mask = ...), and index with that name."),
        ("x[1 / 0]", "`1 / 0`: division by zero", ""),
        ("z = 1", "`z = …` writes to no element.",
         "Write x[...] = 0 to write to the elements of x."),
        ("z += 1", "`z += …` writes to no element.",
         "Write x[...] = 0 to write to the elements of x."),
        ("z[()] = 1", "Write x[()] = 0 or x.fill_(0) for a tensor of no dimensions.", ""),
        ("x[..., ...]", "Only one ... can stand for the dimensions left out.", TRY),
        ("x.gather(1)", "gather takes dim, index.", TRY),
        ("x.gather(1, i, 3)", "gather takes dim, index.", TRY),
        ("x.gather(1, i, axis=3)", "gather takes dim, index.", TRY),
        ("x.scatter_(1, i)", "scatter_ takes dim, index, src here.", TRY),
        ("x.take(i)", "`take` is not an index that can be shown here.", "gather, take_along_dim"),
        ("x[torch.zeros(3, dtype=int)]",
         "`torch.zeros(3, dtype=int)`: keyword arguments cannot be used here.", TRY),
        ("", "Nothing is typed: this is not an expression.", TRY),
        ("x + 1", "`x + 1` is not an index of a tensor.", TRY),
    ],
)  # fmt: skip
def test_what_is_no_index_is_refused_with_a_way(
    namespace: Namespace, source: str, words: str, hint: str
) -> None:
    told, way = refused(lambda: pick(namespace, source))
    assert told == words and way.startswith(hint) and bool(way) == bool(hint)


def test_an_index_that_torch_refuses_to_compute_has_its_words(namespace: Namespace) -> None:
    told, way = refused(lambda: pick(namespace, "x[x > x[:2]]"))
    with pytest.raises(RuntimeError) as raised:
        _ = namespace.variables["x"] > namespace.variables["x"][:2]  # type: ignore[operator]
    assert told == f"`x > x[:2]`: {raised.value}"
    assert way == explain_error(raised.value) != ""
    told, _ = refused(lambda: pick(namespace, "x[torch.tensor([[0], [1, 2]])]"))
    assert told.startswith("`torch.tensor([[0], [1, 2]])`: expected sequence of length 1")


def test_an_index_is_computed_up_to_its_size(
    namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_text, "MAX_COMPUTED", 12)
    for source in ("x[x > 3]", "x[torch.zeros(3, 4) > 0]"):
        assert pick(namespace, source).error is None
    monkeypatch.setattr(index_text, "MAX_COMPUTED", 11)
    assert "too large to be computed" in refused(lambda: pick(namespace, "x[x > 3]"))[0]
    too_large = refused(lambda: pick(namespace, "x[torch.zeros(3, 4) > 0]"))
    assert too_large == ("`torch.zeros(3, 4)` is too large to be made here.", "")


def test_a_value_is_what_scatter_writes(namespace: Namespace) -> None:
    given = namespace.variables["x"].scatter(1, namespace.variables["i"], 5.0)  # type: ignore
    for source in ("x.scatter(1, i, value=5.0)", "x.scatter(1, i, 5.0)"):
        found = pick(namespace, source)
        assert found.write == "copy" and found.value == "5.0" and found.after is not None
        assert [float(text) for text in found.after.texts] == given.flatten().tolist()


def test_methods_say_whether_they_write_in_place_and_whether_they_add(
    namespace: Namespace,
) -> None:
    for source, in_place, adds in (
        ("x.scatter_(1, i, 0)", True, False),
        ("x.scatter(1, i, 0)", False, False),
        ("x.scatter_add_(1, i, x)", True, True),
        ("x.index_add(0, one, x)", False, True),
        ("x.index_copy(0, one, x)", False, False),
        ("x.index_put_((i,), x)", True, False),
        ("x.index_put_((i,), x, accumulate=True)", True, True),
        ("x.index_put((i,), x, accumulate=False)", False, False),
        ("torch.scatter(x, 1, i, 0)", False, False),
    ):
        found = parse(namespace, source)
        assert found.base == "x" and found.write is not None, source
        assert (found.write.in_place, found.write.adds) == (in_place, adds), source
    assert parse(namespace, "x.gather(dim=1, index=i)").texts == ("dim=1", "index=i")
    assert parse(namespace, "x.gather(1, i)").write is None


def test_what_picks_by_a_table_from_very_much_has_no_numbers(
    namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for most, has_numbers in ((12, True), (11, False)):
        monkeypatch.setattr(picking, "MAX_PICKED", most)
        found = pick(namespace, "x.index_select(0, one)")
        assert found.shape == (1, 4) and found.result is not None
        assert found.result.texts == (("4", "5", "6", "7") if has_numbers else ())


def test_an_operand_is_a_shape_a_number_or_a_tensor(namespace: Namespace) -> None:
    assert operand(namespace, "size").shape == (2, 3) and operand(namespace, "size").tensor is None
    assert operand(namespace, " (2, 3) ").shape == (2, 3)
    number = operand(namespace, "-2.5")
    assert number.shape == () and number.tensor is not None and number.tensor.item() == -2.5
    assert operand(namespace, "half").tensor.item() == 1.5  # type: ignore[union-attr]
    assert operand(namespace, "x").tensor is namespace.variables["x"]
    assert operand(namespace, f"({MAX_ELEMENTS},)").shape == (MAX_ELEMENTS,)
    assert operand(namespace, f"{(1,) * MAX_DIMS}").shape == (1,) * MAX_DIMS
    blank = operand(namespace, "byte").blank()
    assert (blank.dtype, blank.shape, blank.stride()) == (torch.uint8, (3, 4), (0, 0))


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        ("far", "`far` is larger than any tensor.", "Try smaller sizes."),
        (f"({MAX_ELEMENTS + 1},)", "larger than any tensor.", "Try smaller sizes."),
        (f"({MAX_ELEMENTS}, 2, 0)", "larger than any tensor.", "Try smaller sizes."),
        ("(-1, 2)", "`(-1, 2)` has a negative size.",
         "Sizes are 0 or more. Only view and reshape take -1."),
        (f"{(1,) * (MAX_DIMS + 1)}", f"has {MAX_DIMS + 1} dimensions.",
         f"Up to {MAX_DIMS} can be shown."),
        (" ", "A field for an operand is empty.", "Write a variable's name (x), or a shape"),
    ],
)  # fmt: skip
def test_what_is_no_operand_is_refused_with_a_way(
    namespace: Namespace, text: str, words: str, hint: str
) -> None:
    told, way = refused(lambda: operand(namespace, text))
    assert told.endswith(words) and way.startswith(hint)


def test_a_product_has_the_operands_that_it_takes(namespace: Namespace) -> None:
    x = operand(namespace, "x")
    for count in (0, 1, 3):
        told, way = refused(lambda count=count: product([x] * count, "matmul"))
        assert told == "matmul takes two operands."
        assert way == f"einsum takes one to {MAX_OPERANDS}."
    for count in (0, MAX_OPERANDS + 1):
        told, way = refused(lambda count=count: product([x] * count, "einsum", "ij"))
        assert told == f"einsum takes one to {MAX_OPERANDS} operands here." and way == ""
    assert product([x], "einsum", "ij->ji").shape == (4, 3)
    four = ",".join(["ij"] * MAX_OPERANDS)
    assert product([x] * MAX_OPERANDS, "einsum", f"{four}->ij").shape == (3, 4)


def test_a_reduction_without_elements_or_a_kernel_says_so(
    namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = reduction(operand(namespace, "(0, 3)"), "sum", (1,))
    assert (empty.shape, empty.element, empty.terms, empty.winner) == ((0,), None, (), None)
    x = operand(namespace, "x")
    for most, words in ((12, ""), (11, "Too many elements to reduce here")):
        monkeypatch.setattr(reductions, "MAX_FOLDED", most)
        found = reduction(x, "sum", (0,))
        assert found.note.startswith(words) and bool(found.note) == bool(words)
        assert found.shape == (4,) and math.prod(found.source_shape) == 12


@pytest.mark.parametrize("op", ["amax", "min", "argmax", "median", "std"])
def test_a_large_tensor_whose_dtype_has_no_such_reduction_is_told_in_torchs_words(
    namespace: Namespace, op: str
) -> None:
    dtype = torch.bool if op == "std" else torch.complex64
    x = namespace.variables["x"] = torch.zeros(2, MAX_TRIED, dtype=dtype)
    with pytest.raises(RuntimeError) as raised:
        getattr(x, op)(1)
    found = reduction(operand(namespace, "x"), op, (1,))  # type: ignore[arg-type]
    assert str(raised.value) in (found.note, found.error.message if found.error else "")
    assert found.winner is None and found.result is not None and found.result.texts == ()


def test_a_product_is_summed_up_to_its_bound(
    namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = namespace.variables["x"]
    namespace.variables["y"] = x.T  # type: ignore[attr-defined]
    given = (x @ x.T).flatten().tolist()  # type: ignore
    for most, numbers, note in (
        (3 * 3 * 4, given, ""),
        (3 * 3 * 4 - 1, [], "Too many products to sum here: run the line for the numbers."),
    ):
        monkeypatch.setattr(products, "MAX_PRODUCTS", most)
        found = product([operand(namespace, name) for name in "xy"], "matmul")
        assert found.shape == (3, 3) and found.note == note and found.count == 4
        assert found.result is not None
        assert [float(text) for text in found.result.texts] == numbers
    typed = product([operand(namespace, "(3, 4)"), operand(namespace, "y")], "matmul")
    assert (typed.note, typed.count, typed.terms) == ("", 0, ())
    assert typed.result is not None and typed.result.texts == ()


@pytest.mark.parametrize(
    ("equation", "words", "hint"),
    [
        ("i", "`i` does not fit a's shape (3, 4), which has 2 dimensions.", "Write one letter"),
        ("ijk", "`ijk` does not fit a's shape (3, 4)", "Write one letter for each dimension"),
        ("...ijk", "`...ijk` does not fit a's shape (3, 4)", "Write one letter"),
        ("i.j", "`i.j` does not fit a's shape (3, 4)", "Write one letter"),
        ("ij->ii", "Each letter of the result `ii` must come from an operand", "For a result with"),
        ("ij->k", "Each letter of the result `k` must come from an operand", "For a result with"),
        ("ij,jk->ik", "`ij,jk->ik` names 2 operands, and there are 1.", "Write the letters of"),
        ("ij->i2", "`ij->i2` is not an einsum equation.", "Letters name dimensions: ij,jk->ik"),
        ("", "`` is not an einsum equation.", "Letters name dimensions: ij,jk->ik"),
    ],
)
def test_an_equation_that_does_not_fit_is_refused_with_a_way(
    namespace: Namespace, equation: str, words: str, hint: str
) -> None:
    told, way = refused(lambda: product([operand(namespace, "x")], "einsum", equation))
    assert told.startswith(words) and way.startswith(hint)


@pytest.mark.parametrize("equation", ["ij", "ji", "i j -> j i", "ij->", "...j->j...", "ij->j"])
def test_the_result_of_an_equation_is_einsums(namespace: Namespace, equation: str) -> None:
    x = namespace.variables["x"]
    given = torch.einsum(equation, x)
    found = product([operand(namespace, "x")], "einsum", equation)
    assert found.error is None and found.shape == tuple(given.shape)
    assert found.result is not None
    assert [float(text) for text in found.result.texts] == given.flatten().tolist()


def test_a_line_that_writes_into_much_is_told_without_numbers(
    namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace.variables["row"] = torch.ones(4)
    for most in (12, 11):
        monkeypatch.setattr(picking, "MAX_PICKED", most)
        for source in ("x[0] = row", "x[0] = 7.0", "x.index_fill_(0, one, 7.0)", "x[0] += row"):
            found = pick(namespace, source)
            assert found.error is None and found.shape is not None, source
        refused_list = pick(namespace, "x[0] = [1, 2]")
        assert refused_list.error is not None and refused_list.after is None
