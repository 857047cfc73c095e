"""A live plot: following, zooming, smoothing, the legend, and files."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QGuiApplication,
    QImage,
    QTextDocument,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QMenu, QMessageBox, QToolButton

from widgets import theme
from widgets.save_picture import image_of, save_picture
from widgets.training.plots.legend import Legend
from widgets.training.plots.plots import LivePlot
from widgets.training.plots.ranges import MARGIN
from widgets.training.plots.series import CAPACITY, SMOOTHING, BadSteps, Series, Track


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


def legend_of(plot: LivePlot) -> list[str]:
    """What the legend says of each line."""
    rich = QTextDocument()
    rich.setHtml(text_of(plot, "plot_legend"))
    parts = rich.toPlainText().replace("\xa0", " ").split("●")[1:]
    return [part.strip() for part in parts]


def test_draws_what_was_appended_at_the_next_refresh(plot: LivePlot, qtbot) -> None:
    plot.refresh()
    with qtbot.waitSignal(plot.changed):
        plot.append("loss", [1, 2, 3], [2.5, 2.25, 2.0])
    plot.append("validation", [3], [2.125])
    plot.refresh()
    assert drawn(plot, "loss") == ([1, 2, 3], [2.5, 2.25, 2.0])
    assert drawn(plot, "validation") == ([3], [2.125])
    assert plot.legend_values() == {"loss": 2.0, "validation": 2.125}
    assert legend_of(plot) == ["train step 2", "validation 2.125"]


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
    assert plot._canvas.box.viewRange()[0] == kept[0]
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
    words = "train step was NaN or infinite at 2 steps, first at 2."
    assert text_of(plot, "plot_notice") == words
    assert plot.findChild(QLabel, "plot_notice").toolTip() == words
    plot.clear()
    plot.refresh()
    assert text_of(plot, "plot_notice") == ""


def test_crosshair_reads_the_nearest_step(plot: LivePlot) -> None:
    plot.append("loss", [10, 20, 30], [3.0, 2.0, 1.0])
    plot.append("validation", [30], [0.5])
    plot.point_at(18.7)
    assert plot.legend_values() == {"loss": 2.0, "validation": 0.5}
    assert text_of(plot, "plot_step") == "step 20"
    assert plot._canvas.crosshair.isVisible()
    plot.point_at(None)
    assert plot.legend_values()["loss"] == 1.0
    assert text_of(plot, "plot_step") == ""


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


@pytest.mark.parametrize("at_once", [1, 7, 127, 128, 129, 1000])
def test_the_average_is_that_of_one_number_after_the_other(at_once: int) -> None:
    """However many points come together, and wherever gaps are among them."""
    numbers = np.random.default_rng(0)
    values = np.where(numbers.random(1000) < 0.1, np.nan, 10 * numbers.normal(size=1000))
    track, total, weight, expected = Track(), 0.0, 0.0, []
    for start in range(0, 1000, at_once):
        stop = min(1000, start + at_once)
        track.extend(np.arange(start, stop), values[start:stop])
    for value in values:
        if not math.isnan(value):
            total, weight = 0.9 * total + 0.1 * value, 0.9 * weight + 0.1
        expected.append(total / weight if weight else math.nan)
    np.testing.assert_allclose(track.smooth.y, expected, rtol=1e-12, atol=1e-12)


def test_the_average_forgets_a_huge_number_as_slowly_as_one_by_one() -> None:
    values = np.ones(8000)
    values[0] = 1e300
    track, total = Track(), 0.0
    track.extend(range(8000), values)
    expected = []
    for count, value in enumerate(values, 1):
        total = 0.9 * total + 0.1 * value
        expected.append(total / (1 - 0.9**count))
    np.testing.assert_allclose(track.smooth.y, expected, rtol=1e-11)


def test_smoothing_starts_late_when_the_first_numbers_are_bad() -> None:
    track = Track()
    track.extend([1, 2, 3], [math.nan, 4.0, math.nan])
    assert math.isnan(track.smooth.y[0])
    assert track.smooth.y[1:].tolist() == pytest.approx([4.0, 4.0])
    assert track.bad is not None and track.bad.first == 1


@pytest.mark.parametrize(
    ("steps", "shown"),
    [
        ([], (0, 1)),
        ([7], (6.5, 7.5)),
        ([0, 100], (0, 100)),
        ([3, 104], (3, 113)),  # the range grows by tenths of its magnitude
        ([1, 9], (1, 9)),
    ],
)
def test_all_steps_are_in_sight_with_room_for_a_few_more(plot: LivePlot, steps, shown) -> None:
    plot.append("loss", steps, [1.0] * len(steps))
    plot.refresh()
    assert plot._canvas.x_range() == pytest.approx(shown)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([1.0, 3.0], (1 - 2 * MARGIN, 3 + 2 * MARGIN)),
        ([2.0, 2.0], (1.8, 2.2)),
        ([-5.0, -5.0], (-5.5, -4.5)),
        ([math.nan, 3.0, math.inf, 1.0], (1 - 2 * MARGIN, 3 + 2 * MARGIN)),
    ],
)
def test_the_height_fits_the_finite_numbers(plot: LivePlot, values, shown) -> None:
    plot.append("loss", range(len(values)), values)
    plot.refresh()
    assert plot._canvas.box.viewRange()[1] == pytest.approx(shown)


def test_both_series_decide_the_range(plot: LivePlot) -> None:
    plot.append("loss", [5, 10], [1.0, 2.0])
    plot.append("validation", [2, 22], [0.0, 1.0])
    plot.refresh()
    assert plot._canvas.x_range() == pytest.approx((2, 22))
    assert plot._canvas.box.viewRange()[1] == pytest.approx((-2 * MARGIN, 2 + 2 * MARGIN))


def test_the_smoothed_and_the_raw_line_are_both_in_sight(plot: LivePlot) -> None:
    plot.append("loss", range(3), [0.0, 10.0, 0.0])
    plot.set_smoothing(True)
    plot.refresh()
    low, high = plot._canvas.box.viewRange()[1]
    assert low < 0 and high > 10
    plot.set_smoothing(False)
    plot.refresh()
    assert not plot._canvas.faint["loss"].isVisible()


def test_the_buttons_tell_whose_they_are_and_what_they_do(plot: LivePlot, qtbot) -> None:
    names = ("plot_smooth", "plot_log", "plot_log_steps", "plot_follow")
    buttons = [plot.findChild(QToolButton, name) for name in names]
    assert [button.accessibleName() for button in buttons] == [
        "Loss: Smooth",
        "Loss: Logarithmic scale",
        "Loss: Logarithmic steps",
        "Loss: Follow the newest steps and fit the height",
    ]
    assert [button.isChecked() for button in buttons] == [False, False, False, True]
    assert all(button.isVisible() for button in buttons)
    plot.set_log(True)
    plot.set_smoothing(True)
    assert [button.isChecked() for button in buttons] == [True, True, False, True]
    buttons[3].click()
    assert not plot.following and not buttons[3].isChecked()
    points = LivePlot("Epochs", "", (Series("a", "a", points=True),))
    qtbot.addWidget(points)
    points.show()
    assert not points.findChild(QToolButton, "plot_smooth").isVisible()


def test_a_change_asks_for_one_painting(plot: LivePlot) -> None:
    plot.refresh()
    asked = []
    plot.changed.connect(lambda: asked.append(1))
    plot.append("loss", [1, 2], [1.0, 2.0])
    plot.append("loss", [3], [1.0])
    assert len(asked) == 1
    plot.refresh()
    for change in (
        lambda: plot.set_log(True),
        lambda: plot.set_smoothing(True),
        plot.follow,
        plot.clear,
        lambda: plot._canvas.box.setXRange(0, 0.5),
        lambda: plot.resize(500, 320),
    ):
        asked.clear()
        change()
        QApplication.processEvents()
        assert len(asked) == 1
        plot.refresh()


def test_the_pointer_reads_the_plot_and_leaving_it_the_newest(plot: LivePlot) -> None:
    plot.append("loss", [0, 10, 20], [3.0, 2.0, 1.0])
    plot.refresh()
    canvas = plot._canvas
    scene = canvas.sceneObj
    scene.sigMouseMoved.emit(canvas.box.mapViewToScene(QPointF(9.0, 2.0)))
    assert plot.legend_values()["loss"] == 2.0 and canvas.crosshair.value() == 10
    scene.sigMouseMoved.emit(QPointF(1, 1))  # over the numbers of the axis
    assert plot.legend_values()["loss"] == 1.0 and not canvas.crosshair.isVisible()
    plot.point_at(0)
    assert plot.legend_values()["loss"] == 3.0
    QApplication.sendEvent(plot, QEvent(QEvent.Type.Leave))
    assert plot.legend_values()["loss"] == 1.0
    plot.clear()
    plot.point_at(3)
    assert plot.legend_values()["loss"] is None and not canvas.crosshair.isVisible()


def test_dragging_lets_go_of_the_newest_steps(plot: LivePlot) -> None:
    plot.append("loss", range(10), range(10))
    plot.refresh()
    plot._canvas.box.sigRangeChangedManually.emit([True, True])
    assert not plot.following


def test_the_legend_says_each_name_and_what_is_no_number(plot: LivePlot) -> None:
    plot.append("loss", [1, 2], [1.0, math.nan])
    plot.append("validation", [2], [0.5])
    plot.refresh()
    told = text_of(plot, "plot_legend")
    assert legend_of(plot) == ["train step not finite", "validation 0.5"]
    assert all(color in told for color in theme.current().series[:2])
    plot.point_at(1)
    assert text_of(plot, "plot_step") == "step 1"
    plot.point_at(None)
    plot.clear()
    plot.refresh()
    assert text_of(plot, "plot_legend") == "&nbsp;"


def test_the_caption_is_seen_only_when_it_says_something(plot: LivePlot) -> None:
    assert text_of(plot, "plot_caption") == ""
    plot.set_caption("parameters 4 KiB")
    assert text_of(plot, "plot_caption") == "parameters 4 KiB"
    plot.set_caption("")
    assert text_of(plot, "plot_caption") == ""


def test_the_grid_and_the_lines_follow_the_theme(plot: LivePlot, qapp) -> None:
    plot.append("loss", range(10), range(10))
    plot.append("validation", range(10), range(10))
    for colors in (theme.DARK, theme.LIGHT):
        theme.apply(qapp, colors)
        plot.refresh()
        seen = {
            plot._canvas.curves["loss"].opts["pen"].color().name(),
            plot._canvas._dots["validation"].opts["brush"].color().name(),
            plot._canvas.backgroundBrush().color().name(),
        }
        assert seen == {colors.series[0], colors.series[1], colors.surface}
        line, ground = QColor(colors.series[0]), QColor(colors.surface)
        faint = plot._canvas.faint["loss"].opts["pen"].color()
        for part in (QColor.red, QColor.green, QColor.blue):
            assert abs(part(faint) - 0.35 * part(line) - 0.65 * part(ground)) <= 1
        assert colors.series[0] in text_of(plot, "plot_legend")


@pytest.mark.parametrize("step", [1, 2.5])
def test_steps_are_written_as_numbers_are_read(plot: LivePlot, step) -> None:
    plot.append("loss", [step], [0.5])
    assert plot.csv() == f"step,loss,validation\n{step},0.5,\n"


def test_numbers_are_saved_where_one_says_or_one_is_told_why_not(
    plot: LivePlot, tmp_path: Path, monkeypatch
) -> None:
    plot.append("loss", [1], [0.5])
    menu = QMenu(plot)
    plot.fill_menu(menu)
    save = next(action for action in menu.actions() if action.text().startswith("Save numbers"))
    asked, warned = [], []
    path = str(tmp_path / "numbers.csv")
    monkeypatch.setattr(
        QFileDialog, "getSaveFileName", lambda *given: (asked.append(given[2]), (path, ""))[1]
    )
    monkeypatch.setattr(QMessageBox, "warning", lambda *given: warned.append(given[2]))
    save.trigger()
    assert asked == ["loss.csv"] and not warned
    assert (tmp_path / "numbers.csv").read_text() == plot.csv()
    path = str(tmp_path / "missing" / "numbers.csv")
    save.trigger()
    assert len(warned) == 1 and "missing" in warned[0]
    path = ""
    save.trigger()
    assert len(warned) == 1


def test_the_legend_explains_each_line_by_its_tip_or_its_title(qtbot) -> None:
    plot = LivePlot("A", "", (Series("a", "step", tip="step: of one batch"), Series("b", "mean")))
    qtbot.addWidget(plot)
    legend = plot.findChild(QLabel, "plot_legend")
    assert legend is not None and legend.toolTip() == "step: of one batch\nmean"


# -- what a hand and a diverging run do ------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (([1.0, math.inf],), "is NaN or infinite from step 1 on"),
        (([1.0, math.nan], [math.inf, math.nan]), "is NaN or infinite from step 1 on"),
        (([1.0, math.nan], [2.0]), "was NaN or infinite at step 1"),
        (([math.nan, 1.0], [2.0, math.nan]), "was NaN or infinite at 2 steps, first at 0"),
    ],
)
def test_the_notice_says_whether_numbers_came_back(plot: LivePlot, parts, words) -> None:
    step = 0
    for part in parts:
        plot.append("loss", range(step, step + len(part)), part)
        step += len(part)
    plot.refresh()
    assert text_of(plot, "plot_notice") == f"train step {words}."


@pytest.mark.parametrize(
    ("steps", "values", "words"),
    [
        ([155, 161], [1.0, math.nan], "became NaN or infinite between steps 156 and 161"),
        ([161], [math.nan], "became NaN or infinite between steps 1 and 161"),
        (
            [1, 5, 6, 7],
            [1.0, math.inf, math.nan, 1.0],
            "was NaN or infinite at 2 steps or more, first between steps 2 and 5",
        ),
        ([1, 2, 5], [1.0, math.inf, 1.0], "was NaN or infinite at 1 step or more, first at 2"),
    ],
)
def test_a_step_without_a_point_may_have_been_the_first(
    plot: LivePlot, steps: list[int], values: list[float], words: str
) -> None:
    for step, value in zip(steps, values, strict=True):
        plot.append("loss", [step], [value])
    plot.refresh()
    assert text_of(plot, "plot_notice") == f"train step {words}."
    plot.tell_bad("loss", BadSteps(141, 141, 860, False, 141))  # whatever is drawn
    plot.refresh()
    assert text_of(plot, "plot_notice") == "train step is NaN or infinite from step 141 on."
    plot.clear()
    plot.refresh()
    assert text_of(plot, "plot_notice") == ""


def test_a_number_that_is_not_finite_leaves_the_lines_their_height(plot: LivePlot, qapp) -> None:
    plot.resize(240, 160)
    plot.append("loss", [1, 2], [1.0, 2.0])
    plot.refresh()
    qapp.processEvents()
    before = plot._canvas.height()
    plot.append("loss", [3, 4], [math.inf, math.nan])
    plot.refresh()
    qapp.processEvents()
    notice = plot.findChild(QLabel, "plot_notice")
    assert notice is not None and notice.toolTip() == notice.text()
    assert before - plot._canvas.height() <= notice.fontMetrics().height() + 2


def test_a_number_between_gaps_is_a_dot(plot: LivePlot) -> None:
    plot.append("loss", [1, 2, 3, 4, 5], [2.5, math.nan, 1.0, 1.0, math.nan])
    plot.refresh()
    assert [point.pos().x() for point in plot._canvas._dots["loss"].points()] == [1.0]


def test_ticks_that_lie_close_have_different_labels(plot: LivePlot) -> None:
    axis = plot._canvas.axes["left"]
    assert axis.tickStrings([436.105, 436.11, 436.115, 436.12], 1.0, 0.005) == [
        "436.105", "436.11", "436.115", "436.12",
    ]  # fmt: skip
    assert axis.tickStrings([1.0, 2.0], 1.0, 1.0) == ["1", "2"]


@pytest.mark.parametrize("height", [20, 40, 100])
def test_labels_of_a_low_plot_stand_apart(plot: LivePlot, height: int) -> None:
    axis = plot._canvas.axes["left"]
    for low, high in ((0.0455, 0.0545), (0.0, 7.3), (-3e6, 8e6)):
        ((spacing, offset), *_) = axis.tickSpacing(low, high, height)
        assert offset == 0 and spacing / (high - low) * height >= 11
        assert round(spacing / 10 ** math.floor(math.log10(spacing) + 1e-9), 9) in (1, 2, 5)


def test_labels_of_a_logarithmic_axis_stand_apart_and_powers_of_ten_come_first(
    plot: LivePlot,
) -> None:
    plot.set_log(True)
    axis = plot._canvas.axes["left"]
    for first, last in ((0.0, 4.0), (1.0, 1.8)):
        axis.setRange(first, last)
        near, away = (px / axis.height() * (last - first) for px in (12, 16))  # a label has 14
        ten = math.ceil(first)
        shown = axis.tickStrings([ten - away, ten - near, ten, ten + near, ten + away], 1.0, 1.0)
        assert [bool(text) for text in shown] == [True, False, True, False, True]
    axis.setRange(2.0, 2.0)
    assert axis.tickStrings([2.0], 1.0, 1.0) == ["100"]


def turn_wheel(plot: LivePlot, notches: int, share: float = 0.5) -> None:
    x0, x1 = plot._canvas.x_range()
    plot._canvas.wheel_turned.emit(float(notches), x0 + share * (x1 - x0))
    plot.refresh()


def test_the_wheel_zooms_the_steps_and_never_out_of_the_data(plot: LivePlot) -> None:
    y = np.linspace(5.0, 0.0, 1000)
    plot.append("loss", range(1000), y)
    plot.refresh()
    for _ in range(3):
        turn_wheel(plot, 1, share=0.25)
    x0, x1 = plot._canvas.x_range()
    assert not plot.following and x1 - x0 == pytest.approx(1000 / 1.25**3, rel=0.01)
    for _ in range(60):
        turn_wheel(plot, 1, share=0.9)
        x0, x1 = plot._canvas.x_range()
        (_, _), (y0, y1) = plot._canvas.box.viewRange()
        assert 0 <= x0 < x1 <= 1000
        seen = y[max(0, math.ceil(x0)) : math.floor(x1) + 1]
        assert len(seen) and y0 <= seen.min() and seen.max() <= y1
    for _ in range(60):
        turn_wheel(plot, -1)
    assert plot.following


def test_the_wheel_reaches_the_plot(plot: LivePlot, qapp) -> None:
    plot.append("loss", range(100), np.ones(100))
    plot.refresh()
    viewport = plot._canvas.viewport()
    middle = QPointF(viewport.rect().center())
    event = QWheelEvent(
        middle, viewport.mapToGlobal(middle), QPoint(), QPoint(0, 120),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(viewport, event)
    plot.refresh()
    x0, x1 = plot._canvas.x_range()
    assert not plot.following and x1 - x0 == pytest.approx(99 / 1.25, rel=0.05)


def test_a_picture_has_neither_buttons_nor_crosshair(plot: LivePlot) -> None:
    plot.append("loss", range(10), np.linspace(1, 0, 10))
    plot.refresh()

    def picture() -> QImage:
        return image_of(plot.size(), plot.paint)

    before = picture()
    plot.point_at(5)
    assert picture() == before
    ground = QColor(theme.current().surface)
    for button in plot.findChildren(QToolButton):
        assert button.isVisible()
        box = button.geometry()
        points = (box.topLeft(), box.center(), box.bottomRight())
        assert {before.pixelColor(point * 2).name() for point in points} == {ground.name()}


@pytest.mark.parametrize(
    ("width", "title", "names", "rows"),
    [
        (180, "train step", ["step ", "validation "], 2),
        (280, "train step", ["step ", "validation "], 1),
        (640, "train step", ["train step ", "validation "], 1),
        (180, "a_name_" * 9, ["", ""], 1),
    ],
)
def test_the_legend_fits_its_plot(qtbot, qapp, width, title, names, rows) -> None:
    plot = LivePlot("A", "", (Series("a", title, 0), Series("b", "validation", 1)))
    qtbot.addWidget(plot)
    plot.append("a", [1, 2], [0.123456, 0.0123456])
    plot.append("b", [2], [0.234567])
    plot.resize(width, 200)
    plot.show()
    for _ in range(2):  # the rows of the legend take height of the plot
        qapp.processEvents()
        plot.refresh()
    legend = plot.findChild(QLabel, "plot_legend")
    assert legend is not None
    whole = QTextDocument()
    whole.setDefaultFont(legend.font())
    whole.setDocumentMargin(0)
    whole.setHtml(legend.text())
    whole.setTextWidth(legend.width())
    assert whole.idealWidth() <= legend.width()
    assert legend_of(plot) == [f"{names[0]}0.01235", f"{names[1]}0.2346"]
    assert legend.height() // legend.fontMetrics().height() == rows


def test_rows_of_the_legend_stay_until_the_plot_is_resized(plot: LivePlot, qapp) -> None:
    legend = plot.findChild(QLabel, "plot_legend")
    assert legend is not None

    def rows() -> int:
        qapp.processEvents()
        plot.refresh()
        qapp.processEvents()
        return legend.height() // legend.fontMetrics().height()

    plot.resize(230, 200)
    plot.append("loss", [1], [0.123456])
    plot.append("validation", [1], [0.123456])
    assert rows() == 2
    plot.append("loss", [2], [0])
    plot.append("validation", [2], [0])
    assert rows() == 2
    plot.resize(231, 200)
    assert rows() == 1


def test_a_unit_of_the_legend_does_not_wrap(qtbot) -> None:
    legend = Legend((Series("a", "samples", 0),), lambda value: f"{value:g}/s")
    qtbot.addWidget(legend)
    legend.show_values({"a": 8167.0})
    document = QTextDocument()
    option = document.defaultTextOption()
    option.setWrapMode(QTextOption.WrapMode.WordWrap)
    document.setDefaultTextOption(option)
    document.setHtml(legend.text())
    document.setTextWidth(1)  # wraps wherever it may
    document.documentLayout().documentSize()  # lays it out
    assert document.firstBlock().layout().lineCount() == 1


@pytest.mark.parametrize("at_once", [4096, 1_000_000])
def test_a_long_run_takes_no_more_memory_and_keeps_its_extremes(at_once: int) -> None:
    track = Track()
    steps = np.arange(1_000_000)
    values = np.sin(steps / 1000)
    values[123_456], values[777_777] = 9.0, -9.0
    values[500_000:600_000] = math.nan
    for first in range(0, len(steps), at_once):
        track.extend(steps[first : first + at_once], values[first : first + at_once])
    x, y = track.raw.x, track.raw.y
    assert len(track.raw) <= CAPACITY and len(track.smooth) <= CAPACITY
    assert (x[0], x[-1]) == (0, 999_999)
    assert (np.nanmin(y), np.nanmax(y)) == (-9.0, 9.0)
    assert x[np.nanargmax(y)] == 123_456 and x[np.nanargmin(y)] == 777_777
    assert np.isnan(y[(x > 500_100) & (x < 599_900)]).all()
    assert (np.diff(x) > 0).all()
    kept = np.isfinite(y)
    assert (y[kept] == values[x[kept].astype(int)]).all()
    assert (x[-CAPACITY // 2 :] == steps[-CAPACITY // 2 :]).all()  # the newest are all there
    total, averages = 0.0, []
    for value in values.tolist():
        total = total if math.isnan(value) else 0.9 * total + 0.1 * value
        averages.append(total)
    at = track.smooth.x.astype(int)
    late = at > 400  # without a correction of the bias
    np.testing.assert_allclose(track.smooth.y[late], np.array(averages)[at[late]], atol=1e-14)


def test_falling_steps_are_refused_in_a_full_plot() -> None:
    track = Track()
    steps = np.arange(CAPACITY + 100.0)
    track.extend(steps, steps)
    kept = track.raw.x.copy()
    for broken in (steps[::-1], np.full(CAPACITY, np.nan)):
        with pytest.raises(ValueError, match="fall"):
            track.extend(broken, broken)
    assert (track.raw.x == kept).all()


def words_of(plot: LivePlot) -> dict[str, QRectF]:
    """Where the words over the curves stand, of those that are shown."""
    items = [*plot._canvas.marks.items, *plot._canvas.notes.items]
    labels = [item.label for item in items if hasattr(item, "label")]
    within = 0.1  # pixels: what touches does not cover
    return {
        label.toPlainText(): label.mapToScene(label.boundingRect())
        .boundingRect()
        .adjusted(within, within, -within, -within)
        for label in labels
        if label.isVisible()
    }


def test_words_of_marks_and_notes_cover_no_others(plot: LivePlot, qapp) -> None:
    """The user's own words stand in the first rows."""
    plot.append("loss", range(1, 101), [1.0] * 100)
    plot.show_marks([(20, "first"), (50, ""), (50, "second")])
    plot.show_notes([(50, "third"), (90, "fourth")])
    plot.refresh()
    for size in ((480, 260), (640, 420)):
        plot.resize(*size)
        qapp.processEvents()
        at = words_of(plot)
        rows = {text: round((place.top() - at["third"].top()) / 18) for text, place in at.items()}
        assert rows == {"first": 0, "third": 0, "fourth": 0, "second": 1}
        assert not any(a.intersects(b) for a, b in combinations(at.values(), 2))


