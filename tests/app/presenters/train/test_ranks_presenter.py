"""The processes of Train's run: read while they are seen; the command follows the project."""

from __future__ import annotations

import pytest

from app.presenters.train.ranks import RanksPresenter
from engine.project import edits
from engine.project.document import TrainingSetup, replace
from engine.project.subject import ConsoleSubject, FileSubject
from engine.protocol import RankRow, RanksSnapshot, ReadRanksCommand
from tests.labels import said
from widgets.training.train_view import TrainView


@pytest.fixture
def view(bench, link, qtbot) -> TrainView:
    link.get_ready()
    view = TrainView()
    qtbot.addWidget(view)
    view.presenter = RanksPresenter(bench, view, bench.window)
    view.show_setup(TrainingSetup(processes=2), None)  # opens the fold
    view.show()
    return view


def test_the_ranks_are_read_while_they_are_seen(view, bench, link) -> None:
    assert not any(isinstance(command, ReadRanksCommand) for command in link.sent)
    view.tabs.setCurrentWidget(view.ranks)
    command = link.sent[-1]
    assert isinstance(command, ReadRanksCommand) and (command.folder, command.rank) == ("", 0)
    rows = tuple(RankRow(rank, 4 + rank, "here", "running") for rank in range(2))
    link.answer(RanksSnapshot(folder="", rows=rows))
    view.ranks.table.selectRow(1)
    assert link.sent[-1].rank == 1


def test_their_tab_is_there_for_several_processes(view, qtbot) -> None:
    tab = view.tabs.indexOf(view.ranks)
    assert view.tabs.isTabVisible(tab)
    view.show_setup(TrainingSetup(), None)
    assert not view.tabs.isTabVisible(tab)
    view.show_setup(TrainingSetup(processes=2), None)
    view.ranks.show_ranks(RanksSnapshot(folder="", rows=(RankRow(0, 4, "here", "running"),)))
    view.show_setup(TrainingSetup(), None)  # for the next run: what this one printed can be read
    assert view.tabs.isTabVisible(tab)
    fresh = TrainView()
    qtbot.addWidget(fresh)
    assert not fresh.tabs.isTabVisible(tab)


def test_the_command_follows_the_project(view, bench) -> None:
    assert "Save the project first" in said(view, "setup_machines_command")
    bench.files.path = "/a/net.tlab"
    bench.files.path_changed.emit(bench.files.path)
    assert said(view, "setup_machines_command").endswith("tensorlab train /a/net.tlab")
    code = FileSubject("/a/net.py", "Net()")
    bench.edit("choose", lambda project: edits.set_subject(project, code))
    setup = replace(bench.project.training, seed=bench.project.training.seed + 1)
    bench.edit("seed", lambda project: edits.set_training(project, setup))
    command = said(view, "setup_machines_command")
    assert command.endswith("'/a/net.py:Net()' --settings /a/net.tlab")
    bench.edit("usual", lambda project: edits.set_training(project, TrainingSetup()))
    assert said(view, "setup_machines_command").endswith("'/a/net.py:Net()'")
    bench.edit("choose", lambda project: edits.set_subject(project, ConsoleSubject("net")))
    assert "objects of the console" in said(view, "setup_machines_command")
