"""The page of a node: what it keeps is listed and drawn, what is not known is said."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtWidgets import QLabel

from engine.protocol import (
    NodeCaller,
    NodeDetailSnapshot,
    NodeEnd,
    SavedValue,
    SourceLine,
    TensorSpec,
    TensorSummary,
    Value,
)
from tests.labels import said
from tests.pictures import assert_same_picture
from tests.widgets.backward.autograd_snapshots import WEIGHT_GRAD, value_of
from tests.words import assert_same_words
from widgets.rules.node_page import EMPTY_TEXT, NodePage

LINE = SourceLine("<cell 2>", 3, "y = net(x)")
KEPT = Value("mat1", TensorSummary((2, 4), "float32", "cpu", 32), text="[1.]")
DETAIL = NodeDetailSnapshot(
    node=7,
    name="AddmmBackward0",
    sequence=1234,
    also_called=("head.weight",),
    saved=(
        SavedValue("mat1", KEPT, storage_bytes=32, shared_with=("h", "#9")),
        SavedValue("mat2", None, note="packed by hooks"),
        SavedValue("result", KEPT, storage_bytes=2048, version=3, saved_version=1, note="stale"),
    ),
    settings=(("alpha", "1"),),
    outputs=(NodeEnd(TensorSpec((2, 3), "float32"), (5,), device="cpu"),),
    inputs=(
        NodeEnd(TensorSpec((3,), "float32"), (8,), output=2),
        NodeEnd(None, (), "cut by detach(): c"),
    ),
    callers=(NodeCaller("module", "net.0 (Linear)"), NodeCaller("function", "linear", LINE)),
    metadata=(("mine", "7"),),
    hooks="1 tensor hook",
)


@pytest.fixture
def page(qtbot) -> NodePage:
    page = NodePage()
    qtbot.addWidget(page)
    page.resize(384, 600)
    page.show()
    return page


def test_an_empty_page_says_what_to_do(page: NodePage) -> None:
    assert said(page, "node_note") == EMPTY_TEXT and page.node is None
    assert not page.saved.isVisible() and not page.card.isVisible()


def test_all_that_is_known_is_listed(page: NodePage) -> None:
    page.show_detail(DETAIL)
    assert page.node == 7
    assert said(page, "node_made_by") == (
        "#7 AddmmBackward0 · sequence number 1,234\n"
        "net.0 (Linear) → linear\n<cell 2>, line 3: y = net(x)"
    )
    assert page.saved.rows() == [
        ["mat1", "(2, 4) float32", "32 B", "h, #9"],
        ["mat2", "packed by hooks", "–", ""],
        ["result", "(2, 4) float32 · stale: version 3, saved at 1", "2 KiB", "only this node"],
    ]
    assert page.facts.rows() == [
        ["in, output 0", "(2, 3) float32 cpu · from #5"],
        ["out, input 0", "(3,) float32 · to #8 output 2"],
        ["out, input 1", "cut by detach(): c"],
        ["also called", "head.weight"],
        ["alpha", "1"],
        ["hooks", "1 tensor hook"],
        ["metadata mine", "7"],
    ]


def test_the_saved_tensor_that_is_selected_is_drawn(page: NodePage) -> None:
    page.show_detail(DETAIL)
    label = page.card.findChild(QLabel, "value_label")
    assert label is not None and label.text() == "mat1"
    page.saved.setCurrentCell(1, 0)
    assert page.card.accessibleName() == "packed by hooks" and page.card.picture.isVisible()


def test_a_node_that_keeps_nothing_shows_no_empty_table(page: NodePage) -> None:
    page.show_detail(DETAIL)
    page.show_detail(NodeDetailSnapshot(node=1, name="SumBackward0", note="freed"))
    assert not page.saved.isVisible() and not page.card.isVisible()
    assert not page.facts.isVisible() and said(page, "node_note") == "freed"
    page.show_problem("There is no node 9.")
    assert said(page, "node_note") == "There is no node 9." and page.node is None


def test_the_page_looks_as_it_did(page: NodePage, qapp) -> None:
    drawn = SavedValue("mat1", value_of("mat1", WEIGHT_GRAD), storage_bytes=16)
    page.show_detail(replace(DETAIL, saved=(drawn, *DETAIL.saved[1:])))
    qapp.processEvents()
    assert_same_picture(page, "node_page")
    assert_same_words(page, "node_page_shown")


def test_a_table_of_many_rows_scrolls_and_one_of_few_is_as_high_as_they_are(page: NodePage) -> None:
    heights = []
    for count in (1, 2, 100, 200):
        saved = tuple(SavedValue(f"x{i}", KEPT, storage_bytes=4) for i in range(count))
        page.show_detail(NodeDetailSnapshot(node=1, name="Cat", saved=saved))
        heights.append(page.saved.height())
    row = page.saved.rowHeight(0)
    assert heights[1] - heights[0] == row and heights[2] == heights[3] < 100 * row
