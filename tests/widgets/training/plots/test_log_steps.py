"""Logarithmic steps: where points are drawn, that no peak is lost, zoom, crosshair and marks."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPointF
from PySide6.QtWidgets import QToolButton

from widgets.training.plots.plots import LivePlot
from widgets.training.plots.pyramid import Pyramid
from widgets.training.plots.series import Overlay, Series
from widgets.training.plots.step_scale import seen


@pytest.fixture
def plot(qtbot) -> LivePlot:
    lines = (Series("loss", "train step", 0), Series("epoch", "epoch", 1, points=True))
    plot = LivePlot("Loss", "", lines)
    qtbot.addWidget(plot)
    plot.resize(640, 320)
    plot.show()
    button = plot.findChild(QToolButton, "plot_log_steps")
    assert button is not None
    button.click()
    return plot


def drawn(curve) -> tuple[list[float], list[float]]:
    x, y = curve.getData()
    return x.tolist(), y.tolist()


def test_points_curves_and_overlays_are_drawn_at_the_logarithms_of_their_steps(plot) -> None:
    plot.append("loss", [0, 1, 10, 1000], [5.0, 4.0, 3.0, 1.0])
    plot.append("epoch", [100, 1000], [2.0, 1.0])
    plot.show_overlays([Overlay("other", 3, [10, 100], [2.5, 1.5], False)])
    plot.refresh()
    canvas = plot._canvas
    x, y = drawn(canvas.curves["loss"])
    assert x[-3:] == [0.0, 1.0, 3.0] and y[-3:] == [4.0, 3.0, 1.0]  # step 0 has no logarithm
    assert [point.pos().x() for point in canvas._dots["epoch"].points()] == [2.0, 3.0]
    assert drawn(canvas._overlays[0]) == ([1.0, 2.0], [2.5, 1.5])
    (x0, x1), _ = canvas.box.viewRange()
    assert (x0, x1) == pytest.approx((0.0, 3.0), abs=1e-3)
    assert canvas.axes["bottom"].tickStrings([0.0, 3.0], 1.0, 1.0) == ["1", "1,000"]
    plot.set_log_steps(False)
    plot.refresh()
    assert drawn(canvas.curves["loss"])[0] == [0, 1, 10, 1000]
    assert canvas.x_range() == pytest.approx((0, 1000))


def test_the_crosshair_and_the_marks_stand_at_their_steps(plot) -> None:
    plot.append("loss", [1, 10, 100], [3.0, 2.0, 1.0])
    plot.show_marks([(10, "lr 0.1")])
    plot.refresh()
    canvas = plot._canvas
    assert [mark.value() for mark in canvas.marks.items] == [1.0]
    canvas.sceneObj.sigMouseMoved.emit(canvas.box.mapViewToScene(QPointF(1.1, 2.0)))
    assert plot.legend_values()["loss"] == 2.0 and canvas.crosshair.value() == 1.0
    plot.set_log_steps(False)
    assert [mark.value() for mark in canvas.marks.items] == [10]
    plot.refresh()
    canvas.sceneObj.sigMouseMoved.emit(canvas.box.mapViewToScene(QPointF(11.0, 2.0)))
    assert canvas.crosshair.value() == 10


def test_the_wheel_zooms_around_a_step_and_out_to_all_again(plot) -> None:
    plot.append("loss", np.arange(1, 10_001), np.linspace(5.0, 1.0, 10_000))
    plot.refresh()
    for _ in range(5):
        plot.zoom(1, 100.0)
        plot.refresh()
    x0, x1 = plot._canvas.x_range()
    assert x1 / x0 == pytest.approx(10 ** (4 / 1.25**5), rel=1e-3)
    assert np.log(100 / x0) / np.log(x1 / x0) == pytest.approx(0.5, rel=1e-3)
    for _ in range(60):
        plot.zoom(1, 100.0)
    x0, x1 = plot._canvas.x_range()
    assert 3 < x1 - x0 < 5  # the fewest steps that zooming shows
    for _ in range(60):
        plot.zoom(-1, 100.0)
    assert plot.following


@pytest.mark.parametrize("count", [50, 5_000, 200_000])
def test_no_peak_is_lost_at_either_end(count: int) -> None:
    """Each pixel of the picture has the lowest and the highest number of its steps, or near it."""
    random = np.random.default_rng(count)
    steps, values = np.arange(count, dtype=float), random.normal(size=count)
    values[[3, count // 2, count - 2]] = (50.0, -40.0, 60.0)
    points = Pyramid()
    points.extend(steps, values)
    x, y = seen(points, 1.0, count, 500, True)
    assert (np.diff(x) >= 0).all() and len(x) <= 4 * 520 + 6 * 20
    assert {50.0, -40.0, 60.0} <= set(y)
    assert set(steps[1:40]) <= set(x)  # the first steps stand apart, one by one


def test_a_series_with_nothing_after_step_zero_is_drawn(plot) -> None:
    plot.append("loss", [0], [1.0])
    plot.refresh()
    plot.zoom(1, 1.0)
    plot.refresh()
    assert np.isfinite(plot._canvas.box.viewRange()).all()


def test_labels_that_would_stand_on_each_other_are_left_out(plot) -> None:
    plot.append("loss", np.arange(100, 1001), np.ones(901))
    plot.refresh()
    axis = plot._canvas.axes["bottom"]
    values = [float(value) for value in np.log10(np.arange(1, 11) * 100)]
    labels = axis.tickStrings(values, 1.0, 1.0)
    assert labels[0] == "100" and labels[-1] == "1,000" and labels[1] == "200"
    assert "" in labels[5:-1]  # 900 stands beside 1,000
    pixels = [value * axis.width() for value, text in zip(values, labels, strict=True) if text]
    assert min(np.diff(pixels)) > 25
