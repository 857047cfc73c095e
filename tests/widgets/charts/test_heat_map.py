"""Colours of numbers, lines of equal numbers, and the cell under the pointer."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest

from widgets.charts.axes import Scale
from widgets.charts.heat_map import HeatMap, contour
from widgets.colormap import sequential

VALUES = np.array([[0.0, 1.0, 2.0], [10.0, np.nan, 100.0]])


@pytest.fixture
def heat(qtbot) -> HeatMap:
    heat = HeatMap("heat", "Heat map", "A heat map.")
    qtbot.addWidget(heat)
    heat.resize(420, 300)
    heat.show_values(VALUES, Scale(0.0, 3.0), Scale(-1.0, 1.0), ("x", "y", "loss"))
    heat.show()
    return heat


def color_in(heat: HeatMap, row: int, column: int) -> tuple[int, int, int]:
    place = heat.cell_rect(row, column).center().toPoint()
    color = QColor(heat.grab().toImage().pixelColor(place))
    return color.red(), color.green(), color.blue()


def test_row_0_is_at_the_bottom_and_the_ends_have_the_ends_of_the_colours(heat: HeatMap) -> None:
    table = [tuple(map(int, row)) for row in sequential()]
    assert color_in(heat, 0, 0) == table[0] and color_in(heat, 1, 2) == table[-1]
    assert color_in(heat, 1, 1) not in table
    assert heat.span() == (0.0, 100.0)


def test_a_logarithmic_scale_has_no_colour_for_zero(heat: HeatMap) -> None:
    heat.show_values(VALUES, Scale(0.0, 3.0), Scale(-1.0, 1.0), ("x", "y", "z"), is_log=True)
    assert heat.span() == (0.0, 2.0)
    table = [tuple(map(int, row)) for row in sequential()]
    assert color_in(heat, 0, 0) not in table
    assert color_in(heat, 1, 0) == table[round(0.5 * 255)]


def test_the_cell_under_the_pointer_and_by_keys(heat: HeatMap) -> None:
    pointed = []
    heat.pointed.connect(lambda row, column: pointed.append((row, column)))
    assert heat.cell_at(heat.cell_rect(1, 2).center()) == (1, 2)
    assert heat.cell_at(QPointF(1, 1)) is None
    for key in (Qt.Key.Key_Left, Qt.Key.Key_Left, Qt.Key.Key_Left, Qt.Key.Key_Down):
        QTest.keyClick(heat, key)
    assert pointed == [(1, 1), (1, 0), (0, 0)]
    QTest.keyClick(heat, Qt.Key.Key_Escape)
    assert pointed[-1] == (-1, -1)


def test_a_contour_of_a_cone_is_a_circle() -> None:
    """The pieces lie at the radius that has this level, but for the straight lines' error."""
    y, x = np.mgrid[-10:11, -10:11].astype(float)
    pieces = contour(np.hypot(x, y), 6.0)
    ends = np.array([end for piece in pieces for end in piece]) - 10
    assert len(pieces) > 40
    np.testing.assert_allclose(np.hypot(*ends.T), 6.0, atol=0.03)
    assert contour(np.full((3, 3), np.nan), 1.0) == []


def test_keys_go_from_the_middle_and_stop_at_the_edges(heat: HeatMap, qtbot) -> None:
    pointed = []
    heat.pointed.connect(lambda row, column: pointed.append((row, column)))
    for key in (Qt.Key.Key_Escape, Qt.Key.Key_Up, *[Qt.Key.Key_Right] * 3, Qt.Key.Key_Up,
                *[Qt.Key.Key_Down] * 2):  # fmt: skip
        QTest.keyClick(heat, key)
    assert pointed == [(1, 1), (1, 2), (0, 2)]
    heat.leaveEvent(QEvent(QEvent.Type.Leave))
    assert pointed[-1] == (-1, -1) and heat.cell is None
    empty = HeatMap("heat", "Heat map", "A heat map.")
    qtbot.addWidget(empty)
    QTest.keyClick(empty, Qt.Key.Key_Up)
    assert empty.cell is None and empty.cell_at(QPointF(100, 100)) is None
    assert empty.span() == (0.0, 0.0)


def test_the_pointer_tells_each_cell_once(heat: HeatMap) -> None:
    pointed = []
    heat.pointed.connect(lambda row, column: pointed.append((row, column)))
    for row, column in ((0, 0), (0, 0), (0, 1), (1, 2)):
        center = heat.cell_rect(row, column).center().toPoint()
        QTest.mouseMove(heat, center)
        QTest.mouseMove(heat, center + QPoint(1, 1))
    QTest.mouseMove(heat, QPoint(2, 2))
    assert pointed == [(0, 0), (0, 1), (1, 2), (-1, -1)]


def test_cells_fill_the_area(heat: HeatMap) -> None:
    area = heat.axes().area
    whole = heat.cell_rect(0, 0) | heat.cell_rect(1, 2)
    assert whole.topLeft() == area.topLeft()
    assert (whole.right(), whole.bottom()) == pytest.approx((area.right(), area.bottom()))
    for row in range(2):
        for column in range(3):
            rect = heat.cell_rect(row, column).adjusted(0.5, 0.5, -0.5, -0.5)
            for corner in (rect.topLeft(), rect.bottomRight()):
                assert heat.cell_at(corner) == (row, column)
    for beyond in (QPointF(-2, 2), QPointF(2, -2)):
        assert heat.cell_at(area.topLeft() + beyond) is None
    for beyond in (QPointF(2, -2), QPointF(-2, 2)):
        assert heat.cell_at(area.bottomRight() + beyond) is None


def test_a_cell_that_is_gone_is_not_pointed_at(heat: HeatMap) -> None:
    heat.point_at((1, 2))
    scales = Scale(0.0, 3.0), Scale(-1.0, 1.0), ("x", "y", "z")
    heat.show_values(VALUES, *scales)
    assert heat.cell == (1, 2)
    heat.show_values(VALUES[:, :2], *scales, levels=3)
    assert heat.cell is None
    assert heat._levels.tolist() == [2.5, 5.0, 7.5]
    heat.show_values(np.ones((2, 2)), *scales, levels=3)
    assert heat._levels.size == 0
    assert heat.axes().area.width() != heat.axes().area.height()
    heat.show_values(VALUES, *scales, is_square=True)
    area = heat.axes().area
    assert area.width() == area.height()
    heat.resize(600, 200)
    assert heat.axes().area.height() == heat.axes().area.width() < area.width()


def test_a_contour_crosses_where_straight_lines_have_the_level() -> None:
    assert contour(np.array([[0.0, 0.0], [4.0, 4.0]]), 1.0) == [((0.25, 1.0), (0.25, 0.0))]
    assert contour(np.array([[0.0, 4.0], [0.0, 4.0]]), 3.0) == [((0.0, 0.75), (1.0, 0.75))]
    assert contour(np.array([[0.0, 4.0], [4.0, 0.0]]), 2.0) == [
        ((0.0, 0.5), (0.5, 1.0)), ((1.0, 0.5), (0.5, 0.0)),
    ]  # fmt: skip
    for values in ([[0.0, 4.0], [4.0, np.inf]], [[5.0, 6.0], [7.0, 8.0]], [[0.0, 1.0], [2.0, 3.0]]):
        assert contour(np.array(values), 4.0) == []
    assert len(contour(np.array([[4.0, 4.0, 9.0], [5.0, 6.0, 9.0]]), 5.5)) == 2
