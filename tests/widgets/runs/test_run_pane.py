"""The list of runs: what it shows, what it keeps, and what it asks for."""

from __future__ import annotations

from datetime import datetime

import msgspec
import pytest
from PySide6.QtCore import QItemSelectionModel, Qt

from engine.protocol import EpochRow, RunDifferenceSnapshot, RunRow, RunsSnapshot, SettingRow
from tests.pictures import assert_same_picture
from tests.words import assert_same_words
from widgets import theme
from widgets.runs.run_pane import RunPane
from widgets.runs.run_table import NOTE, RUN, STATE
from widgets.runs.sweep_pane import SweepOption

BEGAN_S = datetime(2026, 11, 23, 10, 15).timestamp()
ROWS = (
    RunRow(
        folder="/p/net.runs/c",
        id="c",
        title="Canvas",
        began_s=BEGAN_S + 120,
        step=7,
        loss=2.25,
        epochs=20,
    ),
    RunRow(
        folder="/p/net.runs/b",
        id="b",
        title="net.py: Net()",
        state="cut off",
        began_s=BEGAN_S + 60,
        step=1200,
        loss=0.5,
        epoch=EpochRow(3, 1000, 0.75, float("nan"), 0.875, float("nan")),
        epochs=20,
        checkpoint="/p/net.runs/b/checkpoints/step-00001100.pt",
        origin="step 40 of a",
    ),
    RunRow(
        folder="/p/net.runs/a",
        id="a",
        title="Canvas",
        state="finished",
        began_s=BEGAN_S,
        ended_s=BEGAN_S + 42,
        step=460,
        loss=0.25,
        epoch=EpochRow(20, 460, 0.125, 0.96875, 0.25, 0.9375),
        epochs=20,
        checkpoint="/p/net.runs/a/checkpoints/step-00000460.pt",
        note="the good one",
    ),
    RunRow(folder="/p/net.runs/old", state="damaged", problem="run.json is damaged: it is empty."),
)
LIST = RunsSnapshot(folder="/p/net.runs", runs=ROWS, left_out=3, deleted=2)


@pytest.fixture
def pane(qtbot) -> RunPane:
    pane = RunPane()
    qtbot.addWidget(pane)
    pane.resize(960, 240)
    pane.show()
    pane.show_runs(LIST)
    return pane


def texts(pane: RunPane) -> list[list[str]]:
    table = pane.table
    return [
        [table.cell(row, column).text() for column in range(table.columnCount())]
        for row in range(table.rowCount())
    ]


def select(pane: RunPane, *rows: int) -> None:
    pane.table.clearSelection()
    flags = QItemSelectionModel.SelectionFlag
    for row in rows:
        pane.table.selectionModel().select(
            pane.table.model().index(row, 0), flags.Select | flags.Rows
        )


def test_the_numbers_of_each_run_are_listed(pane: RunPane) -> None:
    assert texts(pane) == [
        ["23 Nov 10:17:00", "Canvas", "running", "7", "2.25", "", "", ""],
        ["23 Nov 10:16:00", "net.py: Net()", "cut off", "1,200", "0.75", "0.875", "", ""],
        ["23 Nov 10:15:00", "Canvas", "finished", "460", "0.125", "0.25", "93.8 %", "the good one"],
        ["old", "", "damaged", "", "", "", "", ""],
    ]
    assert "step 40 of a" in pane.table.cell(1, RUN).toolTip()
    assert "It took 42 s" in pane.table.cell(2, RUN).toolTip()
    assert pane.table.cell(3, STATE).toolTip() == "run.json is damaged: it is empty."
    assert pane.told.text() == "3 older runs are not listed."
    assert pane.undo.text() == "Undo delete (2)"


@pytest.mark.parametrize("name", ["light", "dark"])
def test_the_list_looks_as_it_did(pane: RunPane, qapp, name: str) -> None:
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    pane.table.cell(2, RUN).setCheckState(Qt.CheckState.Checked)
    pane.show_difference(
        RunDifferenceSnapshot(
            first=ROWS[0].folder,
            second=ROWS[2].folder,
            rows=(SettingRow("optimizer_params.lr", "0.05", "0.003"),),
        )
    )
    qapp.processEvents()  # the splitter makes room
    assert_same_picture(pane, f"runs_{name}")
    if name == "light":
        assert_same_words(pane, "runs")


