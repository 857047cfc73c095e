"""The list of runs: whose folders it asks for, and how long it looks again."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QPushButton

from app.presenters.cells import CellsPresenter
from app.presenters.train.runs.runs import GROWS_S, RunsPresenter
from app.presenters.train.train import TrainPresenter
from engine.project.document import Project, replace
from engine.project.subject import FileSubject, Objective
from engine.protocol import (
    Command,
    KeptRunSnapshot,
    KeptState,
    ListRunsCommand,
    MovedRunsSnapshot,
    MoveRunsCommand,
    ReadRunCommand,
    RunRow,
    RunsSnapshot,
    StepColumns,
    TrainCommand,
    TrainingSnapshot,
)
from widgets.model.code_editor import CodeEditor
from widgets.training.train_view import TrainView


@pytest.fixture
def runs(bench, link, qtbot) -> RunsPresenter:
    link.get_ready()
    view = TrainView()
    qtbot.addWidget(view)
    presenter = RunsPresenter(bench, TrainPresenter(bench, view, bench.window), bench.window)
    view.bar.runs.setChecked(True)
    view.show()
    return presenter


def folders_listed(link) -> list[str]:
    return [each.runs for each in link.sent if isinstance(each, ListRunsCommand)]


def test_a_folder_of_runs_is_chosen(runs, bench, link) -> None:
    pane = runs._pane
    bench.dialogs.open_folder = lambda parent, title, start: "/here"
    pane.folder.click()
    assert folders_listed(link)[-1] == "/here"


def test_the_list_is_read_again_while_a_run_may_go_on(runs, link) -> None:
    """A run that another process writes, and event files that were written to not long ago: these
    are drawn at once in a folder that was just opened."""
    now = 10_000.0
    rows = {
        "grows": RunRow(folder="a", state="event files", told_s=now - GROWS_S + 1),
        "elsewhere": RunRow(folder="b", elsewhere="process 5"),
        "old": RunRow(folder="c", state="event files", told_s=now - GROWS_S - 1),
        "ended": RunRow(folder="d", state="finished", told_s=now),
    }
    again = runs.findChild(QTimer)
    for names, goes_on in ((("grows",), True), (("elsewhere",), True), (("old", "ended"), False)):
        again.stop()
        runs.list()
        listed = RunsSnapshot(folder="", runs=tuple(rows[name] for name in names), read_s=now)
        link.answer(listed)
        assert again.isActive() == goes_on, names
    runs.show_folder("/there")
    link.answer(RunsSnapshot(folder="/there", runs=tuple(rows.values()), read_s=now))
    assert runs._pane.table.ticked == ("a", "b")


FOREIGN = replace(
    Project(), subject=FileSubject("/own/net.py", "Net()"), objective=Objective(data="data")
)
"""The project of a run, which names Python that the document does not."""


def choose_foreign(bench, runs: RunsPresenter, link, signal: str) -> list[Command]:
    """Choose a run of FOREIGN in the list; what was sent since its folder was read."""
    row = RunRow(folder="/runs/a", state="stopped", checkpoint="/runs/a/checkpoints/step-1.pt")
    listed(runs, link, row, folder="/runs")
    getattr(runs._pane, signal).emit(row.folder)
    before = len(link.sent)
    link.answer(KeptRunSnapshot(folder=row.folder, steps=StepColumns(), project=FOREIGN))
    return link.sent[before:]


def trained(commands: list[Command]) -> list[str]:
    return [each.checkpoint for each in commands if isinstance(each, TrainCommand)]


def test_python_that_only_a_run_names_is_asked_about_before_it_goes_on(runs, bench, link) -> None:
    runs.agreement_wanted.connect(CellsPresenter(bench, bench.window).ask)
    assert trained(choose_foreign(bench, runs, link, "resume_requested")) == []
    banner, before = bench.window.banners.banner("cells"), len(link.sent)
    assert banner.title == "This run names Python that your project did not"
    code = banner.findChild(CodeEditor, "banner_code").toPlainText()
    assert code == "# %% What it names\n/own/net.py: Net()\ndata"
    banner.findChild(QPushButton, "banner_allow_its_python").click()
    assert trained(link.sent[before:]) == ["/runs/a/checkpoints/step-1.pt"]
    assert not link.sent[-1].unagreed and bench.project.subject == FOREIGN.subject
    bench.files.new()
    sent = choose_foreign(bench, runs, link, "resume_requested")
    assert len(trained(sent)) == 1  # it is asked once for this content of the run


def test_settings_of_a_run_that_name_python_are_taken_over_unused(runs, bench, link) -> None:
    runs.agreement_wanted.connect(CellsPresenter(bench, bench.window).ask)
    sent = choose_foreign(bench, runs, link, "settings_requested")
    assert bench.project.objective == FOREIGN.objective
    assert sent and all(each.unagreed for each in sent) and bench.store.is_unagreed
    bench.window.banners.banner("cells").findChild(QPushButton, "banner_allow_its_python").click()
    assert not bench.store.is_unagreed and trained(link.sent) == []
    bench.files.new()
    choose_foreign(bench, runs, link, "settings_requested")
    assert not bench.store.is_unagreed


def listed(runs: RunsPresenter, link, *rows: RunRow, folder: str = "") -> None:
    runs.list()
    link.answer(RunsSnapshot(folder=folder, runs=rows))


def reads(link) -> int:
    return sum(isinstance(each, ReadRunCommand) for each in link.sent)


@pytest.mark.parametrize("state", ["running", "paused"])
def test_no_run_is_opened_beside_one_that_is_under_way(
    runs, link, training_snapshot, state: str
) -> None:
    listed(runs, link, RunRow(folder="a", state="stopped", checkpoint="a/c.pt"))
    link._receive(training_snapshot(state=state))
    runs._pane.open_requested.emit("a")
    assert "Another run is under way" in runs._pane.told.text() and not reads(link)
    link._receive(training_snapshot(state="stopped"))
    runs._pane.open_requested.emit("a")
    assert reads(link) == 1 and runs._pane.told.text() == ""


def test_a_run_without_a_checkpoint_is_not_opened_and_one_that_is_gone_neither(runs, link) -> None:
    listed(runs, link, RunRow(folder="a", state="stopped"))
    runs._pane.open_requested.emit("b")
    assert runs._pane.told.text() == ""
    runs._pane.open_requested.emit("a")
    assert "This run has no checkpoint" in runs._pane.told.text() and not reads(link)


def test_before_a_silent_run_is_taken_from_another_machine_the_user_is_asked(
    runs, bench, link
) -> None:
    row = RunRow(folder="a", state="silent", checkpoint="a/c.pt", elsewhere="process 7 of box")
    listed(runs, link, row)
    bench.dialogs.agrees = False
    runs._pane.resume_requested.emit("a")
    assert bench.dialogs.asked[0].startswith("process 7 of box has trained this run")
    assert not reads(link)
    bench.dialogs.agrees = True
    runs._pane.resume_requested.emit("a")
    assert reads(link) == 1


@pytest.mark.parametrize(
    ("state", "resumes", "paused"),
    [("stopped", True, False), ("stopped", False, True), ("finished", False, False)],
)
def test_a_run_goes_on_from_its_checkpoint_or_is_held_there(
    runs, link, state: KeptState, resumes: bool, paused: bool
) -> None:
    listed(runs, link, RunRow(folder="a", state=state, checkpoint="a/c.pt"))
    pane = runs._pane
    (pane.resume_requested if resumes else pane.open_requested).emit("a")
    link.answer(KeptRunSnapshot(folder="a", steps=StepColumns(), project=Project()))
    (command,) = [each for each in link.sent if isinstance(each, TrainCommand)]
    assert (command.checkpoint, command.paused) == ("a/c.pt", paused)


def test_settings_of_a_run_are_taken_over_as_one_edit(runs, bench, link) -> None:
    other = replace(
        Project(name="theirs"), subject=FileSubject("net.py", "Net()"),
        objective=Objective(data="data"), training=replace(bench.project.training, seed=9),
    )  # fmt: skip
    name = bench.project.name
    for _ in range(2):  # the second time nothing changes
        runs._pane.settings_requested.emit("a")
        link.answer(KeptRunSnapshot(folder="a", steps=StepColumns(), project=other))
    assert bench.project == replace(other, name=name)
    assert bench.history.stack.count() == 1
    assert not any(isinstance(each, TrainCommand) for each in link.sent)


def test_the_list_follows_the_run_of_the_plots(runs, link, training_snapshot) -> None:
    again = runs.findChild(QTimer)
    again.stop()
    before = len(folders_listed(link))
    link._receive(training_snapshot(folder="/r"))
    assert len(folders_listed(link)) == before + 1 and not again.isActive()
    link._receive(training_snapshot(folder="/r", step=2))
    assert len(folders_listed(link)) == before + 1 and again.isActive()
    again.stop()
    link._receive(training_snapshot(folder="/r", step=2, state="finished"))
    assert len(folders_listed(link)) == before + 2
    link._receive(training_snapshot(folder="/r", step=2, state="finished"))
    assert len(folders_listed(link)) == before + 2 and not again.isActive()


def test_only_as_many_runs_of_another_folder_are_drawn_at_once(runs, link) -> None:
    runs.show_folder("/there")
    rows = [RunRow(folder=f"{number}", elsewhere="process 5") for number in range(7)]
    link.answer(RunsSnapshot(folder="/there", runs=tuple(rows)))
    assert runs._pane.table.ticked == ("0", "1", "2", "3", "4")
    runs._pane.table.ticked = ()
    listed(runs, link, *rows, folder="/there")
    assert runs._pane.table.ticked == ()  # the user's choice stays


def test_the_answer_about_another_folder_is_not_shown(runs, link) -> None:
    runs.show_folder("/there/run")
    before = len(folders_listed(link))
    link.answer(RunsSnapshot(folder="/there", runs=(RunRow(folder="other"),)))
    assert folders_listed(link)[before:] == ["/there/run"] and runs._pane.table.rows == ()


def test_the_list_is_not_read_while_it_is_not_seen(runs, link) -> None:
    runs._pane.hide()
    before = len(link.sent)
    runs.list()
    assert len(link.sent) == before
    runs._pane.show()
    assert len(link.sent) == before + 1


def test_the_runs_of_a_project_move_beside_its_first_file(
    runs, bench, link, training_snapshot, tmp_path
) -> None:
    for folder in ("", "/data/r", "/data/r", "/data/s"):
        run = training_snapshot(
            run=folder, folder=folder, state="finished", checkpoint=f"{folder}/checkpoints/c.pt"
        )
        link._receive(run)
    bench.files.path = str(tmp_path / "net.tlab")
    bench.files.saved.emit()
    command = link.sent[-1]
    assert isinstance(command, MoveRunsCommand)
    assert (command.folders, command.runs) == (("/data/r", "/data/s"), str(tmp_path / "net.runs"))
    moved = (("/data/r", "/net.runs/r"), ("/data/s", "/net.runs/s"))
    link.answer(MovedRunsSnapshot(moved=moved))
    newest = bench.newest(TrainingSnapshot)
    assert (newest.folder, newest.checkpoint) == ("/net.runs/s", "/net.runs/s/checkpoints/c.pt")
    bench.files.saved.emit()
    assert not isinstance(link.sent[-1], MoveRunsCommand)  # they are there


def test_another_document_has_no_run_to_move(runs, bench, link, training_snapshot) -> None:
    link._receive(training_snapshot(folder="/data/r", state="finished"))
    runs.show_folder("/there")
    bench.files.opened.emit()
    assert folders_listed(link)[-1] == bench.files.runs_folder
    bench.files.saved.emit()
    assert not any(isinstance(each, MoveRunsCommand) for each in link.sent)
