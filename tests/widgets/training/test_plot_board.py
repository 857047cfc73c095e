"""The plots of a run in their places: two columns or one, one crosshair for all."""

from __future__ import annotations

import pytest

from engine.project.document import Project, replace
from engine.protocol import KeptRunSnapshot, TrainingSnapshot
from tests.widgets.training.test_train_view import STEPS
from widgets.training.plot_board import PlotBoard


@pytest.fixture
def board(qtbot) -> PlotBoard:
    board = PlotBoard()
    qtbot.addWidget(board)
    board.resize(900, 700)
    board.show()
    return board


def columns(board: PlotBoard) -> int:
    return len({plot.x() for plot in board.plots.values() if not plot.isHidden()})


def test_there_is_one_column_where_there_is_no_room_for_two(board: PlotBoard, qapp) -> None:
    assert columns(board) == 2
    board.resize(board.minimumSizeHint().width() + 40, 700)
    qapp.processEvents()
    assert columns(board) == 1
    board._show_accuracy(False)
    board.resize(900, 700)
    qapp.processEvents()
    loss, norm = board.plots["loss"], board.plots["gradient_norm"]
    assert loss.width() > 800 and norm.width() < 500 and loss.height() > 1.5 * norm.height()


def test_the_crosshair_is_on_the_same_step_in_all_plots(board: PlotBoard) -> None:
    for name in ("loss", "gradient_norm", "learning_rate"):
        board.plots[name].append(name, STEPS.step, getattr(STEPS, name))
    board.plots["loss"]._canvas.hovered.emit(2.0)
    assert board.plots["gradient_norm"].legend_values()["gradient_norm"] == 1.25
    assert board.plots["learning_rate"].legend_values()["learning_rate"] == 0.05
    board.plots["loss"]._canvas.hovered.emit(1.0)
    assert board.plots["gradient_norm"].legend_values()["gradient_norm"] == 1.5
    board.plots["loss"]._canvas.hovered.emit(None)
    assert board.plots["gradient_norm"].legend_values()["gradient_norm"] == 1.25


def test_each_parameter_group_has_its_line_in_the_plot_of_rates(board: PlotBoard) -> None:
    figures = {"lr of linear2": (0.01, 0.005)}
    run = TrainingSnapshot(
        run="r", state="running", step=2, steps_per_second=1.0, device="cpu",
        steps=replace(STEPS, figures=figures),
    )  # fmt: skip
    board.show_training(run)
    plot = board.plots["learning_rate"]
    assert plot.legend_values() == {"learning_rate": 0.05, "lr of linear2": 0.005}
    assert not board.figures
    kept = KeptRunSnapshot(folder="f", steps=run.steps, project=Project())
    board.show_overlays([("before", kept)])
    (overlay,) = (overlay for overlay, _ in plot._overlays)
    assert list(overlay.values) == [0.1, 0.05]  # of the first group
    board.clear()
    assert set(plot.legend_values().values()) == {None}


def test_a_figure_that_comes_later_has_as_much_room(board: PlotBoard, qapp) -> None:
    figures = {"f1": (0.5, 0.25), "f2": (0.5, 0.25)}
    run = TrainingSnapshot(
        run="r", state="running", step=2, steps_per_second=1.0, device="cpu",
        steps=replace(STEPS, figures=figures),
    )  # fmt: skip
    board.resize(900, 1200)
    board.show_training(run)
    qapp.processEvents()
    heights = {board.figures["f1"].height(), board.plots["learning_rate"].height()}
    assert max(heights) - min(heights) < 30
