"""What the page Files makes of an index: the tree, suggested layers, the graph, a comparison."""

from __future__ import annotations

import pytest
import torch
from msgspec.structs import replace
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QToolButton
from torch import nn

from engine.project.layers.layer import suggested
from engine.protocol import (
    ArtifactDifference,
    ArtifactEntry,
    ArtifactSnapshot,
    ArtifactTotals,
    ProgramGraph,
    ProgramModule,
    ProgramNode,
    ProgramValue,
)
from tests.pictures import assert_same_picture
from widgets import theme
from widgets.artifacts.difference_table import DifferenceTable
from widgets.artifacts.entry_tree import EntryTree
from widgets.artifacts.file_view import NO_NODE, FileView
from widgets.artifacts.program_graph import graph_of
from widgets.artifacts.rows import rows_of
from widgets.boxes.boxes import VisibleGraph
from widgets.layout.nested_layout import layout_nested
from widgets.layout.outline import NestedLayout


def tensor(key: str, *shape: int, **more) -> ArtifactEntry:
    count = 4 * torch.Size(shape).numel()
    more = {"added_bytes": 0 if more.get("shares") else count, **more}
    return ArtifactEntry(key, "tensor", shape, "float32", count, readable=True, **more)


ENTRIES = [
    tensor("body.0.weight", 8, 4, role="parameter", value="w"),
    tensor("body.0.bias", 8, role="parameter", value="b"),
    tensor("head.weight", 8, 4, shares="body.0.weight"),
    ArtifactEntry("epoch", "value", dtype="int", text="3"),
]
PROGRAM = ProgramGraph(
    inputs=(ProgramValue("x", ("batch", 4), "float32"),),
    outputs=(ProgramValue("relu", ("batch", 8), "float32"),),
    modules=(ProgramModule("", "Net"), ProgramModule("body", "Sequential")),
    nodes=(
        ProgramNode("linear", "aten.linear", "body", ("x", "w", "b"),
                    (ProgramValue("linear", ("batch", 8), "float32"),), (("alpha", "1"),)),
        ProgramNode("relu", "aten.relu", "body", ("linear",),
                    (ProgramValue("relu", ("batch", 8), "float32"),)),
    ),
)  # fmt: skip


def whole(**more) -> ArtifactSnapshot:
    totals = ArtifactTotals(tensors=3, elements=40, tensor_bytes=160, values=1)
    fields = {"path": "/here/net.pt2", "kind": "exported program", "title": "program", **more}
    return ArtifactSnapshot(**fields, size_bytes=1000, totals=totals, metadata=(("torch", "2"),))


# -- the tree --------------------------------------------------------------------------------------


def test_keys_are_branches_and_shared_memory_counts_once() -> None:
    rows = {row.path: row for row in rows_of(ENTRIES)}
    assert list(rows) == [
        "body", "body.0", "body.0.weight", "body.0.bias", "head", "head.weight", "epoch"
    ]  # fmt: skip
    assert rows["body"].size_bytes == rows["body.0"].size_bytes == 4 * (32 + 8)
    assert rows["head"].size_bytes == 0 and rows["head.weight"].size_bytes == 4 * 32
    assert rows["body.0"].layer == "Linear(4, 8)"
    assert rows["body"].layer == "Sequential or ModuleList?"
    assert rows["head.weight"].notes == "shares memory with body.0.weight"
    assert rows["epoch"].shape == "3"


def test_a_key_that_begins_or_ends_with_a_dot_is_one_name() -> None:
    assert [row.path for row in rows_of([tensor(".hidden", 1), tensor("end.", 1)])] == [
        ".hidden", "end."
    ]  # fmt: skip


MODULES = {
    "Linear(4, 8)": nn.Linear(4, 8),
    "Linear(4, 8) or Embedding(8, 4)?": nn.Linear(4, 8, bias=False),
    "Linear(3, 10) or Embedding(10, 3)?": nn.Embedding(10, 3),
    "Conv1d(2, 6, 3)": nn.Conv1d(2, 6, 3),
    "Conv2d(3, 16, 5×5)": nn.Conv2d(3, 16, 5),
    "Conv3d(1, 2, 2×2×2)": nn.Conv3d(1, 2, 2, bias=False),
    "BatchNorm(7)": nn.BatchNorm2d(7),
    "LayerNorm(9)?": nn.LayerNorm(9),
    "RMSNorm(9)?": nn.RMSNorm(9),
    "LSTM(3, 5)": nn.LSTM(3, 5),
    "GRU(3, 5)": nn.GRU(3, 5, num_layers=2),
    "RNN(3, 5)": nn.RNN(3, 5),
    "MultiheadAttention(8)": nn.MultiheadAttention(8, 2),
    "": nn.ReLU(),
}