def test_the_buttons_are_for_what_is_selected(pane: RunPane) -> None:
    def usable() -> list[str]:
        buttons = (pane.open, pane.resume, pane.compare, pane.delete)
        return [button.text() for button in buttons if button.isEnabled()]

    for rows, expected in (
        ((), []),
        ((0,), []),  # it is under way
        ((1,), ["Open", "Resume", "Delete"]),
        ((2,), ["Open", "Delete"]),  # it is finished
        ((3,), ["Open", "Delete"]),
        ((1, 2), ["Compare settings", "Delete"]),
        ((0, 2), ["Compare settings"]),
        ((1, 2, 3), ["Delete"]),
    ):
        select(pane, *rows)
        assert usable() == expected, rows


def test_what_is_asked_for(pane: RunPane, qtbot) -> None:
    select(pane, 1)
    for button, signal in ((pane.open, pane.open_requested), (pane.resume, pane.resume_requested)):
        with qtbot.waitSignal(signal) as asked:
            button.click()
        assert asked.args == ["/p/net.runs/b"]
    select(pane, 1, 2)
    with qtbot.waitSignal(pane.compare_requested) as asked:
        pane.compare.click()
    assert asked.args == ["/p/net.runs/b", "/p/net.runs/a"]
    pane.activateWindow()
    pane.table.setFocus()
    with qtbot.waitSignal(pane.delete_requested) as asked:
        qtbot.keyClick(pane.table, Qt.Key.Key_Delete)
    assert asked.args == [("/p/net.runs/b", "/p/net.runs/a")]
    with qtbot.waitSignal(pane.restore_requested):
        pane.undo.click()
    select(pane, 0)
    with qtbot.assertNotEmitted(pane.delete_requested):
        qtbot.keyClick(pane.table, Qt.Key.Key_Delete)
    pane.table.setCurrentCell(2, RUN)
    with qtbot.waitSignal(pane.open_requested) as asked:
        qtbot.keyClick(pane.table, Qt.Key.Key_Return)
    assert asked.args == ["/p/net.runs/a"]


def test_notes_and_ticks(pane: RunPane, qtbot) -> None:
    table = pane.table
    with qtbot.waitSignal(table.noted) as noted:
        table.cell(1, NOTE).setText("try again")
    assert noted.args == ["/p/net.runs/b", "try again"]
    for row in (2, 0):
        with qtbot.waitSignal(table.ticked_changed):
            table.cell(row, RUN).setCheckState(Qt.CheckState.Checked)
    assert table.ticked == ("/p/net.runs/a", "/p/net.runs/c")
    select(pane, 2)
    pane.show_runs(RunsSnapshot(folder="/p/net.runs", runs=ROWS[1:]))
    assert (table.ticked, table.chosen) == (("/p/net.runs/a",), ("/p/net.runs/a",))
    assert table.cell(1, RUN).checkState() == Qt.CheckState.Checked
    with qtbot.waitSignal(table.ticked_changed):
        table.cell(1, RUN).setCheckState(Qt.CheckState.Unchecked)
    assert table.ticked == ()


def test_the_filter_and_the_empty_list(pane: RunPane) -> None:
    for text, folders in (("good", "a"), ("cut OFF", "b"), ("canvas", "ca"), ("10:16", "b")):
        pane.search.setText(text)
        assert "".join(row.folder[-1] for row in pane.table.rows) == folders
    pane.search.setText("nothing")
    assert not pane.empty.isHidden() and "No run holds" in pane.empty.text()
    pane.clear()
    assert "No runs yet" in pane.empty.text() and pane.undo.isHidden()


def test_two_equal_runs_have_no_difference(pane: RunPane) -> None:
    pane.show_difference(RunDifferenceSnapshot(first=ROWS[1].folder, second=ROWS[2].folder))
    assert pane.difference.isHidden() and "same settings" in pane.told.text()


def test_in_a_narrow_pane_rarer_buttons_are_in_a_menu(pane: RunPane, qtbot) -> None:
    def words() -> dict[str, bool]:
        pane.buttons.more.menu().aboutToShow.emit()
        return {each.text(): each.isEnabled() for each in pane.buttons.more.menu().actions()}

    pane.resize(1400, 240)
    assert words() == {} and pane.buttons.more.isHidden() and pane.compare.isVisible()
    pane.resize(640, 240)
    pane.show_runs(msgspec.structs.replace(LIST, deleted=0))
    select(pane, 1, 2)
    assert pane.delete.isVisible() and pane.compare.isHidden() and pane.home.isHidden()
    assert words() == {
        "TensorBoard…": True,
        "Open folder…": True,
        "Use settings": False,
        "Compare settings": True,
    }
    with qtbot.waitSignal(pane.compare_requested):
        pane.buttons.more.menu().actions()[-1].trigger()
    pane.show_place("/mnt")
    assert pane.home.isHidden() == ("Project's runs" in words())


