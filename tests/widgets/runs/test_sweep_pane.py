"""The form of a sweep, and its trials in the list of runs."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest
from PySide6.QtCore import Qt

from engine.project.sweeps.sweep import Choice, Sweep
from engine.protocol import EpochRow, RunRow, RunsSnapshot, TrialRow
from tests.pictures import assert_same_picture
from tests.widgets.runs.test_run_pane import BEGAN_S, ROWS, texts
from widgets import theme
from widgets.runs.run_pane import RunPane
from widgets.runs.run_table import NOTE, RUN, STATE
from widgets.runs.sweep_pane import SweepOption, SweepPane

OPTIONS = (
    SweepOption("optimizer_params.lr", "Learning rate", "1e-4..1e-1:log"),
    SweepOption("batch_size", "Batch size", "32, 64"),
    SweepOption("optimizer", "Optimizer", "optim.Adam, optim.SGD"),
)


@pytest.fixture
def pane(qtbot) -> SweepPane:
    pane = SweepPane()
    qtbot.addWidget(pane)
    pane.resize(800, 160)
    pane.show()
    pane.show_options(OPTIONS)
    return pane


def test_the_form_asks_for_a_sweep(pane, qtbot) -> None:
    asked = []
    pane.sweep_requested.connect(asked.append)
    pane.add.click()
    pane.add.click()
    assert not pane.add.isEnabled()  # all settings vary
    assert [row.values.text() for row in pane.rows] == [option.values for option in OPTIONS]
    pane.rows[1].remove.click()
    pane.trials.setValue(7)
    pane.seed.setValue(3)
    pane.prune.setChecked(False)
    pane.figure.setCurrentIndex(pane.figure.findData("validation accuracy"))
    qtbot.keyClick(pane.rows[0].values, Qt.Key.Key_Return)
    choices = (
        Choice("optimizer_params.lr", low=1e-4, high=1e-1, log=True),
        Choice("optimizer", ("optim.Adam", "optim.SGD")),
    )
    fields = {"maximise": True, "prune": False}
    assert asked == [Sweep(choices, 7, 3, "validation accuracy", **fields)]
    pane.rows[1].setting.setCurrentIndex(pane.rows[1].setting.findData("batch_size"))
    assert pane.rows[1].values.text() == "32, 64"


def test_values_that_make_no_sense_are_told_in_place(pane) -> None:
    asked = []
    pane.sweep_requested.connect(asked.append)
    assert pane.told.isHidden()
    pane.rows[0].values.setText("1..0")
    pane.start.click()
    assert "a range goes up" in pane.told.text() and not asked
    assert pane.focusWidget() is pane.rows[0].values
    pane.rows[0].values.setText("0.1")
    pane.start.click()
    assert pane.told.isHidden() and asked


def test_a_setting_that_is_gone_is_not_varied(pane) -> None:
    pane.add.click()
    pane.show_options(OPTIONS[1:])
    assert [row.setting.currentData() for row in pane.rows] == ["batch_size"]
    assert pane.rows[0].setting.count() == 2
    pane.show_options(())
    assert pane.rows == [] and not pane.add.isEnabled()


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_form_looks_as_it_did(qapp, pane, mode) -> None:
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[mode])
    pane.add.click()
    pane.show_problem("batch_size cannot be 0: it must be at least 1.")
    qapp.processEvents()  # the row finds its place
    assert_same_picture(pane, f"sweep_{mode}")


# -- its trials in the list ------------------------------------------------------------------------


def trial(
    number: int, value: float | None, state: Literal["", "best", "pruned"] = "", **fields
) -> RunRow:
    return RunRow(
        folder=f"/p/net.runs/s-trial-{number:04}",
        id=f"t{number}",
        title="Canvas",
        began_s=BEGAN_S + 300 + number,
        step=40,
        epoch=EpochRow(2, 40, 0.5, 0.75, value if value is not None else 1.0, 0.5),
        trial=TrialRow("s", number, f"lr 0.{number}", "validation loss", value, state),
        **{"state": "finished", **fields},
    )


TRIALS = (
    trial(3, None, state="", **{}),
    trial(2, 0.25, "best"),
    trial(1, 0.5, "pruned"),
)


@pytest.fixture
def runs(qtbot) -> RunPane:
    pane = RunPane()
    qtbot.addWidget(pane)
    pane.resize(960, 240)
    pane.show()
    rows = (msgspec.structs.replace(TRIALS[0], state="running"), *TRIALS[1:], ROWS[2])
    pane.show_runs(RunsSnapshot(folder="/p/net.runs", runs=rows))
    return pane


def test_trials_stand_under_the_head_of_their_sweep(runs) -> None:
    shown = texts(runs)
    assert shown[0][0] == (
        "▾ Sweep of 23 Nov 10:20:01, 3 trials; best: trial 2, validation loss 0.25 (lr 0.2)"
    )
    assert [row[:3] for row in shown[1:4]] == [
        ["trial 1", "lr 0.1", "pruned"],
        ["trial 2", "lr 0.2", "best"],
        ["trial 3", "lr 0.3", "running"],
    ]
    assert shown[4][NOTE] == "the good one"
    runs.table.selectRow(0)
    assert runs.table.chosen == () and not runs.use.isEnabled()
    runs.table.selectRow(2)
    assert runs.table.chosen == (TRIALS[1].folder,) and runs.use.isEnabled()
    assert runs.table.cell(2, STATE).foreground().color() == theme.current().color("accent")
    asked = []
    runs.settings_requested.connect(asked.append)
    runs.use.click()
    assert asked == [TRIALS[1].folder]


def test_a_sweep_folds_to_its_best_trial(runs, qtbot) -> None:
    opened = []
    runs.table.opened.connect(opened.append)
    runs.table.setCurrentCell(0, RUN)
    runs.table.setFocus()
    qtbot.keyClick(runs.table, Qt.Key.Key_Return)
    shown = texts(runs)
    assert shown[0][0].startswith("▸ Sweep of") and shown[1][0] == "trial 2"
    assert len(shown) == 3 and runs.table.currentRow() == 0
    runs.table.cellDoubleClicked.emit(0, RUN)
    assert len(texts(runs)) == 5 and opened == []
    runs.table.cellDoubleClicked.emit(2, RUN)
    assert opened == [TRIALS[1].folder]


def test_the_filter_finds_trials_by_their_values(runs) -> None:
    runs.search.setText("lr 0.2")
    assert [row[0] for row in texts(runs)][1:] == ["trial 2"]


def test_the_form_opens_by_its_button(runs) -> None:
    opened = []
    runs.sweep_opened.connect(lambda: opened.append(True))
    assert runs.sweeps.isHidden()
    runs.sweep.click()
    assert not runs.sweeps.isHidden() and opened == [True]
    runs.sweep.click()
    assert runs.sweeps.isHidden()