@pytest.mark.parametrize("layer", MODULES)
def test_the_layer_that_a_module_of_torch_suggests(layer: str) -> None:
    state = MODULES[layer].state_dict()
    assert suggested({key: tuple(value.shape) for key, value in state.items()}) == layer


def test_short_keys_leave_room_and_long_ones_take_no_more_than_they_had(qtbot) -> None:
    tree = EntryTree()
    qtbot.addWidget(tree)
    tree.show_entries(ENTRIES)
    assert tree.tree.sizeHintForColumn(0) <= tree.tree.columnWidth(0) < 208
    tree.show_entries((ArtifactEntry("w" * 200, "tensor", (2,), "float32", 8),))
    assert tree.tree.columnWidth(0) == 208


def test_the_search_finds_a_layer_and_its_tensors(qtbot) -> None:
    tree = EntryTree()
    qtbot.addWidget(tree)
    tree.show_entries(ENTRIES)
    assert tree.chosen and tree.chosen.path == "body.0.weight"
    tree.search.setText("shares memory")
    shown = tree._filter
    assert shown.rowCount() == 1
    assert shown.index(0, 0).data() == "head"
    tree.copy()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[1] == "body.0.weight\t(8, 4)\tfloat32\t128 B\tparameter"
    assert len(lines) == 1 + len(ENTRIES)


# -- the graph -------------------------------------------------------------------------------------


def test_a_program_is_a_graph_with_leaves() -> None:
    graph = graph_of(PROGRAM, ENTRIES)
    assert graph is not None
    assert [(node.name, node.kind, node.module) for node in graph.nodes] == [
        ("relu", "operation", "body"), ("linear", "operation", "body"), ("input", "leaf", ""),
        ("parameter", "leaf", "body.0"), ("parameter", "leaf", "body.0"),
    ]  # fmt: skip
    assert [(e.source, e.target, e.input) for e in graph.edges] == [
        (0, 1, 0), (1, 2, 0), (1, 3, 1), (1, 4, 2)
    ]  # fmt: skip
    assert graph.nodes[1].outputs[0].shape == ("batch", 8)
    assert graph_of(ProgramGraph(), ENTRIES) is None


def test_a_program_that_takes_its_own_result_has_no_circle() -> None:
    node = ProgramNode("a", "a", "", ("a", "a"), (ProgramValue("a"),))
    graph = graph_of(ProgramGraph(nodes=(node,)), ())
    assert graph is not None and not graph.edges


# -- the view --------------------------------------------------------------------------------------


@pytest.fixture
def view(qtbot) -> FileView:
    view = FileView()
    qtbot.addWidget(view)
    view.resize(1200, 700)
    return view


def test_what_can_be_done_follows_the_choice(view) -> None:
    asked: list[str] = []
    view.load_requested.connect(asked.append)
    view.variable_requested.connect(asked.append)
    view.show_subject("Net")
    view.show_file(whole(kind="torch"), ENTRIES, None)
    assert view.tabs.currentWidget() is view.values and view.work.isHidden()
    view.load.click()
    view.variable.click()
    view.tree.tree.setCurrentIndex(view.tree._filter.index(0, 0))  # the branch `body`
    assert view.load.text() == "Load body into Net" and not view.variable.isEnabled()
    view.load.click()
    view.tree.choose("epoch")
    assert not view.variable.isEnabled() and view.values.slice_bar.isHidden()
    assert asked == ["", "body.0.weight", "body"]
    view.show_subject("a_file_with_a_long_name.py: Net(hidden=7)")
    assert view.load.text() == "Load into …_name.py: Net(hidden=7)"
    assert "a_file_with_a_long_name.py" in view.load.toolTip()


