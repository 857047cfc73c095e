"""Curves of other runs over the plots of Train: which ones, where, and in words."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.project.document import Project
from engine.protocol import EpochRow, KeptRunSnapshot, StepColumns, TrainingSnapshot
from tests.pictures import assert_same_picture
from widgets import theme
from widgets.training.plots.overlay import overlay_of
from widgets.training.plots.plots import LivePlot
from widgets.training.plots.series import Overlay, Series
from widgets.training.train_view import TrainView

STEPS = tuple(range(1, 41))
FLOATS = tuple(2 / math.sqrt(step) for step in STEPS)


def kept(epochs: int = 4, **figures: tuple[float, ...]) -> KeptRunSnapshot:
    rows = tuple(
        EpochRow(i, 10 * i, 1 / i, 0.5, 1.5 / i, 0.25, validation_figures={"R2": 0.1 * i})
        for i in range(1, epochs + 1)
    )
    columns = StepColumns(
        step=STEPS,
        loss=FLOATS,
        accuracy=(math.nan,) * 40,
        gradient_norm=FLOATS,
        learning_rate=(0.1,) * 40,
        step_ms=FLOATS,
        rss_bytes=(2**30,) * 40,
        figures=figures,
    )
    return KeptRunSnapshot(folder="/a", steps=columns, epoch_rows=rows, project=Project())


def overlays(view: TrainView) -> dict[str, list[Overlay]]:
    plots = {**view.board.plots, **view.board.figures}
    return {name: [o for o, _ in plot._overlays] for name, plot in plots.items()}


@pytest.fixture
def view(qtbot) -> TrainView:
    view = TrainView()
    qtbot.addWidget(view)
    view.resize(1200, 800)
    view.show()
    return view


def run(**figures: tuple[float, ...]) -> TrainingSnapshot:
    columns = StepColumns(
        (1, 2), (2.5, 2.0), (0.5, 0.5), (1.0, 1.0), (0.1, 0.1), (1.0, 1.0), (2**30, 2**30),
        figures=figures,
    )  # fmt: skip
    return TrainingSnapshot(
        run="b", state="running", step=2, steps_per_second=1.0, steps=columns, device="cpu"
    )


def test_each_plot_shows_what_it_has_of_a_run(view: TrainView) -> None:
    view.show_overlays([("the good one", kept())])
    found = overlays(view)
    (loss,) = found["loss"]
    assert loss.title == "the good one validation"
    assert list(loss.steps) == [10, 20, 30, 40]
    assert list(loss.values) == [1.5, 0.75, 0.5, 0.375]
    (accuracy,) = found["accuracy"]
    assert list(accuracy.values) == [25.0] * 4  # percent
    (memory,) = found["memory"]
    assert list(memory.values) == [1024.0] * 40  # MiB
    assert [o.title for o in found["gradient_norm"]] == ["the good one"]


def test_a_run_that_has_not_validated_twice_shows_its_steps(view: TrainView) -> None:
    view.show_overlays([("short", kept(epochs=1))])
    (loss,) = overlays(view)["loss"]
    assert (loss.title, tuple(loss.values), loss.is_smoothed) == (
        "short train step", FLOATS, True,
    )  # fmt: skip
    assert overlays(view)["accuracy"] == []  # it counts none in its steps


def test_the_plot_of_a_figure_that_comes_later_shows_the_other_run_too(view: TrainView) -> None:
    view.show_overlays([("other", kept(R2=tuple(map(float, STEPS))))])
    view.show_training(run(R2=(0.5, 0.25)))
    (figure,) = overlays(view)["R2"]
    np.testing.assert_allclose(figure.values, [0.1, 0.2, 0.3, 0.4])
    view.show_overlays([])
    assert not any(overlays(view).values())


def test_a_watched_module_s_norms_are_those_of_its_plot() -> None:
    series = (Series("output norm", "output", 3),)
    found = overlay_of("x", 3, kept(), "loss", series, 1.0)
    assert found is None  # there is no such series in the run


def test_other_runs_are_seen_without_a_run_of_one_s_own(view: TrainView) -> None:
    assert view._pages.currentIndex() == 0
    view.show_overlays([("other", kept())])
    assert view._pages.currentIndex() == 1
    view.show_overlays([])
    assert view._pages.currentIndex() == 0


def plot_with_overlays(qtbot) -> LivePlot:
    plot = LivePlot("Loss", "", (Series("loss", "train step", 0),))
    qtbot.addWidget(plot)
    plot.resize(480, 240)
    plot.show()
    plot.append("loss", (1, 2, 3), (1.0, 0.5, 0.25))
    plot.show_overlays(
        [
            Overlay("slow", 3, STEPS, FLOATS, True),
            Overlay("<b>", 4, (10, 20), (3.0, 1.0), False),
        ]
    )
    plot.refresh()
    return plot


def test_the_range_and_the_legend_have_the_other_runs(qtbot) -> None:
    plot = plot_with_overlays(qtbot)
    x0, x1 = plot._canvas.x_range()
    assert x0 <= 1 and x1 >= 40
    (_, _), (y0, y1) = plot._canvas.box.viewRange()
    assert y0 < 0.25 and y1 > 3.0
    words = plot._legend.text()
    assert "slow" in words and "&lt;b&gt;" in words
    plot.point_at(10)
    assert f"{FLOATS[9]:.4}" in plot._legend.text()
    plot.clear()
    assert "slow" in plot._legend.text()  # another run of one's own begins
    plot.show_overlays([])
    plot.append("loss", (1, 2), (1.0, 0.5))
    plot.refresh()
    assert plot._canvas.x_range()[1] < 3
    assert not any(curve.isVisible() for curve in plot._canvas._overlays)


def test_they_are_smoothed_where_the_plot_is(qtbot) -> None:
    plot = plot_with_overlays(qtbot)

    def drawn(place: int) -> list[float]:
        y = plot._canvas._overlays[place].getData()[1]
        assert y is not None
        return y.tolist()

    steps, dots = drawn(0), drawn(1)
    assert steps == list(FLOATS)
    plot.set_smoothing(True)
    plot.refresh()
    assert drawn(0)[0] == steps[0] and drawn(0)[5] > steps[5]  # the average lags behind
    assert drawn(1) == dots


@pytest.mark.parametrize("name", ["light", "dark"])
def test_they_look_as_they_did(qtbot, qapp, name: str) -> None:
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    assert_same_picture(plot_with_overlays(qtbot), f"overlays_{name}")


def test_a_figure_that_only_other_runs_have_gets_a_plot_for_as_long(view) -> None:
    values = tuple(map(float, STEPS))
    view.show_overlays([("other", kept(F1=values))])
    plot = view.board.figures["F1"]
    ((overlay, track),) = plot._overlays
    assert overlay.title == "other train step" and track.raw.y.tolist() == list(values)
    view.show_overlays([("other", kept(F1=values, F2=values))])
    view.show_overlays([("other", kept(F2=values)), ("more", kept(F3=values))])
    assert {"F2", "F3"} <= set(view.board.figures) and "F1" not in view.board.figures
    grid = view.board._grid
    found = [grid.getItemPosition(grid.indexOf(p)) for p in view.board.figures.values()]
    # After loss and accuracy, five more plots have no room for a third column.
    assert found == [(3, 3, 1, 3), (4, 0, 1, 3), (4, 3, 1, 3)]
    view.show_overlays([])
    assert view.board.figures == {}
