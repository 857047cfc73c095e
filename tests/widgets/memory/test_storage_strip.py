"""The strip of cells by itself: how many stand in a row, how far it scrolls, what a cell tells."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QGuiApplication

from engine.operations.memory.storage import read_window
from widgets import theme
from widgets.diagram.style import font, text_width
from widgets.memory.storage_strip import StorageStrip
from widgets.memory.strip_picture import MARGIN, MAX_CELL_WIDTH, MIN_CELL_WIDTH, ROW_HEIGHT


@pytest.fixture
def strip(qtbot) -> StorageStrip:
    strip = StorageStrip()
    qtbot.addWidget(strip)
    strip.resize(600, 300)
    strip.show()
    qtbot.waitExposed(strip)
    return strip


def show(strip: StorageStrip, t: torch.Tensor) -> None:
    strip.show_storage(read_window("x", t, 0, 1024))


def test_a_row_has_as_many_cells_as_fit_between_the_margins(strip) -> None:
    show(strip, torch.arange(500))
    for width in range(300, 420, 9):
        strip.resize(width, 300)
        left, last = strip.cell_rect(0), strip.cell_rect(strip.columns - 1)
        room = strip.viewport().width() - MARGIN
        assert left.left() == MARGIN and left.top() == last.top()
        assert last.right() <= room < last.right() + last.width()


def test_rows_end_at_the_longest_stride_that_fits(strip) -> None:
    fitting = (strip.viewport().width() - 2 * MARGIN) // 40
    assert 7 < fitting < 20
    for shape, stride in (((30, 20), 1), ((50, 7), 7), ((50, 1), 1), ((10, 3, 2), 6)):
        show(strip, torch.zeros(shape, dtype=torch.int8))
        assert strip.columns == fitting // stride * stride
    show(strip, torch.zeros(1, 5, dtype=torch.int8))  # all in one row
    assert strip.columns == fitting


def test_it_scrolls_to_the_last_row_and_column_and_no_further(strip) -> None:
    down, across = strip.verticalScrollBar(), strip.horizontalScrollBar()
    show(strip, torch.zeros(40, dtype=torch.int8))
    strip.set_wrap(4)  # ten rows
    seen = (strip.viewport().height() - MARGIN) // ROW_HEIGHT
    assert (down.minimum(), down.maximum(), down.pageStep()) == (0, 10 - seen, seen)
    assert (across.minimum(), across.maximum()) == (0, 0)
    strip.set_wrap(40)
    wide = 2 * MARGIN + 40 * strip.cell_rect(0).width()
    assert (down.minimum(), down.maximum()) == (0, 0)
    assert (across.minimum(), across.maximum()) == (0, wide - strip.viewport().width())
    assert across.singleStep() == strip.cell_rect(0).width()
    assert across.pageStep() == strip.viewport().width()
    show(strip, torch.zeros(0))
    assert down.maximum() == across.maximum() == 0


def test_a_cell_that_is_in_sight_is_chosen_where_it_stands(strip) -> None:
    show(strip, torch.zeros(400, dtype=torch.int8))
    strip.set_wrap(8)
    bar = strip.verticalScrollBar()
    bar.setValue(10)
    seen = strip.wanted()[1] // strip.columns - 3
    for row in range(10, 10 + seen):
        strip.show_cell(row * 8, None)
        assert bar.value() == 10
    strip.show_cell((10 + seen) * 8, None)  # one row further down
    assert bar.value() == 11
    strip.show_cell(9 * 8, None)
    assert bar.value() == 9
    bar.setValue(20)
    strip.show_cell(9 * 8, None)  # the same again: one may look elsewhere
    assert bar.value() == 20


def test_only_an_arrow_that_leads_to_a_cell_chooses_one(strip, qtbot) -> None:
    show(strip, torch.zeros(12, dtype=torch.int8))
    strip.set_wrap(5)
    chosen = []
    strip.cell_chosen.connect(chosen.append)
    for start, key, leads_to in (
        (0, Qt.Key.Key_Up, []),
        (4, Qt.Key.Key_Up, []),
        (5, Qt.Key.Key_Up, [0]),
        (0, Qt.Key.Key_Left, []),
        (6, Qt.Key.Key_Down, [11]),
        (7, Qt.Key.Key_Down, []),
        (11, Qt.Key.Key_Right, []),
    ):
        strip.show_cell(start, None)
        chosen.clear()
        qtbot.keyClick(strip, key)
        assert chosen == leads_to, (start, key)


def test_escape_clears_only_a_chosen_cell(strip, qtbot) -> None:
    cleared = []
    strip.cell_cleared.connect(lambda: cleared.append(1))
    show(strip, torch.zeros(3))
    qtbot.keyClick(strip, Qt.Key.Key_Escape)
    assert not cleared
    strip.show_cell(1, None)
    qtbot.keyClick(strip, Qt.Key.Key_Escape)
    assert cleared == [1]


def test_a_cell_tells_its_value_and_its_readers_under_the_pointer(strip, hover) -> None:
    show(strip, torch.arange(8)[::2])
    view = strip.viewport()
    assert hover(view, strip.cell_rect(2).center().toPoint()) == "Cell 2 holds 2\nRead by x[1]"
    assert hover(view, strip.cell_rect(3).center().toPoint()) == (
        "Cell 3 holds 3\nA gap: no element of x reads it."
    )
    assert hover(view, QPoint(3, 3)) == ""
    show(strip, torch.zeros(1).expand(2))
    assert strip.tooltip(0) == (
        "Cell 0 holds 0\nRead by x[0]\n"
        "2 elements read this one cell: a write to one changes all of them."
    )
    show(strip, torch.zeros(1).expand(1000))
    assert "99 or more elements read this one cell" in strip.tooltip(0)
    assert strip.tooltip(7) == "Cell 7"  # not known yet


def test_the_chosen_cell_and_the_place_are_let_go_with_another_tensor(strip) -> None:
    show(strip, torch.zeros(400, dtype=torch.int8))
    strip.set_wrap(8)
    strip.show_cell(200, (200,))
    assert strip.verticalScrollBar().value() > 0
    strip.show_storage(read_window("y", torch.zeros(400, dtype=torch.int8), 0, 1024))
    assert strip.cell is None and strip.verticalScrollBar().value() == 0


def test_the_first_row_in_sight_stays_when_the_width_changes(strip) -> None:
    show(strip, torch.zeros(4000, dtype=torch.int8))
    strip.verticalScrollBar().setValue(30)
    for width in (400, 600, 250):
        top = strip.verticalScrollBar().value() * strip.columns
        strip.resize(width, 300)
        first = strip.verticalScrollBar().value() * strip.columns
        assert first <= top < first + strip.columns


def test_the_menu_copies_the_strip(strip, menu_of) -> None:
    show(strip, torch.arange(3))
    QGuiApplication.clipboard().clear()
    menu_of(strip.viewport())["Copy picture"].trigger()
    copied = QGuiApplication.clipboard().image()
    assert copied.size() == strip.viewport().size() * copied.devicePixelRatio()
    ground = theme.current().color("surface")
    assert (
        copied.pixelColor(2, 2)
        == ground
        != copied.pixelColor((strip.cell_rect(0).topLeft().toPoint() + QPoint(6, 6)) * 2)
    )


@pytest.mark.parametrize("value", [1, 12.5, 123456.5, 1.25e30, float("nan")])
def test_cells_are_as_wide_as_their_longest_value_within_bounds(strip, value) -> None:
    show(strip, torch.tensor([value, 0.0]))
    shown = read_window("x", torch.tensor([value, 0.0]), 0, 2).values
    widest = max(text_width(text, font(12, mono=True)) for text in shown)
    width = strip.cell_rect(0).width()
    assert MIN_CELL_WIDTH <= width <= MAX_CELL_WIDTH
    assert width in (MIN_CELL_WIDTH, MAX_CELL_WIDTH) or widest + 11 <= width <= widest + 12
    assert (width == MIN_CELL_WIDTH) == (widest + 12 < MIN_CELL_WIDTH + 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda strip: strip.show_cell(3, (3,)),
        lambda strip: strip.show_cell(None, None),
        lambda strip: strip.color_by(0),
        lambda strip: strip.set_wrap(4),
        lambda strip: show(strip, torch.arange(500) + 1),
        lambda strip: strip.verticalScrollBar().setValue(1),
    ],
)
def test_each_change_is_painted(strip, qapp, qtbot, change) -> None:
    show(strip, torch.arange(500))
    strip.show_cell(7, (7,))
    qapp.processEvents()
    painted: list[QEvent.Type] = []

    class Watch(QObject):
        def eventFilter(self, _watched, event) -> bool:
            if event.type() == QEvent.Type.Paint:
                painted.append(event.type())
            return False

    watch = Watch()
    strip.viewport().installEventFilter(watch)
    change(strip)
    qapp.processEvents()
    assert painted
