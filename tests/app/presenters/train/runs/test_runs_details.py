"""The list of runs: what each of its buttons asks of the engine, and what is kept of it."""

from __future__ import annotations

from typing import Any

import pytest

from app.presenters.train.runs.runs import EVERY_MS, RunsPresenter
from app.presenters.train.train import TrainPresenter
from engine.project import edits
from engine.project.document import Project, replace
from engine.protocol import (
    CompareRunsCommand,
    DeleteRunsCommand,
    KeptRunSnapshot,
    ListRunsCommand,
    MovedRunsSnapshot,
    MoveRunsCommand,
    NoteRunCommand,
    ReadRunCommand,
    RestoreRunsCommand,
    RunRow,
    RunsSnapshot,
    StepColumns,
    TrainingSnapshot,
)
from widgets.training.train_view import TrainView


class Desk:
    def __init__(self, bench: Any, link: Any, qtbot: Any) -> None:
        self.bench, self.link = bench, link
        self.view = TrainView()
        qtbot.addWidget(self.view)
        self.presenter = RunsPresenter(
            bench, TrainPresenter(bench, self.view, bench.window), bench.window
        )
        self.pane = self.view.runs
        self.drawn: list[Any] = []
        self.view.show_overlays = lambda runs: self.drawn.append([title for title, _ in runs])
        self.view.bar.runs.setChecked(True)
        self.view.show()

    def newest(self, kind: type) -> Any:
        return [each for each in self.link.sent if isinstance(each, kind)][-1]

    def count(self, kind: type) -> int:
        return sum(isinstance(each, kind) for each in self.link.sent)

    def list(self, *rows: RunRow, folder: str = "") -> None:
        self.presenter.list()
        self.link.answer(RunsSnapshot(folder=folder, runs=rows))

    @property
    def told(self) -> str:
        return self.pane.told.text()


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    return Desk(bench, link, qtbot)


def test_each_button_asks_for_its_runs(desk: Desk) -> None:
    desk.list(RunRow(folder="a", state="stopped"), RunRow(folder="b", state="stopped"))
    desk.pane.compare_requested.emit("a", "b")
    asked = desk.newest(CompareRunsCommand)
    assert (asked.first, asked.second) == ("a", "b")
    desk.pane.delete_requested.emit(("a",))
    assert desk.newest(DeleteRunsCommand).folders == ("a",)
    desk.link.answer(RunsSnapshot(folder="", runs=(RunRow(folder="b", state="stopped"),)))
    assert [row.folder for row in desk.pane.table.rows] == ["b"]
    desk.pane.restore_requested.emit()
    assert desk.newest(RestoreRunsCommand).runs == desk.bench.files.runs_folder
    desk.pane.table.noted.emit("b", "best")
    asked = desk.newest(NoteRunCommand)
    assert (asked.folder, asked.note) == ("b", "best")
    desk.pane.settings_requested.emit("b")
    assert desk.newest(ReadRunCommand).folder == "b"


def test_what_two_runs_differ_in_is_shown(desk: Desk) -> None:
    shown: list[Any] = []
    desk.pane.show_difference = shown.append
    desk.pane.compare_requested.emit("a", "b")
    answer = RunsSnapshot(folder="", runs=())  # of any kind
    desk.link.answer(answer)
    assert [type(each) for each in shown] == [RunsSnapshot]


def test_why_something_cannot_be_asked_is_told_until_the_next_question(desk: Desk) -> None:
    desk.pane.delete_requested.emit(("a",))
    desk.link.fail("It is running.", "Stop it first.")
    assert desk.told == "It is running. Stop it first."
    desk.pane.delete_requested.emit(("b",))
    assert desk.told == ""
    desk.link.close()
    desk.pane.delete_requested.emit(("b",))
    assert desk.told == desk.link.unsent


def test_the_runs_of_a_folder_are_listed_with_event_files_until_the_way_home(desk: Desk) -> None:
    places: list[str] = []
    desk.pane.show_place = places.append
    asked = desk.newest(ListRunsCommand)
    assert (asked.runs, asked.events) == (desk.bench.files.runs_folder, False)
    desk.presenter.show_folder("/there")
    asked = desk.newest(ListRunsCommand)
    assert (asked.runs, asked.events) == ("/there", True)
    desk.pane.restore_requested.emit()
    assert desk.newest(RestoreRunsCommand).runs == "/there"
    desk.pane.home_requested.emit()
    asked = desk.newest(ListRunsCommand)
    assert (asked.runs, asked.events) == (desk.bench.files.runs_folder, False)
    assert places == ["/there", ""]


