"""New, open, save: what is asked, what is kept, what is said when it fails."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QWidget

from app.files import ProjectFiles
from app.history import History
from app.settings import Settings
from app.store import Store
from app.window.dialogs import Dialogs, UnsavedAnswer
from engine.project import edits, files
from engine.project.document import Project


class Answers(Dialogs):
    """Stands for the person at the dialogs."""

    def __init__(self) -> None:
        super().__init__(native=False)
        self.open, self.save = "", ""
        self.leave: UnsavedAnswer = "cancel"
        self.asked: list[str] = []

    def open_path(self, *_args) -> str:
        self.asked.append("open")
        return self.open

    def save_path(self, *_args) -> str:
        self.asked.append("save")
        return self.save

    def unsaved(self, *_args) -> UnsavedAnswer:
        self.asked.append("unsaved")
        return self.leave


class Desk:
    def __init__(self, window: QWidget, folder) -> None:
        self.store = Store()
        self.history = History(self.store)
        self.answers = Answers()
        self.settings = Settings(QSettings(str(folder / "s.ini"), QSettings.Format.IniFormat))
        self.files = ProjectFiles(window, self.store, self.history, self.settings, self.answers)
        self.failures: list[str] = []
        self.files.failed.connect(self.failures.append)

    def change(self) -> None:
        project, _ = edits.add_block(self.store.project, "nn.Linear", 0, 0)
        self.history.edit(project, "Add")


@pytest.fixture
def desk(qtbot, tmp_path):
    window = QWidget()
    qtbot.addWidget(window)
    return Desk(window, tmp_path)


def test_saving_asks_once_where_to_and_then_no_more(desk, tmp_path):
    desk.change()
    desk.answers.save = str(tmp_path / "mine")
    assert desk.files.save()
    assert desk.files.path == str(tmp_path / "mine.tlab")
    assert desk.store.project.name == "mine"
    assert not desk.files.modified
    desk.change()
    assert desk.files.modified
    assert desk.files.save()
    assert desk.answers.asked == ["save"]
    assert files.load(desk.files.path) == desk.store.project
    assert desk.settings.recent_files == (desk.files.path,)


def test_undoing_to_the_saved_state_is_unmodified(desk, tmp_path):
    desk.change()
    desk.answers.save = str(tmp_path / "a.tlab")
    desk.files.save()
    desk.change()
    desk.history.stack.undo()
    assert not desk.files.modified


def test_unsaved_changes_are_asked_about(desk):
    desk.change()
    changed = desk.store.project
    assert not desk.files.new()
    assert desk.store.project == changed
    desk.answers.leave = "discard"
    assert desk.files.new()
    assert desk.store.project == Project()
    assert not desk.history.stack.canUndo()


def test_a_cancelled_save_does_not_lose_the_work(desk):
    desk.change()
    desk.answers.leave = "save"  # and then no file is chosen
    assert not desk.files.may_leave()


def test_a_damaged_file_leaves_what_is_open(desk, tmp_path):
    desk.change()
    before = desk.store.project
    path = tmp_path / "bad.tlab"
    path.write_text('{"format": "tensorlab", "version": 1, "colour": 1}', encoding="utf-8")
    assert not desk.files.open(str(path))
    assert desk.store.project == before
    assert "bad.tlab" in desk.failures[0]
    assert "colour" in desk.failures[0]
    assert desk.answers.asked == []


def test_a_recent_file_that_is_gone_is_forgotten(desk, tmp_path):
    gone = str(tmp_path / "gone.tlab")
    desk.settings.add_recent_file(gone)
    assert not desk.files.open(gone)
    assert desk.settings.recent_files == ()


def test_a_folder_that_is_gone_is_told_and_nothing_is_lost(desk, tmp_path):
    desk.change()
    assert not desk.files.save_as(str(tmp_path / "no" / "a.tlab"))
    assert "a.tlab was not saved" in desk.failures[0]
    assert desk.files.modified


def test_recovered_work_is_unsaved(desk, tmp_path):
    desk.files.recover(Project(name="Back"), str(tmp_path / "back.tlab"))
    assert desk.files.modified
    assert desk.files.save()
    assert not desk.files.modified
    assert files.load(tmp_path / "back.tlab").name == "back"


def test_recent_files_are_newest_first_and_few(desk):
    for i in range(12):
        desk.settings.add_recent_file(f"/p/{i}.tlab")
    desk.settings.add_recent_file("/p/5.tlab")
    recent = desk.settings.recent_files
    assert recent[:2] == ("/p/5.tlab", "/p/11.tlab")
    assert len(recent) == 10


def test_cells_that_were_run_are_unsaved_work(desk, tmp_path):
    desk.store.set_project(edits.record_cell(desk.store.project, "x = 1"))
    assert desk.files.modified
    assert desk.files.save_as(str(tmp_path / "cells.tlab"))
    assert not desk.files.modified
    assert desk.files.new() and desk.store.project.cells == ()
    assert desk.files.open(str(tmp_path / "cells.tlab"))
    assert [cell.source for cell in desk.store.project.cells] == ["x = 1"]
    assert not desk.files.modified
