"""What is read of tensors has bounds, and what cannot be read says why."""

from __future__ import annotations

import bdb
import itertools
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from engine.console.namespace import Namespace
from engine.operations.memory import footprint, locating
from engine.operations.memory.aliases import read_aliases
from engine.operations.memory.footprint import Footprint
from engine.operations.memory.locating import locate
from engine.operations.memory.storage import read_window as read_cells
from engine.operations.shapes.broadcasting import broadcast
from engine.operations.shapes.elements import element_or_first, text_at, window
from engine.operations.shapes.operands import operand
from engine.protocol import DimCut
from engine.system.errors import LabError
from engine.tensors import reach as reaching
from engine.tensors import readable as reading
from engine.tensors import summary
from engine.tensors.error_help import NO_DEBUGGER, explain_error
from engine.tensors.reach import Reached, reach
from engine.tensors.readable import readable
from engine.tensors.summary import shown_groups, shown_values, summarise
from engine.tensors.values.bits import bits_of
from engine.tensors.values.line_points import LinePoints
from engine.tensors.values.statistics import Statistics
from engine.tensors.values.window import (
    Cut,
    cut_tensor,
    read_window,
    why_unreadable,
    window_picture,
)  # fmt: skip

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(prototype|beta state|Sparse invariant|deprecated).*:UserWarning"
)