def test_another_folder_shows_nothing_of_the_one_before(desk: Desk) -> None:
    desk.list(RunRow(folder="a", state="stopped", note="A"))
    desk.pane.table.ticked = ("a",)
    desk.pane.table.ticked_changed.emit()
    desk.link.answer(KeptRunSnapshot(folder="a", steps=StepColumns(), project=Project()))
    assert desk.drawn[-1] == ["A"]
    desk.presenter.show_folder("/there")
    assert desk.drawn[-1] == [] and desk.pane.table.rows == ()


def test_curves_that_cannot_be_read_are_told(desk: Desk) -> None:
    desk.list(RunRow(folder="a", state="stopped"))
    desk.pane.table.ticked = ("a",)
    desk.pane.table.ticked_changed.emit()
    assert desk.newest(ReadRunCommand).folder == "a"
    desk.link.fail("It is damaged.", "Delete it.")
    assert desk.told == "It is damaged. Delete it."


def test_the_run_of_the_plots_is_not_drawn_over_itself(desk: Desk, training_snapshot) -> None:
    desk.list(RunRow(folder="a", state="running", note="A"))
    desk.pane.table.ticked = ("a",)
    desk.pane.table.ticked_changed.emit()
    desk.link.answer(KeptRunSnapshot(folder="a", steps=StepColumns(), project=Project()))
    assert desk.drawn[-1] == ["A"]
    desk.link._receive(training_snapshot(folder="a"))
    assert desk.drawn[-1] == []


def test_whether_the_list_is_shown_is_kept(desk: Desk) -> None:
    assert desk.bench.settings.train_runs
    desk.view.bar.runs.setChecked(False)
    assert not desk.bench.settings.train_runs


def test_a_list_that_was_shown_at_the_last_start_is_shown(bench, link, qtbot) -> None:
    bench.settings.train_runs = True
    view = TrainView()
    qtbot.addWidget(view)
    RunsPresenter(bench, TrainPresenter(bench, view, bench.window), bench.window)
    assert view.bar.runs.isChecked() and EVERY_MS >= 1_000


def test_a_new_engine_is_asked_for_the_list(desk: Desk) -> None:
    before = desk.count(ListRunsCommand)
    desk.link.close()
    desk.presenter.list()
    assert desk.count(ListRunsCommand) == before
    desk.link.get_ready()
    assert desk.count(ListRunsCommand) == before + 1


def test_runs_of_a_project_that_has_a_file_are_there_already(
    desk: Desk, training_snapshot, tmp_path
) -> None:
    desk.bench.files.path = str(tmp_path / "net.tlab")
    desk.link._receive(training_snapshot(folder="/net.runs/r", state="finished"))
    before = desk.count(ListRunsCommand)
    desk.bench.files.saved.emit()
    assert desk.count(MoveRunsCommand) == 0 and desk.count(ListRunsCommand) == before + 1


@pytest.mark.parametrize(
    ("moved", "folder", "checkpoint"),
    [
        ((("/data/r", "/net.runs/r"),), "/net.runs/r", "/elsewhere/c.pt"),
        ((("/data/s", "/net.runs/s"),), "/data/r", "/elsewhere/c.pt"),
    ],
)
def test_only_what_has_moved_is_somewhere_else(
    desk: Desk, training_snapshot, tmp_path, moved: tuple, folder: str, checkpoint: str
) -> None:
    run = training_snapshot(folder="/data/r", state="finished", checkpoint="/elsewhere/c.pt")
    desk.link._receive(run)
    desk.bench.files.path = str(tmp_path / "net.tlab")
    desk.bench.files.saved.emit()
    before = desk.count(ListRunsCommand)
    desk.link.answer(MovedRunsSnapshot(moved=moved))
    newest = desk.bench.newest(TrainingSnapshot)
    assert (newest.folder, newest.checkpoint) == (folder, checkpoint)
    assert desk.count(ListRunsCommand) > before


def test_settings_that_are_taken_over_can_be_undone(desk: Desk) -> None:
    project = edits.add_block(desk.bench.project, "nn.ReLU", 0, 0)[0]
    before = desk.bench.project
    desk.pane.settings_requested.emit("a")
    desk.link.answer(KeptRunSnapshot(folder="a", steps=StepColumns(), project=project))
    assert desk.bench.project.model == project.model
    assert desk.bench.history.stack.undoText() == "Take over the settings of a run"
    desk.bench.history.stack.undo()
    assert desk.bench.project == replace(before, view=desk.bench.project.view)
