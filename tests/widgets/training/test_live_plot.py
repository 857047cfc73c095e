from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPointF
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QLabel, QMenu, QToolButton

from widgets import theme
from widgets.save_picture import save_picture
from widgets.training.plots import LivePlot
from widgets.training.series import SMOOTHING, Series, Track


@pytest.fixture
def plot(qtbot) -> LivePlot:
    plot = LivePlot(
        "Loss",
        "nats",
        (Series("loss", "train step", 0), Series("validation", "validation", 1, points=True)),
    )
    qtbot.addWidget(plot)
    plot.resize(640, 320)
    plot.show()
    qtbot.waitExposed(plot)
    return plot


def drawn(plot: LivePlot, key: str) -> tuple[list[float], list[float]]:
    x, y = plot._canvas.curves[key].getData()
    return ([], []) if x is None else (x.tolist(), y.tolist())


def text_of(plot: LivePlot, name: str) -> str:
    label = plot.findChild(QLabel, name)
    assert label is not None
    return label.text() if label.isVisibleTo(plot) else ""


def test_draws_what_was_appended_at_the_next_refresh(plot: LivePlot, qtbot) -> None:
    plot.refresh()
    with qtbot.waitSignal(plot.changed):
        plot.append("loss", [1, 2, 3], [2.5, 2.25, 2.0])
    plot.append("validation", [3], [2.125])
    plot.refresh()
    assert drawn(plot, "loss") == ([1, 2, 3], [2.5, 2.25, 2.0])
    assert drawn(plot, "validation") == ([3], [2.125])
    assert plot.legend_values() == {"loss": 2.0, "validation": 2.125}
    assert "train step <b>2</b>" in text_of(plot, "plot_legend")


def test_points_get_dots_only_while_these_stand_side_by_side(plot: LivePlot) -> None:
    dots = plot._canvas._dots["validation"]
    plot.append("validation", range(10), np.ones(10))
    plot.refresh()
    assert len(dots.points()) == 10
    plot.append("validation", range(10, 5000), np.ones(4990))
    plot.refresh()
    assert len(dots.points()) == 0
    assert len(drawn(plot, "validation")[0]) > 100


def test_follows_until_the_reader_zooms_and_again_on_the_button(plot: LivePlot) -> None:
    plot.append("loss", range(100), np.linspace(1, 0, 100))
    plot.refresh()
    (x0, x1), (y0, y1) = plot._canvas.box.viewRange()
    assert x0 <= 0 and x1 >= 99 and y0 < 0 and y1 > 1
    plot._canvas.box.scaleBy((0.5, 0.5))
    plot._canvas.box.sigRangeChangedManually.emit([True, True])
    assert not plot.following
    kept = plot._canvas.box.viewRange()
    plot.append("loss", range(100, 200), np.linspace(0, 5, 100))
    plot.refresh()
    assert plot._canvas.box.viewRange() == kept
    follow = plot.findChild(QToolButton, "plot_follow")
    assert follow is not None and not follow.isChecked()
    follow.click()
    plot.refresh()
    assert plot.following
    (_, x1), (_, y1) = plot._canvas.box.viewRange()
    assert x1 >= 199 and y1 > 5


def test_many_points_draw_few_and_keep_the_spike(plot: LivePlot) -> None:
    y = np.zeros(200_000)
    y[123_456] = 7.0
    plot.append("loss", np.arange(len(y)), y)
    plot.refresh()
    x_drawn, y_drawn = drawn(plot, "loss")
    assert len(x_drawn) <= 4 * plot._canvas.box.width() + 6
    assert max(y_drawn) == 7.0
    assert plot._canvas.box.viewRange()[1][1] > 7.0


def test_smoothing_draws_the_average_over_the_raw_line(plot: LivePlot) -> None:
    y = [1.0, 3.0, 2.0, 5.0]
    plot.append("loss", range(4), y)
    button = plot.findChild(QToolButton, "plot_smooth")
    assert button is not None
    button.click()
    plot.refresh()
    # Weighted means, written out.
    weights = [[SMOOTHING ** (n - i) for i in range(n + 1)] for n in range(4)]
    expected = [sum(w * v for w, v in zip(row, y, strict=False)) / sum(row) for row in weights]
    assert drawn(plot, "loss")[1] == pytest.approx(expected)
    _, faint_y = plot._canvas.faint["loss"].getData()
    assert faint_y.tolist() == y
    assert plot._canvas.faint["loss"].isVisible()
    # The legend keeps the true number.
    assert plot.legend_values()["loss"] == 5.0


def test_points_are_never_smoothed(plot: LivePlot) -> None:
    plot.append("validation", [1, 2], [1.0, 0.0])
    plot.set_smoothing(True)
    plot.refresh()
    assert drawn(plot, "validation")[1] == [1.0, 0.0]


