"""The list of runs: whose folders it asks for, and how long it looks again."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QTimer

from app.other_files import NoOtherFiles
from app.presenters.train.runs import GROWS_S, RunsPresenter
from app.presenters.train.train import TrainPresenter
from engine.project.document import Project, replace
from engine.project.subject import CanvasSubject, FileSubject, Objective
from engine.protocol import (
    FileCopy,
    KeptRunSnapshot,
    ListRunsCommand,
    RunRow,
    RunsSnapshot,
    StepColumns,
    TrainCommand,
)
from widgets.training.train_view import TrainView


class There(NoOtherFiles):
    """The engine's machine is another one; its user chooses a folder."""

    machine = "box"

    def ask(self, title: str, wanted: str, name: str = "") -> str:
        self.asked = wanted
        return "/there"


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


def test_a_folder_is_chosen_on_the_machine_of_the_engine(runs, bench, link) -> None:
    pane = runs._pane
    bench.dialogs.open_folder = lambda parent, title, start: "/here"
    pane.folder.click()
    assert folders_listed(link)[-1] == "/here"
    bench.files.there = there = There()
    pane.folder.click()
    assert there.asked == "folder" and folders_listed(link)[-1] == "/there"


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


def test_a_run_whose_code_is_gone_wants_its_copies_first(runs, bench, link) -> None:
    row = RunRow(folder="/runs/a", state="stopped", checkpoint="/runs/a/checkpoints/step-1.pt")
    project = replace(
        Project(), subject=FileSubject("/gone/net.py", "Net()"), objective=Objective(data="data")
    )
    copy = FileCopy("/gone/net.py", "/runs/a/code/net.py", "0" * 64)
    kept = KeptRunSnapshot(folder=row.folder, steps=StepColumns(), project=project, copies=(copy,))
    wanted: list[tuple] = []
    runs.copies_wanted.connect(lambda copies, then: wanted.append((copies, then)))

    def resume(answer: KeptRunSnapshot) -> int:
        runs.list()
        link.answer(RunsSnapshot(folder="/runs", runs=(row,)))
        runs._pane.resume_requested.emit(row.folder)
        before = len(link.sent)
        link.answer(answer)
        return before

    resume(replace(kept, copies=(), code_problem="It is gone, and so is its copy."))
    assert "so is its copy" in runs._pane.told.text()
    before = resume(kept)
    ((copies, then),) = wanted
    assert copies == (copy,) and len(link.sent) == before
    assert isinstance(bench.project.subject, CanvasSubject)  # nothing is taken over yet
    then()
    (command,) = [each for each in link.sent[before:] if isinstance(each, TrainCommand)]
    assert command.checkpoint == row.checkpoint and command.subject == project.subject
