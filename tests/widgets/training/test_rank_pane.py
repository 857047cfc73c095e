"""The processes of a run, and what they print."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.protocol import RankRow, RanksSnapshot
from tests.labels import said
from tests.pictures import assert_same_picture
from widgets import theme
from widgets.training.rank_pane import RankPane

ROWS = (
    RankRow(0, 4100, "here", "running", "epoch 3: loss 0.42"),
    RankRow(1, 4101, "here", "failed", "killed", "was ended by SIGKILL."),
    RankRow(2, 77, "there", "elsewhere"),
)
LINES = ("Rank 0 of 3: process 4100.", "epoch 3: loss 0.42")
TOLD = RanksSnapshot(folder="/runs/a", rows=ROWS, lines=LINES, log="/runs/a/ranks/rank-0.log")


@pytest.fixture
def pane(qtbot) -> RankPane:
    pane = RankPane()
    qtbot.addWidget(pane)
    pane.resize(560, 320)
    with qtbot.waitExposed(pane):
        pane.show()
    return pane


def test_each_rank_has_a_row_and_the_chosen_one_its_lines(pane: RankPane, qtbot) -> None:
    pane.show_ranks(TOLD)
    texts = [[pane.table.cell(r, c).text() for c in range(4)] for r in range(3)]
    assert texts == [
        ["0", "4100", "runs", "epoch 3: loss 0.42"],
        ["1", "4101", "was ended by SIGKILL.", "killed"],
        ["2", "77 on there", "on another machine", ""],
    ]
    assert pane.table.cell(1, 2).foreground().color() == theme.current().color("error")
    assert pane.lines.toPlainText() == "\n".join(LINES)
    assert said(pane, "ranks_log") == "All of it: /runs/a/ranks/rank-0.log"
    with qtbot.waitSignal(pane.asked):
        pane.table.selectRow(1)
    assert pane.rank == 1
    with qtbot.assertNotEmitted(pane.asked):
        pane.show_ranks(replace(TOLD, rank=1, lines=("Killed",)))
    assert pane.table.selectionModel().selectedRows()[0].row() == 1


def test_the_lines_stay_where_the_reader_has_scrolled(pane: RankPane) -> None:
    many = tuple(f"line {n}" for n in range(200))
    pane.show_ranks(replace(TOLD, lines=many))
    bar = pane.lines.verticalScrollBar()
    assert bar.value() == bar.maximum() > 0
    bar.setValue(20)
    pane.show_ranks(replace(TOLD, lines=(*many, "more")))
    assert bar.value() == 20


def test_without_ranks_it_says_what_to_do(pane: RankPane) -> None:
    pane.show_ranks(TOLD)
    pane.show_ranks(RanksSnapshot(folder="/runs/b"))
    assert pane.currentIndex() == 0 and "Several processes" in said(pane, "ranks_empty")
    pane.show_trouble("The engine starts.")
    assert said(pane, "ranks_empty") == "The engine starts."


@pytest.mark.parametrize("name", ["light", "dark"])
def test_picture(pane: RankPane, qapp, name: str) -> None:
    pane.show_ranks(TOLD)
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    assert_same_picture(pane, f"rank_pane_{name}")
