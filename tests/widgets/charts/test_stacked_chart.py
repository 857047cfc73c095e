"""Areas on top of each other: their tops, the place under the pointer, keys."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest

from widgets.charts.stacked_chart import Layer, StackedChart


@pytest.fixture
def chart(qtbot) -> StackedChart:
    chart = StackedChart("stack", "Stack", "A stack.")
    qtbot.addWidget(chart)
    chart.resize(420, 260)
    layers = (Layer("a", "#ff0000", (1.0, 2.0, 3.0)), Layer("b", "#0000ff", (3.0, 0.0, 1.0)))
    chart.show_layers((10, 12, 20), layers, ("operation", "KiB"), ((0, "first"),), (), 2)
    chart.show()
    return chart


def test_a_layer_begins_where_the_one_below_ends(chart: StackedChart) -> None:
    assert chart.totals.tolist() == [4.0, 2.0, 4.0]
    image, axes = chart.grab().toImage(), chart.axes()

    def color(x: float, y: float) -> QColor:
        return QColor(image.pixelColor(axes.at(x, y).toPoint()))

    assert color(11, 0.5).red() > 150 > color(11, 2.0).red()
    assert color(11, 2.0).blue() > 150 and color(16, 1.5).red() > 150
    assert color(20.5, 2.5).red() > 150 and color(20.5, 3.5).blue() > 150


def test_the_place_under_the_pointer_is_the_newest_before_it(chart: StackedChart) -> None:
    places = [chart.place_at(chart.axes().at(x, 1.0)) for x in (10.5, 12.5, 19.0, 20.5)]
    assert places == [0, 1, 1, 2]
    assert chart.place_at(QPointF(0, 0)) == -1


def test_keys_begin_at_the_marked_place_and_enter_chooses(chart: StackedChart) -> None:
    pointed, chosen = [], []
    chart.pointed.connect(pointed.append)
    chart.chosen.connect(chosen.append)
    keys = (Qt.Key.Key_Left, Qt.Key.Key_Left, Qt.Key.Key_Return, Qt.Key.Key_Escape)
    for key in keys:
        QTest.keyClick(chart, key)
    assert pointed == [2, 1, -1] and chosen == [1]
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=chart.axes().at(11, 1.0).toPoint())
    assert chosen == [1, 0]


def test_keys_stop_at_the_ends_and_the_pointer_leaves(chart: StackedChart) -> None:
    pointed, chosen = [], []
    chart.pointed.connect(pointed.append)
    chart.chosen.connect(chosen.append)
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Escape, *[Qt.Key.Key_Right] * 2,
                *[Qt.Key.Key_Left] * 4, Qt.Key.Key_Enter):  # fmt: skip
        QTest.keyClick(chart, key)
    assert pointed == [2, 1, 0] and chosen == [0]
    for x in (12.5, 13.0, 20.5):
        QTest.mouseMove(chart, chart.axes().at(x, 1.0).toPoint())
    chart.leaveEvent(QEvent(QEvent.Type.Leave))
    assert pointed[3:] == [1, 2, -1]
    at = chart.axes().at(11, 1.0).toPoint()
    QTest.mouseClick(chart, Qt.MouseButton.RightButton, pos=at)
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=QPoint(2, 2))
    assert chosen == [0]


def test_the_axes_hold_areas_and_lines(chart: StackedChart, qtbot) -> None:
    axes = chart.axes()
    assert (axes.x.low, axes.x.high) == (10, 21)
    assert (axes.y.low, axes.y.high) == (0, pytest.approx(4.32))
    chart.point_at(1)
    chart.show_layers((0, 1), (), ("", ""), lines=((5.0, 10.0),))
    assert chart.place == -1 and chart.totals.tolist() == [0, 0]
    assert chart.axes().y.high == pytest.approx(10.8)
    chart.show_layers((0, 1), (), ("", ""))
    assert chart.axes().y.high == 1.0
    QTest.keyClick(chart, Qt.Key.Key_Right)
    assert chart.place == 0
    empty = StackedChart("stack", "Stack", "A stack.")
    qtbot.addWidget(empty)
    assert empty.place_at(QPointF(100, 100)) == -1
    QTest.keyClick(empty, Qt.Key.Key_Right)
    assert empty.place == -1


def test_the_title_of_a_short_stretch_hides_not_that_of_a_long_one(chart: StackedChart) -> None:
    bands = ((0, "forward"), (10, "a short stretch"), (12, "backward"), (50, "step"))
    chart.show_layers(range(60), (Layer("a", "#ff0000", (1.0,) * 60),), ("", ""), bands)
    axes, metrics = chart.axes(), chart.fontMetrics()
    titles = chart.titles_of_bands(axes, metrics)
    assert [title for _, title in titles] == ["forward", "backward", "step"]
    assert [left for left, _ in titles] == [axes.x_px(at) + 4 for at in (0, 12, 50)]
    chart.resize(1600, 260)
    assert len(chart.titles_of_bands(chart.axes(), metrics)) == 3  # it still lies on the next