def test_words_without_room_are_hidden_until_the_plot_is_zoomed(plot: LivePlot, qapp) -> None:
    plot.append("loss", range(1, 201), [1.0] * 200)
    notes = [(step, f"note {step}") for step in range(2, 200, 4)]
    plot.show_notes(notes)
    plot.refresh()
    qapp.processEvents()
    shown = words_of(plot)
    assert 4 < len(shown) < len(notes) and len(plot._canvas.notes.items) == len(notes)
    assert not any(a.intersects(b) for a, b in combinations(shown.values(), 2))
    plot._canvas.show_x(100, 112)
    qapp.processEvents()
    shown = words_of(plot)
    assert {"note 102", "note 106", "note 110"} <= shown.keys()
    seen = [shown[f"note {step}"] for step in (102, 106, 110)]
    assert not any(a.intersects(b) for a, b in combinations(seen, 2))


def test_marks_are_lines_with_words_until_the_plot_is_cleared(plot: LivePlot) -> None:
    plot.append("loss", [1, 2, 3], [3.0, 2.0, 1.0])
    plot.show_marks([(2, "lr 0.1 → 0.01"), (3, "")])
    plot.refresh()
    first, second = plot._canvas.marks.items
    assert (first.value(), second.value()) == (2, 3)
    assert first.label.toPlainText() == "lr 0.1 → 0.01"
    assert not hasattr(second, "label")
    assert first.scene() is not None
    plot.show_marks([(2, "lr 0.1 → 0.01"), (3, "")])
    assert plot._canvas.marks.items == [first, second]  # the same: nothing is drawn again
    plot.clear()
    assert plot._canvas.marks.items == [] and first.scene() is None


