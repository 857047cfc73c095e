"""The plots of a run in their places: two columns or one, one crosshair for all."""

from __future__ import annotations

from math import nan

import pytest
from PySide6.QtWidgets import QMenu

from engine.project.document import Project, replace
from engine.protocol import (
    Annotation,
    GpuMemory,
    KeptRunSnapshot,
    LoggedPoints,
    LoopSnapshot,
    StepColumns,
    TrainingSnapshot,
)
from tests.labels import said
from tests.widgets.training.test_train_view import STEPS
from widgets import theme
from widgets.save_picture import image_of
from widgets.training.plot_board import FIRST_COLOR, PlotBoard
from widgets.training.plots.plots import LivePlot


@pytest.fixture
def board(qtbot) -> PlotBoard:
    board = PlotBoard()
    qtbot.addWidget(board)
    board.resize(900, 700)
    board.show()
    return board


def run_of(steps: StepColumns, **changes) -> TrainingSnapshot:
    return TrainingSnapshot(
        run="r", state="running", step=2, steps_per_second=1.0, device="cpu", steps=steps, **changes
    )


def columns(board: PlotBoard) -> int:
    return len({plot.x() for plot in board.plots.values() if not plot.isHidden()})


def test_there_is_one_column_where_there_is_no_room_for_two(board: PlotBoard, qapp) -> None:
    assert columns(board) == 2
    board.resize(board.minimumSizeHint().width() + 40, 700)
    qapp.processEvents()
    assert columns(board) == 1
    no_accuracy = replace(STEPS, accuracy=())
    board.show_training(run_of(no_accuracy))
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
    run = run_of(replace(STEPS, figures={"lr of linear2": (0.01, 0.005)}))
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
    board.resize(900, 1200)
    board.show_training(run_of(replace(STEPS, figures=figures)))
    qapp.processEvents()
    heights = {board.figures["f1"].height(), board.plots["learning_rate"].height()}
    assert max(heights) - min(heights) < 30


def shown(board: PlotBoard) -> set[str]:
    return {name for name, plot in board.plots.items() if not plot.isHidden()}


def test_the_speed_of_a_run_and_the_use_of_its_gpu_have_plots(board: PlotBoard) -> None:
    assert "gpu_percent" not in shown(board) and "samples_per_second" in shown(board)
    steps = replace(STEPS, samples_per_second=(nan, 48_000.0), gpu_percent=(nan, 87.0))
    gpu = GpuMemory(3 * 2**30, 80 * 2**30)
    board.show_training(run_of(steps, gpu=gpu))
    speed, use = board.plots["samples_per_second"], board.plots["gpu_percent"]
    assert speed.tracks["samples_per_second"].raw.x.tolist() == [2]  # of step 1 it is not known
    assert speed.legend_values() == {"samples_per_second": 48_000.0}
    assert use.legend_values() == {"gpu_percent": 87.0} and not use.isHidden()
    assert said(use, "plot_caption") == "3 GiB of 80 GiB taken by all programs"
    board.clear()
    assert "gpu_percent" not in shown(board)


def test_a_gpu_whose_use_is_not_known_says_why(board: PlotBoard) -> None:
    board.show_training(run_of(STEPS, gpu=GpuMemory(2**30, 2**31, "It is not known.")))
    caption = said(board.plots["gpu_percent"], "plot_caption")
    assert caption == "1 GiB of 2 GiB taken by all programs. It is not known."


def test_a_loop_of_a_cell_has_no_plot_of_samples(board: PlotBoard) -> None:
    loop = LoopSnapshot(
        run="c", title="Cell 1", state="running", step=2, steps_per_second=1.0, device="cpu",
        steps=replace(STEPS, samples_per_second=()),
    )  # fmt: skip
    board.show_training(loop)
    assert {"samples_per_second", "gpu_percent"}.isdisjoint(shown(board))
    kept = replace(STEPS, samples_per_second=(10.0, 20.0))
    board.show_overlays([("x", KeptRunSnapshot(folder="f", steps=kept, project=Project()))])
    assert "samples_per_second" in shown(board)
    (overlay,) = (overlay for overlay, _ in board.plots["samples_per_second"]._overlays)
    assert list(overlay.values) == [10.0, 20.0]


