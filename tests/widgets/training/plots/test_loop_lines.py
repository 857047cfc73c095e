"""The lines of a loop with several optimizers in the plots."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from engine.protocol import LOSS_PART, LoopLine, LoopSnapshot, StepColumns
from tests.widgets.training.plots.test_live_plot import text_of
from widgets.training.plot_board import PlotBoard
from widgets.training.plots.loop_lines import loss_titles

GAN = (
    LoopLine("optimizerD", ("errD_real", "errD_fake"), is_sum=True),
    LoopLine("optimizerG", ("errG",)),
)


@pytest.fixture
def board(qtbot: QtBot) -> Iterator[PlotBoard]:
    board = PlotBoard()
    qtbot.addWidget(board)
    yield board


def loop(lines: tuple[LoopLine, ...], steps: StepColumns, others: dict[int, int]) -> LoopSnapshot:
    return LoopSnapshot(
        run="c", title="Cell 1", state="running", step=4, steps_per_second=1.0, device="cpu",
        steps=steps, lines=lines, line_of_step=others,
    )  # fmt: skip


STEPS = StepColumns(
    step=(1, 2, 3, 4),
    loss=(5.0, 1.0, None, 2.0),
    gradient_norm=(0.5, 0.25, None, 0.125),
    learning_rate=(0.1, 0.2, 0.1, 0.2),
    accuracy=(float("nan"),) * 4,
    step_ms=(1.0,) * 4,
    figures={f"{LOSS_PART}errD_real": (3.0, float("nan"), float("nan"), float("nan"))},
)


def points(board: PlotBoard, plot: str) -> dict[str, list[tuple[float, float]]]:
    """The points of each series that has some, by its title."""
    found = board.plots[plot]
    return {
        line.title: list(zip(raw.x.tolist(), raw.y.tolist(), strict=True))
        for line in found.series
        if len(raw := found.tracks[line.key].raw)
    }


def test_each_optimizer_has_a_line_of_its_own(board: PlotBoard) -> None:
    """What is not known of a step has no point; it is not told as NaN."""
    board.show_training(loop(GAN, STEPS, {2: 1, 4: 1}))
    board.show()
    board.refresh()
    assert points(board, "loss") == {
        "errD_real + errD_fake": [(1, 5.0)],
        "errG": [(2, 1.0), (4, 2.0)],
        "errD_real": [(1, 3.0)],
    }
    assert points(board, "gradient_norm") == {
        "optimizerD": [(1, 0.5)],
        "optimizerG": [(2, 0.25), (4, 0.125)],
    }
    assert points(board, "learning_rate")["optimizerG"] == [(2, 0.2), (4, 0.2)]
    colors = [line.color for line in board.plots["loss"].series if not line.points]
    assert len(set(colors)) == len(colors)
    for plot in board.plots.values():
        assert text_of(plot, "plot_notice") == ""


def test_the_first_step_that_was_not_finite_is_that_of_the_line(board: PlotBoard) -> None:
    bad = LoopLine("sgd", ("loss",), first_bad=141, bad_from=141, bad_steps=860, bad_since=141)
    columns = StepColumns(
        step=(130, 161), loss=(1.0, float("nan")), gradient_norm=(1.0, float("nan")),
        learning_rate=(0.1, 0.1),
    )  # fmt: skip
    board.show_training(loop((bad,), columns, {}))
    board.show()
    board.refresh()
    told = text_of(board.plots["loss"], "plot_notice")
    assert told == "loss is NaN or infinite from step 141 on."
    told = text_of(board.plots["gradient_norm"], "plot_notice")
    assert told == "2-norm became NaN or infinite between steps 131 and 161."


def test_a_first_step_that_is_not_known_is_told_as_a_range(board: PlotBoard) -> None:
    late = LoopLine("sgd", ("loss",), first_bad=501, bad_from=1, bad_steps=3, bad_since=501)
    board.show_training(loop((late,), StepColumns(), {}))
    board.show()
    board.refresh()
    told = text_of(board.plots["loss"], "plot_notice")
    assert told == "loss became NaN or infinite between steps 1 and 501."


def test_the_lines_of_a_loop_go_with_it(board: PlotBoard) -> None:
    before = {name: plot.series for name, plot in board.plots.items()}
    board.show_training(loop(GAN, STEPS, {2: 1, 4: 1}))
    board.clear()
    assert {name: plot.series for name, plot in board.plots.items()} == before
    board.show()
    board.refresh()
    for name, plot in board.plots.items():
        assert set(plot._canvas.curves) == {line.key for line in before[name]}
    board.show_training(loop(GAN, STEPS, {2: 1, 4: 1}))
    assert points(board, "loss")["errG"] == [(2, 1.0), (4, 2.0)]


@pytest.mark.parametrize(
    ("lines", "titles"),
    [
        ((LoopLine("sgd"),), [""]),
        ((LoopLine("sgd", ("loss",)),), ["loss"]),
        ((LoopLine("sgd", ("loss / 4",), is_sum=True),), ["sum of loss / 4"]),
        ((LoopLine("sgd", ("even", "odd")),), ["even or odd"]),
        ((LoopLine("sgd", ("a", "b", "c", "d"), is_sum=True),), ["sum of 4 losses"]),
        (GAN, ["errD_real + errD_fake", "errG"]),
        (
            (LoopLine("actor", ("loss",)), LoopLine("critic", ("loss",))),
            ["loss (actor)", "loss (critic)"],
        ),
        ((LoopLine("a", ("loss",)), LoopLine("b")), ["loss", "loss (b)"]),
    ],
)
def test_losses_are_named_by_the_users_variables(
    lines: tuple[LoopLine, ...], titles: list[str]
) -> None:
    assert loss_titles(lines) == titles