def test_dragging_moves_along_the_steps_and_the_height_fits_what_is_seen(plot: LivePlot) -> None:
    plot.append("loss", range(1, 101), [100.0] * 50 + [1.0, 2.0] * 25)
    plot.refresh()
    plot._canvas.show_x(60, 90)
    plot._canvas.moved_by_hand.emit()
    plot.refresh()
    _, (low, high) = plot._canvas.box.viewRange()
    assert 0.5 < low < 1 < 2 < high < 2.5
    assert plot._canvas.box.state["mouseEnabled"] == [True, False]


def test_the_pointed_step_is_told_but_not_one_that_the_code_sets(plot: LivePlot) -> None:
    told = []
    plot.pointed.connect(told.append)
    plot.append("loss", (1, 4, 9), (1.0, 2.0, 3.0))
    plot._canvas.hovered.emit(5.0)
    plot.point_at(9)
    plot._canvas.hovered.emit(None)
    assert told == [4.0, None]


def test_a_plot_without_points_keeps_no_numbers_of_the_run_before(plot: LivePlot) -> None:
    plot.append("loss", [1, 2], [3000.0, 2000.0])
    plot.refresh()
    plot.clear()
    plot.refresh()
    assert plot._canvas.box.viewRange()[1] == [0.0, 1.0]