def test_log_scale_draws_logarithms_and_leaves_gaps(plot: LivePlot) -> None:
    plot.append("loss", range(4), [1.0, 0.01, 0.0, 100.0])
    button = plot.findChild(QToolButton, "plot_log")
    assert button is not None
    button.click()
    plot.refresh()
    assert plot.log
    _, y = drawn(plot, "loss")
    assert y[:2] == pytest.approx([0.0, -2.0]) and math.isnan(y[2])
    assert y[3] == pytest.approx(2.0)
    assert plot._canvas.axes["left"].tickStrings([-2.0, 0.0, 2.0], 1.0, 1.0) == ["0.01", "1", "100"]
    button.click()
    plot.refresh()
    assert drawn(plot, "loss")[1] == [1.0, 0.01, 0.0, 100.0]


def test_numbers_that_are_not_finite_are_gaps_and_are_told(plot: LivePlot) -> None:
    plot.append("loss", [1, 2, 3, 4], [1.0, math.inf, math.nan, 2.0])
    plot.refresh()
    assert [math.isnan(value) for value in drawn(plot, "loss")[1]] == [False, True, True, False]
    assert text_of(plot, "plot_notice") == "train step is NaN or infinite from step 2 on."
    plot.clear()
    plot.refresh()
    assert text_of(plot, "plot_notice") == ""


def test_crosshair_reads_the_nearest_step(plot: LivePlot) -> None:
    plot.append("loss", [10, 20, 30], [3.0, 2.0, 1.0])
    plot.append("validation", [30], [0.5])
    plot.point_at(18.7)
    assert plot.legend_values() == {"loss": 2.0, "validation": 0.5}
    assert "step 20" in text_of(plot, "plot_legend")
    assert plot._canvas.crosshair.isVisible()
    plot.point_at(None)
    assert plot.legend_values()["loss"] == 1.0
    assert "step" not in text_of(plot, "plot_legend").replace("train step", "")


def test_clear_forgets_all(plot: LivePlot) -> None:
    plot.append("loss", [1, 2], [1.0, 2.0])
    plot.refresh()
    plot.clear()
    plot.refresh()
    assert drawn(plot, "loss") == ([], [])
    assert plot.legend_values() == {"loss": None, "validation": None}
    plot.append("loss", [1], [4.0])
    plot.refresh()
    assert drawn(plot, "loss") == ([1], [4.0])


def test_csv_has_one_row_a_step(plot: LivePlot) -> None:
    plot.append("loss", [1, 2, 3], [0.5, math.nan, 0.25])
    plot.append("validation", [3], [0.75])
    assert plot.csv() == "step,loss,validation\n1,0.5,\n2,,\n3,0.25,0.75\n"


def test_copies_and_saves(plot: LivePlot, tmp_path: Path) -> None:
    plot.append("loss", range(50), np.linspace(1, 0, 50))
    menu = QMenu(plot)
    plot.fill_menu(menu)
    actions = {action.text(): action for action in menu.actions()}
    actions["Copy numbers"].trigger()
    assert QGuiApplication.clipboard().text().startswith("step,loss,validation\n0,1.0,\n")
    actions["Copy picture"].trigger()
    assert QGuiApplication.clipboard().image().width() == 1280
    save_picture(str(tmp_path / "loss.svg"), plot.size(), plot.paint)
    assert "<polyline" in (tmp_path / "loss.svg").read_text()


def test_a_line_on_the_grid_hides_the_grid(plot: LivePlot) -> None:
    plot.append("loss", range(10), [1.0] * 10)
    plot.refresh()
    image = plot.grab().toImage()
    scene_point = plot._canvas.box.mapViewToScene(QPointF(5.0, 1.0))
    at = plot._canvas.mapTo(plot, plot._canvas.mapFromScene(scene_point))
    column = {image.pixelColor(at.x(), at.y() + dy).name() for dy in (-2, -1, 0, 1, 2)}
    assert theme.current().series[0] in column


def test_right_click_opens_the_menu(plot: LivePlot, qtbot, monkeypatch) -> None:
    opened: list[list[str]] = []
    monkeypatch.setattr(
        QMenu, "popup", lambda menu, _: opened.append([a.text() for a in menu.actions()])
    )
    viewport = plot._canvas.viewport()
    point = viewport.rect().center()
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, point, viewport.mapToGlobal(point))
    QApplication.sendEvent(viewport, event)
    assert len(opened) == 1 and "Save numbers as CSV…" in opened[0]


def test_unknown_series_and_falling_steps_are_refused(plot: LivePlot) -> None:
    with pytest.raises(KeyError):
        plot.append("accuracy", [1], [1.0])
    plot.append("loss", [5], [1.0])
    with pytest.raises(ValueError, match="fall"):
        plot.append("loss", [4], [1.0])


def test_smoothing_starts_late_when_the_first_numbers_are_bad() -> None:
    track = Track()
    track.extend([1, 2, 3], [math.nan, 4.0, math.nan])
    assert math.isnan(track.smooth.y[0])
    assert track.smooth.y[1:].tolist() == pytest.approx([4.0, 4.0])
    assert track.first_bad == 1