def test_what_a_loop_logs_is_drawn_at_its_own_steps(board: PlotBoard) -> None:
    """It may come after the row of its step. A number that is not known has no point."""
    loop = LoopSnapshot(
        run="c", title="Cell 1", state="running", step=2, steps_per_second=1.0, device="cpu",
        steps=STEPS, logged={"score": LoggedPoints((1,), (0.5,))},
    )  # fmt: skip
    board.show_training(loop)
    later = {
        "score": LoggedPoints((2, 3, 300), (0.75, nan, 2.0)),
        "accuracy": LoggedPoints((2,), (0.25,)),
    }
    board.show_training(replace(loop, steps=StepColumns(), logged=later))
    score = board.figures["score"].tracks["step"].raw
    assert (score.x.tolist(), score.y.tolist()) == ([1, 2, 300], [0.5, 0.75, 2.0])
    accuracy = board.plots["accuracy"].tracks["accuracy"].raw
    assert (accuracy.x.tolist()[-1], accuracy.y.tolist()[-1]) == (2, 25.0)  # percent
    assert "accuracy" in shown(board) and "accuracy" not in board.figures


def lines(plot: LivePlot) -> list[tuple]:
    """(step, words, colour) of each line of the user's."""
    items = plot._canvas.notes.items
    labels = [getattr(item, "label", None) for item in items]
    return [
        (item.value(), label.toPlainText() if label else "", item.pen.color().name())
        for item, label in zip(items, labels, strict=True)
    ]


def test_words_of_the_user_stand_in_their_plot_and_are_lines_elsewhere(board: PlotBoard) -> None:
    board.show_training(run_of(STEPS))
    board.show_annotations([Annotation(2, "here", "gradient_norm")])
    accent = theme.current().accent
    assert lines(board.plots["gradient_norm"]) == [(2, "here", accent)]
    assert lines(board.plots["loss"]) == [(2, "", accent)]
    board.show_training(run_of(replace(STEPS, step=(3, 4), figures={"R2": (0.5, 0.5)})))
    assert lines(board.figures["R2"]) == [(2, "", accent)]
    board.show_annotations(())
    assert lines(board.plots["loss"]) == []


def test_words_of_another_run_have_the_colour_of_its_curve(board: PlotBoard) -> None:
    words = (Annotation(1, "theirs"), Annotation(2, "elsewhere", "accuracy"))
    kept = KeptRunSnapshot(folder="f", steps=STEPS, project=Project(), annotations=words)
    board.show_overlays([("other", kept)])
    color = theme.current().series[FIRST_COLOR]
    assert lines(board.plots["loss"]) == [(1, "theirs", color)]
    assert lines(board.plots["accuracy"]) == [(2, "elsewhere", color)]
    board.show_overlays([])
    assert lines(board.plots["loss"]) == []


def test_the_menu_and_the_key_ask_for_words_at_the_crosshair(
    board: PlotBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LivePlot, "underMouse", lambda _: False)  # wherever a test has left it
    board.ask_note()  # without points there is no step
    asked: list[tuple[str, int]] = []
    board.note_asked.connect(lambda *about: asked.append(about))
    many = tuple(range(1, 201))
    board.show_training(run_of(StepColumns(step=many, loss=(1.0,) * 200)))
    board.refresh()
    plot = board.plots["loss"]

    def offered() -> str:
        menu = QMenu()
        plot.fill_menu(menu)
        *_, last = menu.actions()
        last.trigger()
        return last.text()

    assert offered() == "Annotate step 200…"
    plot.point_at(50.2)
    assert offered() == "Annotate step 50…"
    board.show_annotations([Annotation(49, "here"), Annotation(52, "there", "accuracy")])
    assert offered() == "Edit the annotation at step 49…"  # it is some pixels away
    plot.point_at(100)
    assert offered() == "Annotate step 100…"
    board.ask_note()
    assert asked == [("loss", step) for step in (200, 50, 49, 100, 100)]


def test_a_picture_of_a_plot_has_the_words(board: PlotBoard) -> None:
    board.show_training(run_of(STEPS))
    plot = board.plots["loss"]
    board.refresh()
    without = image_of(plot.size(), plot.paint)
    board.show_annotations([Annotation(2, "the words")])
    assert image_of(plot.size(), plot.paint) != without
