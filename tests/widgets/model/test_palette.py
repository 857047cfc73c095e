"""The palette: search, keys, and drags onto the canvas."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QColor, QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from engine.project import catalogue
from tests.pictures import assert_same_picture
from tests.words import assert_same_words
from widgets import theme
from widgets.model.palette import BlockPalette
from widgets.model.palette_list import _rank
from widgets.model.palette_row import KIND_ROLE


@pytest.fixture
def palette(qtbot) -> BlockPalette:
    widget = BlockPalette(catalogue.kinds().values())
    qtbot.addWidget(widget)
    widget.resize(280, 600)
    widget.show()
    widget.activateWindow()
    qtbot.waitUntil(widget.isActiveWindow)
    widget.search.setFocus()
    return widget


def center_of(palette: BlockPalette, key: str) -> QPoint:
    row = next(row for row, kind in palette.list.visible_kinds() if kind.key == key)
    index = palette.list.model().index(row, 0)
    palette.list.scrollTo(index)
    return palette.list.visualRect(index).center()


def record(palette: BlockPalette) -> list[tuple]:
    told: list[tuple] = []
    palette.drag_started.connect(lambda key: told.append(("started", key)))
    palette.drag_moved.connect(lambda key, at: told.append(("moved", key, at)))
    palette.drag_dropped.connect(lambda key, at: told.append(("dropped", key, at)))
    palette.drag_cancelled.connect(lambda: told.append(("cancelled",)))
    return told


def test_every_kind_is_there_under_its_group(palette):
    assert sorted(palette.shown_kinds()) == sorted(catalogue.kinds())
    model = palette.list.model()
    rows = [model.index(row, 0) for row in range(model.rowCount())]
    headers = [index.data() for index in rows if index.data(KIND_ROLE) is None]
    assert headers == list(dict.fromkeys(kind.group for kind in catalogue.kinds().values()))
    for index in rows:
        if kind := index.data(KIND_ROLE):
            assert kind.summary in index.data(Qt.ItemDataRole.AccessibleTextRole)
            assert kind.torch_name in index.data(Qt.ItemDataRole.ToolTipRole)


@pytest.mark.parametrize(
    ("typed", "best"),
    [
        ("linear", "nn.Linear"),
        ("NN.CONV2D", "nn.Conv2d"),
        ("relu", "nn.ReLU"),
        ("batch norm", "nn.BatchNorm1d"),
        ("cat", "torch.cat"),
    ],
)
def test_typing_filters_and_enter_chooses_the_best_match(palette, qtbot, typed, best):
    QTest.keyClicks(palette.search, typed)
    assert palette.current_kind() == best
    assert len(palette.shown_kinds()) < len(catalogue.kinds())
    with qtbot.waitSignal(palette.block_chosen) as chosen:
        QTest.keyClick(palette.search, Qt.Key.Key_Return)
    assert chosen.args == [best]


def test_arrows_in_the_search_field_move_in_the_list_and_skip_headers(palette, qtbot):
    QTest.keyClicks(palette.search, "pool")
    shown = palette.shown_kinds()
    start = shown.index(palette.current_kind())
    QTest.keyClick(palette.search, Qt.Key.Key_Down)
    assert palette.current_kind() == shown[start + 1]
    QTest.keyClick(palette.search, Qt.Key.Key_Up)
    assert palette.current_kind() == shown[start]


def test_no_hit_says_what_to_try_and_enter_does_nothing(palette, qtbot):
    QTest.keyClicks(palette.search, "qqq")
    assert palette.shown_kinds() == []
    assert palette.empty.isVisible() and "qqq" in palette.empty.text()
    with qtbot.assertNotEmitted(palette.block_chosen):
        QTest.keyClick(palette.search, Qt.Key.Key_Return)
    QTest.keyClick(palette.search, Qt.Key.Key_Escape)
    assert palette.search.text() == ""
    assert len(palette.shown_kinds()) == len(catalogue.kinds())
    assert not palette.empty.isVisible()


def test_typing_in_the_list_goes_to_the_search_field(palette):
    palette.list.setFocus()
    QTest.keyClicks(palette.list, "g")
    assert palette.search.text() == "g"
    assert palette.search.hasFocus()


def test_double_click_chooses(palette, qtbot):
    at = center_of(palette, "nn.Linear")
    with qtbot.waitSignal(palette.block_chosen) as chosen:
        QTest.mouseDClick(palette.list.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert chosen.args == ["nn.Linear"]


def test_a_drag_is_told_with_global_positions(palette):
    told = record(palette)
    view = palette.list.viewport()
    start = center_of(palette, "nn.Linear")
    QTest.mousePress(view, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(view, start + QPoint(2, 0))
    assert told == []
    first, outside = start + QPoint(40, 5), QPoint(500, 80)
    QTest.mouseMove(view, first)
    QTest.mouseMove(view, outside)
    QTest.mouseRelease(view, Qt.MouseButton.LeftButton, pos=outside)
    assert told == [
        ("started", "nn.Linear"),
        ("moved", "nn.Linear", view.mapToGlobal(first)),
        ("moved", "nn.Linear", view.mapToGlobal(outside)),
        ("dropped", "nn.Linear", view.mapToGlobal(outside)),
    ]


def test_escape_cancels_a_drag_wherever_the_focus_is(palette, qtbot):
    other = QWidget()
    qtbot.addWidget(other)
    told = record(palette)
    view = palette.list.viewport()
    start = center_of(palette, "nn.Linear")
    QTest.mousePress(view, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(view, start + QPoint(60, 0))
    QTest.keyClick(other, Qt.Key.Key_Escape)
    QTest.mouseMove(view, start + QPoint(90, 0))
    QTest.mouseRelease(view, Qt.MouseButton.LeftButton, pos=start + QPoint(90, 0))
    assert [what[0] for what in told] == ["started", "moved", "cancelled"]


def test_escape_during_a_drag_leaves_the_search_as_it_is(palette):
    QTest.keyClicks(palette.search, "linear")
    told = record(palette)
    view = palette.list.viewport()
    start = center_of(palette, "nn.Linear")
    QTest.mousePress(view, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(view, start + QPoint(60, 0))
    QTest.keyClick(palette.search, Qt.Key.Key_Escape)
    assert told[-1] == ("cancelled",)
    assert palette.search.text() == "linear"


def test_a_header_cannot_be_dragged(palette):
    told = record(palette)
    view = palette.list.viewport()
    QTest.mousePress(view, Qt.MouseButton.LeftButton, pos=QPoint(40, 10))
    QTest.mouseMove(view, QPoint(200, 200))
    QTest.mouseRelease(view, Qt.MouseButton.LeftButton, pos=QPoint(200, 200))
    assert told == []


def test_a_narrow_palette_does_not_scroll_sideways(palette, qapp):
    palette.list.setFixedWidth(60)
    qapp.processEvents()
    assert not palette.list.horizontalScrollBar().isVisible()


def test_after_enter_the_next_word_searches_anew(palette):
    QTest.keyClicks(palette.search, "flatten")
    QTest.keyClick(palette.search, Qt.Key.Key_Return)
    QTest.keyClicks(palette.search, "relu")
    assert palette.current_kind() == "nn.ReLU"


def test_a_search_looks_as_it_did(palette, qapp):
    QTest.keyClicks(palette.search, "norm")
    qapp.processEvents()
    assert_same_picture(palette, "palette")
    assert_same_words(palette, "palette_searched")


def test_a_kind_is_found_by_its_key(palette):
    for key in (palette.shown_kinds()[0], "nn.Linear", palette.shown_kinds()[-1]):
        index = palette.list.index_of(key)
        assert index.data(KIND_ROLE).key == key
    assert not palette.list.index_of("nn.Nothing").isValid()


@pytest.mark.parametrize(
    ("typed", "first"),
    [("lin", "nn.Linear"), ("nn.linear", "nn.Linear"), ("sigmoid", "nn.Sigmoid")],
)
def test_a_name_that_is_typed_whole_or_begun_goes_before_others(palette, typed, first):
    QTest.keyClicks(palette.search, typed)
    assert palette.current_kind() == first


def test_escape_clears_a_search_and_goes_no_further(palette, qtbot):
    palette.search.setFocus()
    escape = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Escape, Qt.KeyboardModifier.NoModifier)
    QTest.keyClicks(palette.search, "norm")
    assert palette.eventFilter(palette.search, escape) and palette.search.text() == ""
    assert not palette.eventFilter(palette.search, escape)  # it may close what is around
    enter = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Return, Qt.KeyboardModifier.NoModifier)
    assert palette.eventFilter(palette.search, enter)


def test_the_row_under_the_pointer_is_lit(palette):
    view = palette.list
    view.setCurrentIndex(view.model().index(5, 0))

    def corner(row: int) -> QColor:
        rect = view.visualRect(view.model().index(row, 0))
        return view.viewport().grab().toImage().pixelColor(rect.right() - 1, rect.top() + 1)

    resting, chosen = corner(4), corner(5)
    QTest.mouseMove(view.viewport(), view.visualRect(view.model().index(4, 0)).center())
    lit = corner(4)
    QApplication.sendEvent(view, QEvent(QEvent.Type.Leave))
    assert corner(4) == resting
    accent = theme.current().color("accent")
    assert resting == theme.current().color("surface")
    assert abs(lit.red() - (resting.red() * 235 + accent.red() * 20) / 255) <= 1
    assert abs(chosen.red() - (resting.red() * 209 + accent.red() * 46) / 255) <= 1


def test_the_pointer_over_a_block_is_a_hand(palette):
    view = palette.list.viewport()
    header = palette.list.model().index(0, 0)
    palette.list.scrollTo(header)
    for place, shape in (
        (palette.list.visualRect(header).center(), Qt.CursorShape.ArrowCursor),
        (center_of(palette, "nn.Linear"), Qt.CursorShape.OpenHandCursor),
    ):
        QTest.mouseMove(view, place)
        assert view.cursor().shape() == shape
    at = center_of(palette, "nn.Linear")
    QTest.mousePress(view, Qt.MouseButton.LeftButton, pos=at)
    QTest.mouseMove(view, at + QPoint(40, 5))
    assert view.cursor().shape() == Qt.CursorShape.ClosedHandCursor
    QTest.mouseRelease(view, Qt.MouseButton.LeftButton, pos=at + QPoint(40, 5))
    assert view.cursor().shape() == Qt.CursorShape.ArrowCursor


def test_only_the_left_button_chooses_and_drags(palette, qtbot):
    told, view, at = record(palette), palette.list.viewport(), center_of(palette, "nn.Linear")
    right = Qt.MouseButton.RightButton
    with qtbot.assertNotEmitted(palette.block_chosen):
        QTest.mouseDClick(view, right, pos=at)
    QTest.mousePress(view, right, pos=at)
    QTest.mouseMove(view, at + QPoint(40, 5))
    QTest.mouseRelease(view, right, pos=at + QPoint(40, 5))
    assert told == []


@pytest.mark.parametrize(
    ("words", "rank"),
    [
        ("linear", 5), ("nn.linear", 5), ("lin", 4), ("nn.l", 4), ("inea", 3), ("dense", 2),
        ("linear dense", 2), ("linear lin", 4), ("weighs", 1), ("linear qqq", 0), ("", 100),
    ],
)  # fmt: skip
def test_names_rank_before_keywords_and_these_before_groups(words, rank):
    kind = catalogue.kinds()["nn.Linear"]
    assert "dense" in kind.keywords
    assert _rank(kind, words.split()) == rank
