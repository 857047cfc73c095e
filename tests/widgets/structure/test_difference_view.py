"""Two modules compared: the words, the table, and the menu that asks for it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QTreeWidgetItem

from engine.project.document import replace
from engine.project.subject import ConsoleSubject, FileSubject
from engine.protocol import (
    DifferenceSnapshot,
    ErrorReport,
    ModuleDifference,
    OutputDifference,
    WeightDifference,
)
from tests.pictures import assert_same_picture
from tests.widgets.structure.small_structure import WHOLE
from tests.words import assert_same_words
from widgets import theme
from widgets.structure.compare_button import CompareButton
from widgets.structure.difference_view import DifferenceView
from widgets.structure.difference_words import is_equal, outputs_words
from widgets.structure.view import StructureView

SHAPE = "(8, 2) float32"
TOLD = DifferenceSnapshot(
    before="net, before",
    after="net",
    modules=(ModuleDifference("body.1", "ReLU", "GELU"), ModuleDifference("", "Net", "Other")),
    module_count=2,
    weights=(
        WeightDifference("head.weight", SHAPE, SHAPE, 0.5),
        WeightDifference("seen", "() int64, buffer", "() int64, buffer", 60.0),
        WeightDifference("body.0.bias", "(2,) float32", "(3,) float32"),
        WeightDifference("old", "(1,) float32", ""),
        WeightDifference("new", "", "(1,) float32, buffer"),
    ),
    weight_count=6,
    equal_weights=3,
    outputs=(
        OutputDifference("body.0", 1, SHAPE, SHAPE, 0.0),
        OutputDifference("body.0", 2, SHAPE, SHAPE, 0.25),
        OutputDifference("head", 1, SHAPE, "(8, 3) float32"),
        OutputDifference("", 1, SHAPE, ""),
    ),
    output_count=4,
    first=1,
)
SAME = DifferenceSnapshot(
    before="net, before", after="net", equal_weights=6, outputs=TOLD.outputs[:1], output_count=1
)


@pytest.fixture
def view(qtbot) -> DifferenceView:
    view = DifferenceView()
    qtbot.addWidget(view)
    view.resize(640, 480)
    view.show()
    return view


def part(view: DifferenceView, number: int) -> QTreeWidgetItem:
    found = view.table.topLevelItem(number)
    assert found is not None
    return found


def rows(view: DifferenceView, number: int) -> list[list[str]]:
    top = part(view, number)
    items = filter(None, (top.child(n) for n in range(top.childCount())))
    return [[item.text(column) for column in range(4)] for item in items]


def test_what_differs_is_told_in_words_and_rows(view):
    view.show_difference(TOLD)
    assert view.title.text() == "net, before → net"
    assert view.words.text().splitlines() == [
        "2 modules differ.",
        "6 parameters and buffers differ, 3 are equal; head.weight by up to 0.5.",
        "For the same input, the output of body.0 (call 2) differs first, by up to 0.25."
        " 1 output before it: equal.",
    ]
    assert rows(view, 0) == [["body.1", "ReLU", "GELU", ""], ["the whole", "Net", "Other", ""]]
    assert [row[0] + ": " + row[3] for row in rows(view, 1)] == [
        "head.weight: 0.5",
        "seen: 60",
        "body.0.bias: another",
        "old: missing",
        "new: added",
        "and 1 more: ",
    ]
    assert [(row[0], row[3]) for row in rows(view, 2)] == [
        ("body.0", "equal"),
        ("body.0 (call 2)", "0.25"),
        ("head", "another"),
        ("the whole", "missing"),
    ]
    first = part(view, 2).child(1)
    assert first is not None
    assert first.foreground(0).color() == theme.current().color("error")


def test_equal_ones_are_told_to_be_equal(view):
    view.show_difference(SAME)
    assert view.words.text().splitlines() == [
        "The modules are the same.",
        "All 6 parameters and buffers are equal.",
        "For the same input, no output differs, of 1 call.",
    ]
    assert is_equal(SAME) and view.words.property("role") == "success"
    raised = ErrorReport("LabError", "Name data under Train.")
    assert not is_equal(replace(SAME, unrun=raised)) and not is_equal(TOLD)
    unrun = replace(SAME, outputs=(), output_count=0, unrun=raised)
    assert outputs_words(unrun) == "No outputs were compared. Name data under Train."
    view.show_difference(TOLD)
    assert view.words.property("role") == ""
    assert "first 400 calls are equal" in outputs_words(replace(SAME, first=400))


def test_the_first_column_has_room_for_its_names(view):
    def width(name: str) -> int:
        row = OutputDifference(name, 1, SHAPE, SHAPE, 0.0)
        view.show_difference(replace(SAME, outputs=(row,)))
        return view.table.columnWidth(0)

    room = QFontMetrics(theme.mono_font(9)).horizontalAdvance("n" * 24)
    assert width("n") == 176 < room + 6 * theme.GRID == width("n" * 24) < width("n" * 99) == 288


def test_words_of_the_view(view):
    view.show_difference(TOLD)
    assert_same_words(view, "difference_view")


@pytest.mark.parametrize("name", ["light", "dark"])
def test_it_looks_as_it_did(view, qapp, name):
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    view.show_difference(TOLD)
    qapp.processEvents()
    assert_same_picture(view, f"difference_{name}")


def test_a_row_leads_to_its_module(qtbot):
    view = StructureView()
    qtbot.addWidget(view)
    view.show()
    view.show_structure(WHOLE, "Net()")
    assert not view.shows_difference
    view.show_difference(TOLD)
    assert view.shows_difference
    table = view.difference.table
    with qtbot.waitSignal(view.module_chosen) as chosen:
        row = part(view.difference, 1).child(2)
        assert row is not None
        table.setCurrentItem(row)
    assert chosen.args == ["body.0"] and view.tree.chosen.path == "body.0"
    table.setCurrentItem(part(view.difference, 1))
    assert view.tree.chosen.path == "body.0"
    qtbot.mouseClick(view.difference.close_button, Qt.MouseButton.LeftButton)
    assert not view.shows_difference


def test_the_menu_keeps_and_compares(qtbot):
    compare = CompareButton()
    qtbot.addWidget(compare)
    asked: list[object] = []
    compare.compare_requested.connect(asked.append)
    compare.fill()
    actions = {action.text(): action for action in compare.menu.actions()}
    assert not actions["Compare with what was kept"].isEnabled()
    assert not actions["There is no other module"].isEnabled()
    with qtbot.waitSignal(compare.keep_requested):
        actions["Keep as “before”"].trigger()
    compare.show_kept("net")
    others = (ConsoleSubject("other"), FileSubject("/x/net.py", "Net()"))
    compare.show_others(others)
    compare.fill()
    actions = {action.text(): action for action in compare.menu.actions()}
    actions["Compare with net, as kept"].trigger()
    actions["other"].trigger()
    actions["net.py: Net()"].trigger()
    assert asked == [None, *others]


def test_the_difference_stands_beside_the_name(view):
    header = view.table.header()
    shown = [view.table.headerItem().text(header.logicalIndex(place)) for place in range(4)]
    assert shown == ["", "Max |difference|", "Before", "After"]