def test_a_program_opens_with_its_graph(view, qtbot) -> None:
    view.calls.view.layout_requested.connect(
        lambda *asked: view.calls.view.show_layout(asked[0], laid_out(asked[0]))
    )
    view.show_file(whole(), ENTRIES, PROGRAM)
    assert view.tabs.currentWidget() is view.graph_page and not view.work.isHidden()
    assert view.about.cell(0, 0).text() == "torch"
    texts = [view.about.cell(row, 1).text() for row in range(view.about.rowCount())]
    assert "x (batch, 4) float32" in texts
    assert view.node.text() == NO_NODE
    view.show_file(whole(), ENTRIES, replace(PROGRAM, note="The file tells no shapes."))
    assert view.node.text() == f"The file tells no shapes.\n{NO_NODE}"
    view.calls.view.select(1)
    assert view.node.text() == (
        "aten.linear  in body\ntakes x, w, b  →  linear (batch, 8) float32\nalpha = 1"
    )
    view.calls.view.select(4)
    assert view.tree.chosen.path == view.node.text() == "body.0.bias"
    graph = view.calls.view
    body = next(n for n, box in enumerate(graph.facts.visible.boxes) if box.key == "body")
    graph.select_box(body)
    assert view.tree.chosen.path == "body.0.weight"  # the first tensor inside
    assert graph.selected_box == body  # it stays selected
    boxes = {n: box.key for n, box in enumerate(graph.facts.visible.boxes)}
    view.tree.choose("body.0.bias")  # of a module without a box: its first tensor is selected
    assert boxes[graph.selected_box] == "#3" and graph.facts.title(graph.selected_box) == "0.weight"
    view.tree.choose("head.weight")
    assert graph.selected_box is None  # the program does not take it
    view.tree.tree.setCurrentIndex(view.tree._filter.index(0, 0))
    assert view.tree.chosen.path == boxes[body] == "body"
    assert view.calls.view.selected_box == body
    view.show_nothing()
    assert view._pages.currentIndex() == 0


def test_the_picture_of_a_program_has_no_words_of_autograd(view) -> None:
    """A file has neither a loss nor gradients."""
    view.calls.view.layout_requested.connect(
        lambda *asked: view.calls.view.show_layout(asked[0], laid_out(asked[0]))
    )
    view.show_file(whole(), ENTRIES, PROGRAM)
    facts, bar = view.calls.view.facts, view.calls.bar
    boxes = range(len(facts.visible.boxes))
    second = {facts.title(box): facts.second_line(box) for box in boxes}
    assert second["x"] == "input · (batch, 4)" and second["0.weight"] == "parameter · (8, 4)"
    told = [facts.tooltip(box) for box in boxes]
    told += [button.toolTip() for button in bar.findChildren(QToolButton) if button.isEnabled()]
    told += [action.text() for action in bar.filters.values() if action.isVisible()]
    told += [text for _, text in facts.words.legend]
    for word in ("leaf", "leaves", "loss", "gradient", "backward", "Sequence number", "cut"):
        assert not [text for text in told if word in text], word
    assert "Weights and inputs only" in told
    linear = next(box for box in boxes if facts.title(box) == "linear")
    assert "Gives (batch, 8) float32" in facts.tooltip(linear)


def laid_out(visible: VisibleGraph) -> NestedLayout:
    return layout_nested(visible.outline)


@pytest.mark.parametrize("colors", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_pictures_of_a_file(view, qapp, colors) -> None:
    before = theme.current()
    theme.apply(qapp, colors)
    try:
        view.show_file(whole(kind="torch", title="PyTorch state_dict"), ENTRIES, None)
        view.tabs.setCurrentWidget(view.about)
        view.show()
        assert_same_picture(view, f"file_view_{'dark' if colors is theme.DARK else 'light'}")
    finally:
        theme.apply(qapp, before)


# -- the comparison --------------------------------------------------------------------------------


def test_a_comparison_lists_what_differs_and_on_demand_the_rest(qtbot) -> None:
    table = DifferenceTable()
    qtbot.addWidget(table)
    rows = [
        ArtifactDifference("a", "different", "(2,) float32", "(2,) float32", 0.5, float("inf")),
        ArtifactDifference("b", "equal", "(2,) float32", "(2,) float32", 0.0, 0.0),
        ArtifactDifference("c", "only second", "", "(1,) int64"),
    ]
    table.show_progress("other.pt", 1, 3)
    assert not table.stop.isHidden() and "1 of 3 keys" in table._words.text()
    table.show_rows("other.pt", rows)
    assert table.stop.isHidden() and "2 of 3 keys differ" in table._words.text()
    assert [table.table.cell(row, 0).text() for row in range(2)] == ["a", "c"]
    assert [table.table.cell(0, column).text() for column in (1, 2, 3)] == [
        "different", "0.5", "∞"
    ]  # fmt: skip
    table.equal.setChecked(True)
    assert table.table.rowCount() == 3
    table.show_nothing()
    assert table.table.rowCount() == 0