def test_what_differs_has_the_room_of_the_list_if_there_is_little(pane: RunPane, qtbot) -> None:
    found = RunDifferenceSnapshot(
        first=ROWS[1].folder, second=ROWS[2].folder, rows=(SettingRow("epochs", "3", "20"),)
    )
    pane.resize(640, 240)
    pane.show_difference(found)
    assert pane.difference.isVisible() and not pane.table.isVisible()
    pane.resize(1400, 240)
    assert pane.difference.isVisible() and pane.table.isVisible()
    pane.resize(640, 240)
    pane.activateWindow()
    pane.difference.table.setFocus()
    qtbot.keyClick(pane.difference.table, Qt.Key.Key_Escape)
    assert not pane.difference.isVisible() and pane.table.isVisible()
    pane.show_difference(found)
    pane.show_runs(RunsSnapshot(folder="/p/net.runs", runs=ROWS[2:]))  # one of the two is deleted
    assert not pane.difference.isVisible() and pane.table.isVisible()


def test_the_form_of_a_sweep_has_its_whole_height(pane: RunPane, qapp) -> None:
    pane.sweeps.show_options([SweepOption("lr", "Learning rate", "0.1, 0.2")])
    pane.sweep.setChecked(True)
    for width in (1400, 640):
        pane.resize(width, pane.minimumSizeHint().height())
        qapp.processEvents()
        pane.resize(width, pane.minimumSizeHint().height())
        qapp.processEvents()
        start = pane.sweeps.start
        assert start.visibleRegion().boundingRect() == start.rect()


@pytest.mark.parametrize(
    ("ago_s", "words"),
    [(-5, "0 s"), (0, "0 s"), (59.4, "59 s"), (60, "1 min"), (119, "1 min"), (72_000, "1,200 min")],
)
def test_how_long_ago_a_run_gave_a_sign(pane, ago_s: float, words: str) -> None:
    silent = msgspec.structs.replace(ROWS[0], state="silent", sign_s=BEGAN_S)
    pane.show_runs(RunsSnapshot(folder="/mnt", runs=(silent,), read_s=BEGAN_S + ago_s))
    assert texts(pane)[0][STATE] == f"no sign for {words}"


def test_runs_of_another_folder_say_who_writes_them(pane, qtbot) -> None:
    asked = []
    pane.folder_requested.connect(lambda: asked.append("folder"))
    pane.home_requested.connect(lambda: asked.append("home"))
    assert pane.home.isHidden() and pane.place.isHidden()
    going = msgspec.structs.replace(
        ROWS[0], elsewhere="process 12 of cluster", told_s=BEGAN_S + 200, sign_s=BEGAN_S + 203
    )
    silent = msgspec.structs.replace(ROWS[1], elsewhere="process 7 of cluster", state="silent")
    silent = msgspec.structs.replace(silent, sign_s=BEGAN_S - 90)
    pane.show_place("/mnt/cluster")
    pane.show_runs(RunsSnapshot(folder="/mnt/cluster", runs=(going,), read_s=BEGAN_S + 203))
    assert pane.place.text() == (
        "Runs in /mnt/cluster. Process 12 of cluster trains it; last figure 3 s ago."
    )
    assert texts(pane)[0][STATE] == "elsewhere, 3 s ago"
    pane.show_runs(RunsSnapshot(folder="/mnt/cluster", runs=(going, silent), read_s=BEGAN_S + 203))
    assert pane.place.text() == "Runs in /mnt/cluster."
    assert texts(pane)[1][STATE] == "no sign for 4 min"
    select(pane, 1)
    assert "has given no sign for 4 min. If it has ended, Resume" in pane.place.text()
    assert pane.resume.isEnabled()
    pane.show_runs(RunsSnapshot(folder="/mnt/cluster"))
    assert "There are no runs in this folder" in pane.empty.text()
    pane.folder.click()
    pane.home.click()
    assert asked == ["folder", "home"]
    pane.show_place("")
    assert pane.home.isHidden() and pane.place.isHidden()