class Unreadable(torch.Tensor):
    """Its operations all fail."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"no {func.overloadpacket.__name__} for you")


def unreadable() -> torch.Tensor:
    return torch.Tensor._make_wrapper_subclass(Unreadable, (2, 3))  # type: ignore[attr-defined]


# -- what variables hold ---------------------------------------------------------------------------


def test_so_many_objects_are_looked_at_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    variables: dict[str, Any] = {name: torch.ones(1) for name in "abcd"}
    monkeypatch.setattr(reaching, "MAX_LOOKED_AT", 4)
    assert reach(variables) == Reached(variables)
    monkeypatch.setattr(reaching, "MAX_LOOKED_AT", 3)
    found = reach(variables)
    assert list(found.held) == ["a", "b", "c"]
    assert found.cut == "Only the first 3 objects were looked through."


def test_so_many_items_of_one_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [torch.ones(1) for _ in range(3)]
    for most, cut in ((3, ""), (2, "Of `x` only the first 2 items were looked through.")):
        monkeypatch.setattr(reaching, "MAX_ITEMS", most)
        found = reach({"x": items})
        assert list(found.held) == [f"x[{n}]" for n in range(most)] and found.cut == cut


def test_parts_of_modules_have_the_expressions_that_python_runs() -> None:
    net: Any = nn.Module()
    net.layers = nn.ModuleDict({"a b": nn.Linear(1, 1), "plain": nn.Linear(1, 1)})
    net.stack = nn.Sequential(nn.Linear(1, 1))
    net.scales = nn.ParameterDict({"x y": nn.Parameter(torch.ones(1))})
    net.register_parameter("if", nn.Parameter(torch.ones(2)))
    net.register_buffer("0", torch.ones(3))
    net.register_parameter("none", None)
    net.register_buffer("kept", torch.ones(3))
    net.stack[0].weight.grad = torch.ones(1, 1)
    net.cache = {"k": torch.ones(1), 3: torch.ones(1), True: torch.ones(1), (1,): torch.ones(1)}
    net._private = torch.ones(1)
    found = reach({"net": net, "_hidden": torch.ones(1), "again": net.kept})
    for expression, held in found.held.items():
        assert eval(expression, {"net": net, "again": net.kept}) is held, expression
    parts = {*net.parameters(), *net.buffers(), net.cache["k"], net.cache[3], net.cache[True]}
    assert set(map(id, found.held.values())) == {*map(id, parts), id(net.stack[0].weight.grad)}
    assert {"net.layers['a b'].weight", "net.layers.plain.weight", "net.stack[0].bias",
            "net._parameters['if']", "net._buffers['0']", "again"} <= found.held.keys()  # fmt: skip


def test_only_a_leaf_and_what_retains_it_has_a_gradient_to_reach() -> None:
    w = torch.ones(2, requires_grad=True)
    kept, other = w * 2, w * 3
    kept.retain_grad()
    (kept + other).sum().backward()
    assert list(reach({"w": w, "kept": kept, "other": other}).held) == [
        "w", "kept", "other", "w.grad", "kept.grad",
    ]  # fmt: skip


# -- cells -----------------------------------------------------------------------------------------


def test_the_elements_of_a_cell_come_by_the_longest_stride_first() -> None:
    x = Footprint((3, 4, 2), (1, 2, 8))
    brute = [i for i in itertools.product(range(3), range(4), range(2)) if x.cell_of(i) == 8]
    assert list(x.elements_at(8)) == sorted(brute, key=lambda i: (i[2], i[1], i[0]))
    assert x.count_at(8, 9) == len(brute) == 2 and x.count_at(8, 1) == 1


def test_a_search_for_elements_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    x = Footprint((10, 10), (1, 1))
    assert len(list(x.elements_at(9))) == 10
    for most, found in ((20, 10), (1, 1), (0, 0)):
        monkeypatch.setattr(footprint, "SEARCH_STEPS", most)
        assert len(list(x.elements_at(9))) == found


def test_of_many_elements_in_a_cell_the_first_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    t = torch.ones(1).expand(3)
    for most, count, more in ((3, 3, False), (2, 2, True)):
        monkeypatch.setattr(locating, "MAX_ELEMENTS", most)
        (reader,) = locate("t", t, Reached({"t": t}), cell=0).readers
        assert (len(reader.elements), reader.more) == (count, more)


def test_of_many_readers_the_first_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    t = torch.ones(3)
    held = Reached({"t": t, "a": t[:1], "far": t[2:], "b": t.view(3, 1)}, cut="Cut.")
    for most, note in ((3, "Cut."), (2, "Cut. More than 2 tensors read it: these are the first.")):
        monkeypatch.setattr(locating, "MAX_READERS", most)
        found = locate("t", t, held, index=(0,))
        assert [reader.expression for reader in found.readers] == ["t", "a", "b"][:most]
        assert found.note == note


def test_views_outside_of_a_graph_have_no_operation_and_others_that_of_their_node() -> None:
    namespace = Namespace()
    w = torch.ones(3, 4, requires_grad=True)
    namespace.variables.update(w=w, row=w[0], plain=torch.ones(3), end=torch.ones(4)[2:])
    found = read_aliases(namespace).tensors
    nodes = {node.names[0]: node for node in found if node.names}
    assert (nodes["row"].op, nodes["plain"].op, nodes["end"].op) == ("select", "", "")
    assert nodes["row"].requires_grad and not nodes["plain"].requires_grad
    assert (nodes["row"].shape, nodes["row"].strides, nodes["row"].offset) == ((4,), (1,), 0)
    assert nodes["row"].storage == nodes["w"].storage != nodes["plain"].storage


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torch.tensor([1 + 2j]).conj().imag, "The cells are not negated"),
        (unreadable, "Its storage cannot be read: "),
        (lambda: torch.eye(2).to_sparse_bsr((1, 1)), "The layout torch.sparse_bsr has no strides."),
    ],
)
def test_a_storage_says_what_is_special_about_it(make: Any, words: str) -> None:
    assert words in read_cells("x", make(), None, 8).note


def test_inside_a_transform_there_is_no_storage_and_there_are_no_numbers() -> None:
    seen: list[tuple[str, str]] = []

    def look(t: torch.Tensor) -> torch.Tensor:
        seen.append((read_cells("t", t, None, 8).note, readable(t).note))
        return t

    torch.func.vmap(look)(torch.ones(3, 2))
    assert seen == [(
        "Inside a torch.func transform it has no storage of its own.",
        "inside a torch.func transform: it has no data of its own",
    )]  # fmt: skip


# -- numbers ---------------------------------------------------------------------------------------


def test_a_tensor_that_raises_is_told_by_its_error() -> None:
    found = readable(unreadable())
    assert found.dense is None and found.shape == (2, 3) and found.note.startswith("unreadable: ")
    assert "for you" in found.note and (found.dtype, found.device) == (torch.float32, "cpu")


def test_ragged_tensors_have_their_elements_in_order_and_none_on_meta() -> None:
    parts = [torch.ones(2, 3), torch.zeros(1, 3)]
    found = readable(torch.nested.nested_tensor(parts))
    assert found.shape == (2, -1, 3) and found.note == "nested: -1 is ragged"
    assert found.dense is not None and found.dense.tolist() == [1.0] * 6 + [0.0] * 3
    gone = torch.nested.nested_tensor(parts)
    gone.unbind()[0].untyped_storage().resize_(0)
    none = readable(gone)
    assert none.dense is None and none.shape == ()
    assert none.note.startswith("unreadable: setStorage")


def test_a_large_sparse_tensor_is_read_as_its_stored_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    t = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    for sparse in (t.to_sparse(), t.to_sparse_csr(), t.to_sparse_csc()):
        monkeypatch.setattr(reading, "MAX_EXPANDED_ELEMENTS", 4)
        whole = readable(sparse)
        assert whole.dense is not None and torch.equal(whole.dense, t) and not whole.partial
        monkeypatch.setattr(reading, "MAX_EXPANDED_ELEMENTS", 3)
        part = readable(sparse)
        assert part.dense is not None and sorted(part.dense.tolist()) == [2.0, 3.0]
        assert part.partial and part.shape == (2, 2)
        assert part.note == "sparse with 2 of 4 elements stored; all others are zero"


def test_what_cannot_be_cut_has_no_window_and_says_why() -> None:
    for t in (unreadable(), torch.ones(2, 3, device="meta")):
        cut = cut_tensor(t, "")
        note = why_unreadable(cut)
        assert note and [dim.count for dim in cut.dims] == [2, 3]
        assert window_picture(cut) == (None, (1, 1)) and read_window(cut, 0, 9, 0, 9) == ()
    none = Cut((DimCut(start=0, step=1, count=2, size=2, fixed=False),), None, "gone")
    assert why_unreadable(none) == "gone" and read_window(none, 0, 2, 0, 2) == ()
    ragged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    ragged.unbind()[0].untyped_storage().resize_(0)
    cut = cut_tensor(ragged, "")
    assert cut.data is None and cut.note.startswith("unreadable: ") and cut.dims == ()


def test_memory_that_is_released_meanwhile_ends_the_count() -> None:
    t = torch.ones(4)
    counting, lines = Statistics(t), LinePoints(cut_tensor(t, ""), 1)
    t.untyped_storage().resize_(0)
    assert not counting.advance() and (counting.done, counting.total) == (0, 0)
    assert not lines.advance() and (lines.done, lines.total) == (0, 0)


def test_zeros_that_are_not_stored_count() -> None:
    for stored in (torch.tensor([1.0, -1.0]), torch.tensor([2.0, 3.0])):
        counting = Statistics(stored)
        while counting.advance():
            pass
        counting.add_zeros(0)
        assert counting.total == 2 and counting.zeros == 0
        counting.add_zeros(3)
        whole = torch.cat([stored, torch.zeros(3)]).double()
        assert (counting.done, counting.total, counting.zeros) == (5, 5, 3)
        assert counting.mean == pytest.approx(whole.mean().item())
        assert counting.std == pytest.approx(whole.std().item())
        assert counting.minimum == whole.min() and counting.maximum == whole.max()
        bins = counting.histogram()
        assert bins is not None and sum(bins.counts) == 5


def test_an_expanded_tensor_has_the_statistics_of_all_its_elements() -> None:
    for t in (
        torch.tensor([1.0, 5.0]).expand(3, 2),
        torch.tensor([[1.0], [5.0]]).expand(2, 4),
        torch.tensor([[1.0], [0.0]]).expand(5, 2, 4),
        torch.tensor(2.0).expand(1, 1),
    ):
        told, whole = summarise(t), t.contiguous().double()
        assert told.mean == pytest.approx(whole.mean().item())
        assert told.norm == pytest.approx(whole.norm().item())
        assert told.zeros == int((whole == 0).sum())
        if t.numel() > 1:
            assert told.std == pytest.approx(whole.std().item())


def test_of_very_many_tensors_there_are_summaries_only(monkeypatch: pytest.MonkeyPatch) -> None:
    named = [("a", torch.ones(2, 2)), ("none", None), ("b", torch.zeros(3))]
    monkeypatch.setattr(summary, "MAX_DETAILED_VALUES", 2)
    first, none, second = shown_values(named)
    assert none is None and first is not None and second is not None
    assert (first.label, second.label) == ("a", "b")
    assert first.picture is not None and first.text and second.summary.zeros == 3
    monkeypatch.setattr(summary, "MAX_DETAILED_VALUES", 1)
    first, none, second = shown_values(named)
    assert none is None and first is not None and second is not None
    assert first.picture is None and first.summary == summarise(torch.ones(2, 2))
    groups = shown_groups({"a": torch.ones(1)}, {}, {"b": torch.ones(2), "c": torch.ones(3)})
    assert [[v.label for v in group] for group in groups] == [["a"], [], ["b", "c"]]


def test_cells_of_pictures_are_shared_among_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "MAX_CELLS", 32)
    t = torch.ones(8, 8)
    for count, most in ((1, 32), (2, 16), (4, 8)):
        shown = shown_values([(str(n), t) for n in range(count)])
        for each in shown:
            assert each is not None and each.picture is not None
            rows, columns = each.picture.shape
            assert most // 2 <= rows * columns <= most


@pytest.mark.parametrize(
    ("number", "words"),
    [(0.0, " (zero)"), (-0.0, " (zero)"), (1e-45, " (subnormal: no leading 1)"), (1.5, "")],
)
def test_the_formula_of_a_float_says_what_is_special(number: float, words: str) -> None:
    (part,) = bits_of(torch.tensor(number))
    assert part.formula.endswith(words) and ("(" in part.formula) == bool(words)
    assert float(part.exact) == torch.tensor(number).item()


# -- shapes ----------------------------------------------------------------------------------------


def test_two_to_four_operands_are_broadcast() -> None:
    one = operand(Namespace(), "(2, 1)")
    for count in (1, 5):
        with pytest.raises(LabError, match="This view takes two to four operands"):
            broadcast([one] * count)
    for count in (2, 3, 4):
        assert broadcast([one] * count).shape == (2, 1)


@pytest.mark.parametrize(
    ("shapes", "in_place", "way"),
    [
        (("(2,)", "(3,)"), False, "Check which dimensions"),
        (("(2,)", "(3,)"), True, "Check which dimensions"),
        (("(1,)", "(3,)"), True, "Write a = a + b"),
        (("(2, 1)", "(2, 3)"), True, "Write a = a + b"),
        (("(1,)", "(2,)", "(3,)"), False, "Check which dimensions"),
    ],
)
def test_the_way_on_is_for_what_does_not_fit(
    shapes: tuple[str, ...], in_place: bool, way: str
) -> None:
    found = broadcast([operand(Namespace(), text) for text in shapes], in_place)
    assert found.error is not None and way in found.error.hint


def test_an_element_is_kept_only_if_the_shape_has_it() -> None:
    for element, expected in (
        ((1, 2), (1, 2)), ((1, 3), (0, 0)), ((-1, 0), (0, 0)), ((1,), (0, 0)), (None, (0, 0)),
    ):  # fmt: skip
        assert element_or_first(element, (2, 3)) == expected
    assert element_or_first((0, 0), (2, 0)) is None and element_or_first(None, ()) == ()
    cells = window((2, 3))
    assert text_at(None, (0, 0)) == text_at(cells, None) == text_at(cells, (0, 0)) == ""


# -- errors ----------------------------------------------------------------------------------------


def raised(run: Any) -> str:
    with pytest.raises(Exception) as caught:
        run()
    return explain_error(caught.value)


def test_a_debugger_that_was_left_is_told() -> None:
    assert explain_error(bdb.BdbQuit()) == NO_DEBUGGER


def test_an_index_of_an_embedding_is_told_with_its_number_where_it_can_be_read() -> None:
    table = torch.ones(3, 2)
    for index, words in (
        ([0, 7], "the index holds 7: choose from these, or give the embedding 8 rows."),
        ([0, 3], "the index holds 3: choose from these, or give the embedding 4 rows."),
        ([0, -7], "the index holds -7: choose from these: a negative index does not count"),
        ([9, -7], "the index holds 9: choose from these, or give the embedding 10 rows."),
    ):
        told = raised(lambda index=index: F.embedding(torch.tensor(index), table))
        assert told.startswith("The table (an embedding's weight) has 3 rows, numbered 0 to 2")
        assert words in told
    general = "An index looks up a row that the table"

    class Own(torch.Tensor):
        pass

    own = torch.tensor([0, 7]).as_subclass(Own)
    for run in (
        lambda: torch.func.vmap(lambda i: F.embedding(i, table))(torch.tensor([0, 7])),
        lambda: F.embedding(own, table),
    ):
        assert raised(run).startswith(general)


def test_a_label_of_no_class_is_told_with_the_number_of_classes() -> None:
    for scores, labels, count in (
        (torch.ones(2, 3), torch.tensor([0, 5]), 3),
        (torch.ones(4), torch.tensor(5), 4),
        (torch.ones(1, 3, 2), torch.full((1, 2), 5), 3),
    ):
        told = raised(lambda scores=scores, labels=labels: F.cross_entropy(scores, labels))
        assert f"scores of {count} classes, numbered 0 to {count - 1}, and a label is 5." in told
