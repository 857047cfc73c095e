"""The table of numbers: which cells are in sight, and where they lie."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QFontMetrics
from PySide6.QtTest import QTest

from tests.pictures import taken
from widgets.theme import GRID, mono_font
from widgets.values.number_grid import HEADER_HEIGHT, ROW_HEIGHT, _ink
from widgets.values.number_table import NumberTable


@pytest.fixture
def table(qtbot) -> NumberTable:
    table = NumberTable()
    qtbot.addWidget(table)
    table.resize(420, 260)
    table.show()
    return table


def wide(letters: int) -> int:
    return QFontMetrics(mono_font(9)).horizontalAdvance("0" * letters)


def cell(letters: int) -> int:
    """The width of a cell with room for so many letters."""
    return wide(letters) + 2 * GRID + 2


def header(longest: int) -> int:
    return wide(1) * longest + 2 * GRID if longest else GRID


def test_cells_lie_side_by_side_below_and_beside_the_headers(table) -> None:
    table.show_size(1000, 1000, str, str)
    width = cell(5)
    for row, column in ((0, 0), (1, 0), (0, 1), (3, 2)):
        rect = table.cell_rect(row, column)
        assert rect.topLeft() == QPoint(
            header(3) + column * width, HEADER_HEIGHT + row * ROW_HEIGHT
        )
        assert (rect.width(), rect.height()) == (width, ROW_HEIGHT)
        assert table._cell_at(QPointF(rect.topLeft())) == (row, column)
        assert table._cell_at(QPointF(rect.bottomRight())) == (row, column)
    corner = table.cell_rect(0, 0).topLeft()
    assert table._cell_at(QPointF(corner - QPoint(1, 0))) is None
    assert table._cell_at(QPointF(corner - QPoint(0, 1))) is None
    table.verticalScrollBar().setValue(7)
    table.horizontalScrollBar().setValue(4)
    assert table.cell_rect(7, 4).topLeft() == corner
    assert table._cell_at(QPointF(corner)) == (7, 4)
    table.show_size(2, 2, lambda row: "", str)
    assert table.cell_rect(0, 0).x() == GRID
    assert table._cell_at(QPointF(table.cell_rect(1, 1).center())) == (1, 1)
    assert table._cell_at(QPointF(table.cell_rect(2, 1).center())) is None
    assert table._cell_at(QPointF(table.cell_rect(1, 2).center())) is None


def test_the_window_in_sight_is_told_when_it_changes(table) -> None:
    told = []
    table.window_changed.connect(told.append)
    view = table.viewport()
    table.show_size(1000, 3, str, str)
    width = cell(5)
    rows = (view.height() - HEADER_HEIGHT) // ROW_HEIGHT + 1
    assert told[-1] == table.cells_in_sight() == (0, rows, 0, 3)
    table.verticalScrollBar().setValue(20)
    assert told[-1] == (20, rows, 0, 3)
    table.verticalScrollBar().setValue(table.verticalScrollBar().maximum())
    assert told[-1] == (1000 - rows + 1, rows - 1, 0, 3)
    table.show_size(2, 1000, lambda row: "", str)
    columns = (table.viewport().width() - GRID) // width + 1
    assert told[-1] == (0, 2, 0, columns)
    count = len(told)
    table.resize(420, 300)
    assert len(told) > count
    table.show_empty("Reading …")
    assert told[-1] == (0, 0, 0, 0)


def test_scroll_bars_end_at_the_last_whole_cell(table) -> None:
    table.show_size(1000, 500, str, str)
    area = table.viewport().rect().adjusted(header(3), HEADER_HEIGHT, 0, 0)
    rows, columns = area.height() // ROW_HEIGHT, area.width() // table.cell_rect(0, 0).width()
    for bar, size, whole in (
        (table.verticalScrollBar(), 1000, rows), (table.horizontalScrollBar(), 500, columns),
    ):  # fmt: skip
        assert (bar.minimum(), bar.maximum()) == (0, size - whole)
        assert (bar.pageStep(), bar.singleStep()) == (whole, 1)
    table.show_size(3, 2, str, str)
    assert table.verticalScrollBar().maximum() == table.horizontalScrollBar().maximum() == 0


def test_columns_become_as_wide_as_the_longest_text(table) -> None:
    def width() -> int:
        """In letters."""
        return next(n for n in range(1, 50) if cell(n) == table.cell_rect(0, 0).width())

    table.show_size(4, 4, str, str)
    table.show_cells(0, 0, (("1", "12345"),))
    assert width() == 5
    table.show_cells(0, 0, (("1234567", "1"), ("123", "1")))
    assert width() == 7
    table.show_cells(0, 0, (("1", "2"),))
    assert width() == 7  # it becomes no narrower while the table is the same
    table.show_size(4, 4, str, str)
    assert width() == 7
    table.show_cells(0, 0, (("9" * 40,),))
    assert width() == 26
    table.show_size(4, 5, str, str)
    assert width() == 5
    table.set_shortening(lambda text: text[:6])
    table.show_cells(0, 0, (("9" * 40,),))
    assert width() == 6 and table.text_at(0, 0) == "9" * 40


def test_a_paint_measures_the_headers_once_however_many_cells_it_paints(table) -> None:
    asked: list[int] = []

    def row_label(row: int) -> str:
        asked.append(row)
        return str(row)

    table.show_size(100, 100, row_label, str)
    table.verticalScrollBar().setValue(30)
    _, rows, _, columns = table.cells_in_sight()
    assert rows * columns > 40
    asked.clear()
    table.viewport().repaint()
    assert sorted(asked) == [0, *range(30, 30 + rows), 99]  # the first and the last are measured


def test_only_the_cells_shown_last_are_known(table) -> None:
    table.show_size(10, 10, str, str)
    table.show_cells(2, 3, (("a", "b"), ("c", "d")))
    known = {
        (row, column): text
        for row in range(10)
        for column in range(10)
        if (text := table.text_at(row, column)) is not None
    }
    assert known == {(2, 3): "a", (2, 4): "b", (3, 3): "c", (3, 4): "d"}
    table.show_cells(0, 0, (("e",),))
    assert (table.text_at(0, 0), table.text_at(2, 3)) == ("e", None)
    table.show_size(10, 10, str, str)
    assert table.text_at(0, 0) is None


def test_a_selected_cell_comes_into_sight_and_no_further(table) -> None:
    table.show_size(100, 100, str, str)
    up, across = table.verticalScrollBar(), table.horizontalScrollBar()
    area = table.viewport().rect().adjusted(header(2), HEADER_HEIGHT, 0, 0)
    rows, columns = area.height() // ROW_HEIGHT, area.width() // table.cell_rect(0, 0).width()
    table.select((rows - 1, columns - 1))
    assert (up.value(), across.value()) == (0, 0)
    table.select((rows, columns + 1))
    assert (up.value(), across.value()) == (1, 2)
    table.select((rows, 2))
    assert (up.value(), across.value()) == (1, 2)
    table.select((0, 1))
    assert (up.value(), across.value()) == (0, 1)
    table.select((100, 0))
    assert table.selected() is None
    table.select((99, 99))
    assert table.selected() == (99, 99) and up.value() == up.maximum()
    table.show_size(100, 99, str, str)
    assert table.selected() is None


def test_a_click_selects_with_the_left_button_only(table) -> None:
    table.show_size(4, 4, str, str)
    chosen = []
    table.cell_selected.connect(lambda row, column: chosen.append((row, column)))
    at = table.cell_rect(1, 2).center()
    QTest.mouseClick(table.viewport(), Qt.MouseButton.MiddleButton, pos=at)
    assert chosen == [] and table.selected() is None
    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert chosen == [(1, 2)] == [table.selected()]
    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(2, 2))
    assert chosen == [(1, 2)]


def test_blocks_of_rows_are_parted_by_a_line(table) -> None:
    def lines(block: int) -> list[str]:
        table.show_size(6, 2, str, str, block=block)
        image = table.grab().toImage()
        x = table.cell_rect(0, 0).x() + 2
        corner = table.viewport().pos()
        return [
            image.pixelColor(corner + QPoint(x, table.cell_rect(row, 0).bottom())).name()
            for row in range(6)
        ]

    thin = lines(0)[0]
    assert lines(0) == [thin] * 6
    parted = lines(2)
    assert parted[::2] == [thin] * 3 and thin not in parted[1::2]
    parted = lines(3)
    assert [name == thin for name in parted] == [True, True, False] * 2


@pytest.mark.parametrize(
    ("text", "like"),
    [
        ("-0", "0"), ("False", "0"), ("0+0j", "0"), ("nan", "inf"), ("-inf", "inf"),
        ("1+infj", "inf"), ("0.5", "7"), ("True", "7"), ("00", "7"),
    ],
)  # fmt: skip
def test_zeros_are_muted_and_bad_numbers_stand_out(text, like) -> None:
    inks = {name: QColor(name) for name in ("muted", "error", "text", "border")}
    expected = {"0": inks["muted"], "inf": inks["error"], "7": inks["text"]}
    assert _ink(like, inks) is expected[like] is _ink(text, inks)
    assert _ink(None, inks) is inks["muted"]


def test_a_table_with_the_focus_has_a_frame(table, qtbot) -> None:
    table.show_size(2, 2, str, str)
    table.clearFocus()
    without = taken(table)
    table.activateWindow()
    table.setFocus()
    qtbot.waitUntil(table.hasFocus)
    assert taken(table) != without
