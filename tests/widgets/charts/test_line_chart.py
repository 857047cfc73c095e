"""Lines: gaps, the point under the pointer, keys."""

from __future__ import annotations

from math import nan

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtTest import QTest

from tests.pictures import taken
from widgets.charts.line_chart import Line, LineChart, point_text


@pytest.fixture
def chart(qtbot) -> LineChart:
    chart = LineChart("chart", "Chart", "A chart.", "step")
    qtbot.addWidget(chart)
    chart.resize(400, 240)
    lines = (
        Line("a", "#0072b2", (0, 1, 2, 3), (1.0, nan, 3.0, 4.0)),
        Line("b", "#d55e00", (0, 1, 2, 3), (4.0, 3.0, 2.0, 0.0)),
    )
    chart.show_lines(lines, "norm", nothing="Nothing yet.")
    chart.show()
    return chart


def test_a_number_that_is_not_finite_is_a_gap(chart: LineChart) -> None:
    first, second = chart.lines
    assert [len(part) for part in chart._parts(first, chart.axes())] == [1, 2]
    assert [len(part) for part in chart._parts(second, chart.axes())] == [4]
    chart.show_lines(chart.lines, "norm", is_log=True)
    assert [len(part) for part in chart._parts(second, chart.axes())] == [3]  # 0 has no logarithm


def test_the_point_nearest_to_the_pointer(chart: LineChart) -> None:
    at = chart.axes().at(2, 3.0)
    assert chart.nearest(at) == (0, 2)
    assert chart.nearest(chart.axes().at(1, 3.0)) == (1, 1)  # the other line has a gap there
    assert chart.nearest(QPointF(0, 0)) is None
    assert chart.nearest(chart.axes().at(1.5, 0.9)) is None
    assert point_text(chart.lines[0], 2, "step") == "a at step 2: 3"


def test_a_click_chooses_the_line_and_keys_go_along_it(chart: LineChart, qtbot) -> None:
    chosen, pointed = [], []
    chart.chosen.connect(chosen.append)
    chart.pointed.connect(lambda line, place: pointed.append((line and line.name, place)))
    at = chart.axes().at(2, 2.0).toPoint()
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=at)
    assert chosen == ["b"]
    chart._point_at(None)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Down, Qt.Key.Key_Return):
        QTest.keyClick(chart, key)
    assert pointed[-3:] == [("a", 3), ("a", 2), ("b", 2)] and chosen == ["b", "b"]
    QTest.keyClick(chart, Qt.Key.Key_Escape)
    assert pointed[-1] == (None, -1)


def test_a_chosen_line_is_drawn_strongly_and_nothing_says_why(chart: LineChart) -> None:
    before = taken(chart)
    chart.light("a")
    assert taken(chart) != before
    chart.show_lines((), "norm", nothing="Nothing yet.")
    assert taken(chart) != before


def test_without_a_point_keys_begin_at_the_end_of_the_first_line(chart: LineChart) -> None:
    chosen, pointed = [], []
    chart.chosen.connect(chosen.append)
    chart.pointed.connect(lambda line, place: pointed.append((line and line.name, place)))
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Escape, Qt.Key.Key_A):
        QTest.keyClick(chart, key)
    assert pointed == [] == chosen
    for key in (*[Qt.Key.Key_Right] * 2, *[Qt.Key.Key_Left] * 4, *[Qt.Key.Key_Up] * 2):
        QTest.keyClick(chart, key)
    assert pointed == [("a", 3), ("a", 2), ("a", 1), ("a", 0), ("b", 0), ("a", 0)]
    chart.show_lines((Line("none", "#000000", (), ()), chart.lines[1]), "norm")
    QTest.keyClick(chart, Qt.Key.Key_Down)
    QTest.keyClick(chart, Qt.Key.Key_Down)
    assert pointed[6:] == [("b", 3)] and chart.accessibleDescription() == "none, b"
    QTest.keyClick(chart, Qt.Key.Key_Enter)
    assert chosen == ["b"]


def test_the_pointer_leaves_a_line(chart: LineChart) -> None:
    pointed = []
    chart.pointed.connect(lambda line, place: pointed.append((line and line.name, place)))
    at = chart.axes().at(2, 3.0).toPoint()
    for place in (at, at + QPoint(2, 2), QPoint(2, 2)):
        QTest.mouseMove(chart, place)
    assert pointed == [("a", 2), (None, -1)]
    QTest.mouseMove(chart, at)
    chart.leaveEvent(QEvent(QEvent.Type.Leave))
    assert pointed[2:] == [("a", 2), (None, -1)]


def test_only_the_left_button_chooses_and_only_near_a_line(chart: LineChart) -> None:
    chosen = []
    chart.chosen.connect(chosen.append)
    at = chart.axes().at(2, 2.0).toPoint()
    QTest.mouseClick(chart, Qt.MouseButton.RightButton, pos=at)
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=QPoint(1, 1))
    assert chosen == []


@pytest.mark.parametrize(("off", "found"), [(23, (0, 0)), (-23, (0, 0)), (24, None), (-25, None)])
def test_a_line_is_near_up_to_a_distance(chart: LineChart, off, found) -> None:
    chart.show_lines((Line("a", "#000000", (0, 1), (1.0, 1.0)),), "norm")
    assert chart.nearest(chart.axes().at(0, 1.0) + QPointF(0, off)) == found


def test_the_axes_go_from_the_first_to_the_last_step(chart: LineChart) -> None:
    axes = chart.axes()
    assert (axes.x.low, axes.x.high) == (0, 3)
    assert (axes.y.low, axes.y.high) == pytest.approx((-0.2, 4.2))
    chart.show_lines((Line("a", "#000000", (5,), (1.0,)), Line("b", "#000000", (), ())), "norm")
    assert (chart.axes().x.low, chart.axes().x.high) == (4.5, 5.5)
    chart.show_lines((), "norm")
    assert (chart.axes().x.low, chart.axes().x.high) == (0, 1)
    assert point_text(None, 3, "step") == ""
