"""What the charts look like, with all that they can show."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest

from tests.pictures import assert_same_picture
from widgets import theme
from widgets.charts.axes import Scale
from widgets.charts.heat_map import HeatMap
from widgets.charts.line_chart import Line, LineChart
from widgets.charts.stacked_chart import Layer, StackedChart


@pytest.fixture
def dark(qapp) -> None:
    theme.apply(qapp, theme.DARK)


@pytest.mark.parametrize("is_log", [False, True])
def test_a_heat_map(qtbot, dark, is_log) -> None:
    heat = HeatMap("heat", "Heat map", "A heat map.")
    qtbot.addWidget(heat)
    heat.resize(520, 320)
    y, x = np.mgrid[-6:7, -8:9].astype(float)
    values = 1 + x**2 + 3 * y**2
    values[2, 3], values[9, 4] = np.nan, -1.0
    heat.show_values(
        values, Scale(-8.0, 8.0), Scale(0.01, 100.0, True), ("across", "up", "what it means"),
        is_log=is_log, is_square=is_log, levels=4, marks=((0.0, 1.0), (4.0, 10.0)),
    )  # fmt: skip
    heat.point_at((3, 12))
    heat.show()
    assert_same_picture(heat, f"heat_map_{'log' if is_log else 'plain'}")


@pytest.mark.parametrize("is_log", [False, True])
def test_lines(qtbot, dark, is_log) -> None:
    chart = LineChart("chart", "Chart", "A chart.", "step")
    qtbot.addWidget(chart)
    chart.resize(460, 280)
    steps = tuple(range(0, 2000, 100))
    lines = (
        Line("a", "#0072b2", steps, tuple(500.0 / (1 + step) for step in steps)),
        Line(
            "b", "#d55e00", steps, tuple(nan if s in (300, 500, 1500) else s - 400 for s in steps)
        ),
        Line("c", "#009e73", steps, tuple(40.0 + step / 10 for step in steps)),
    )
    chart.show_lines(lines, "norm", is_log=is_log)
    chart.light("c")
    chart._point_at((1, 12))
    chart.show()
    assert_same_picture(chart, f"line_chart_{'log' if is_log else 'plain'}")


def test_areas(qtbot, dark) -> None:
    chart = StackedChart("stack", "Stack", "A stack.")
    qtbot.addWidget(chart)
    chart.resize(520, 300)
    x = (0, 4, 5, 9, 12, 20)
    layers = (
        Layer("a", "#0072b2", (1, 2, 3, 3, 2, 1)), Layer("b", "#d55e00", (0, 0, 2, 4, 1, 0)),
        Layer("c", "#009e73", (1, 1, 1, 1, 1, 1)),
    )  # fmt: skip
    bands = ((0, "forward"), (1, "hidden behind"), (3, "backward"), (5, "cut at the end of it"))
    lines = ((9, 9, 8, 8, 9, 9), (10.5,) * 6)
    chart.show_layers(x, layers, ("operation", "KiB"), bands, lines, 3)
    chart.point_at(2)
    chart.show()
    assert_same_picture(chart, "stacked_chart")
