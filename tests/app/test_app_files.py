"""New, open and save: questions, files, and messages about failures."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QWidget

from app.files import ProjectFiles
from app.history import History
from app.settings import Settings
from app.store import Store
from app.weights import Weights
from app.window.dialogs import Dialogs, UnsavedAnswer
from engine.connecting.greeting import About, Welcome
from engine.project import edits, files
from engine.project.document import Project
from engine.protocol import SavedWeightsSnapshot, StopSignal
from tests.app.conftest import AnsweringLink


class Answers(Dialogs):
    """Stands for the person at the dialogs."""

    def __init__(self) -> None:
        super().__init__(native=False)
        self.open, self.save = "", ""
        self.leave: UnsavedAnswer = "cancel"
        self.asked: list[str] = []
        self.agrees = True

    def confirm(self, parent, question, yes) -> bool:
        self.asked.append(question)
        return self.agrees

    def open_path(self, *_args) -> str:
        self.asked.append("open")
        return self.open

    def save_path(self, *_args) -> str:
        self.asked.append("save")
        return self.save

    def unsaved(self, parent, name, lost, kept="") -> UnsavedAnswer:
        self.asked.append(f"unsaved: {', '.join(lost)}")
        return self.leave


class Desk:
    def __init__(self, window: QWidget, folder) -> None:
        self.store = Store()
        self.history = History(self.store)
        self.answers = Answers()
        self.settings = Settings(QSettings(str(folder / "s.ini"), QSettings.Format.IniFormat))
        self.link = AnsweringLink()
        self.weights = Weights(self.store, self.link)
        self.files = ProjectFiles(
            window, self.store, self.history, self.settings, self.answers, self.weights
        )
        self.failures: list[str] = []
        self.files.failed.connect(self.failures.append)
        self.python: list[str] = []
        self.files.python_chosen.connect(self.python.append)
        self.artifacts: list[str] = []
        self.files.artifact_chosen.connect(self.artifacts.append)

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


def test_what_is_shown_after_recovered_work_is_not_unsaved(desk, tmp_path):
    desk.files.recover(Project(name="Back"), "")
    assert desk.files.path == "" and desk.files.modified
    desk.answers.leave = "discard"
    assert desk.files.new() and not desk.files.modified


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
    cells = "the cells that you ran in the console"
    assert not desk.files.may_leave() and desk.answers.asked == [f"unsaved: {cells}"]
    desk.change()
    assert not desk.files.may_leave()
    assert desk.answers.asked[-1] == f"unsaved: your edits, {cells}"
    assert desk.files.save_as(str(tmp_path / "cells.tlab"))
    assert not desk.files.modified
    assert desk.files.new() and desk.store.project.cells == ()
    assert desk.files.open(str(tmp_path / "cells.tlab"))
    assert [cell.source for cell in desk.store.project.cells] == ["x = 1"]
    assert not desk.files.modified


def test_a_file_that_another_window_has_changed_is_not_erased_without_a_word(desk, tmp_path):
    path = tmp_path / "a.tlab"
    files.save(Project(), path)
    assert desk.files.open(str(path))
    os.utime(path, (1, 1))  # touched, not changed
    desk.change()
    assert desk.files.save() and desk.answers.asked == []
    theirs = files.save(edits.add_block(Project(), "nn.ReLU", 0, 0)[0], path)
    desk.change()
    desk.answers.agrees = False
    assert not desk.files.save()
    question = "a.tlab has been changed outside this window. Replace it by what is here?"
    assert desk.answers.asked == [question]
    assert desk.failures == ["a.tlab was not saved. Save as keeps both."]
    assert path.read_bytes() == theirs and desk.files.modified
    desk.answers.agrees = True
    assert desk.files.save() and files.load(path) == desk.store.project
    desk.change()
    assert desk.files.save() and desk.answers.asked == [question] * 2
    path.unlink()
    desk.change()
    assert desk.files.save() and desk.answers.asked == [question] * 2


def test_a_file_whose_name_the_dialog_did_not_ask_about_is_not_erased_without_a_word(
    desk, tmp_path
):
    files.save(Project(), tmp_path / "a.tlab")
    desk.change()
    desk.answers.agrees = False
    assert not desk.files.save_as(str(tmp_path / "a"))
    assert desk.answers.asked == ["a.tlab is there. Replace it by what is here?"]
    desk.answers.agrees = True
    assert desk.files.save_as(str(tmp_path / "a"))
    assert files.load(tmp_path / "a.tlab") == desk.store.project


def test_weights_of_another_hand_are_not_replaced_without_a_word(desk, tmp_path, training_snapshot):
    desk.link.get_ready()
    desk.link.answer(training_snapshot())
    (tmp_path / "a.safetensors").write_bytes(b"exported")
    desk.answers.agrees = False
    assert not desk.files.save_as(str(tmp_path / "a.tlab"))
    assert desk.answers.asked == [
        "a.safetensors is there already. Replace it by what this model has learnt?"
    ]
    assert desk.link.sent == [] and desk.files.modified
    desk.answers.agrees = True
    assert desk.files.save_as(str(tmp_path / "a.tlab"))
    assert len(desk.link.sent) == 1


def test_a_device_is_not_replaced(desk, tmp_path):
    (tmp_path / "null.tlab").symlink_to("/dev/null")
    assert not desk.files.save_as(str(tmp_path / "null.tlab"))
    assert desk.failures == [
        "null.tlab was not saved: it is a device, not a regular file. Choose another place."
    ]
    assert Path("/dev/null").is_char_device()


def test_the_project_has_the_name_of_its_file(desk, tmp_path):
    files.save(Project(name="An old name"), tmp_path / "new.tlab")
    assert desk.files.open(str(tmp_path / "new.tlab"))
    assert desk.store.project.name == "new" and not desk.files.modified


def test_a_name_that_is_no_utf_8_can_be_saved_and_is_remembered(desk, tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/net\xff.tlab")
    files.save(Project(), path)
    assert desk.files.open(path)
    assert desk.store.project.name == "net\ufffd"
    desk.change()
    assert desk.files.save() and desk.failures == []
    assert files.load(path) == desk.store.project
    assert desk.settings.recent_files == (path,)
    assert os.listdir(os.fsencode(tmp_path)) == [b"net\xff.tlab"] or "s.ini" in os.listdir(tmp_path)
    os.unlink(path)
    assert not desk.files.open(path)
    assert desk.failures[0].startswith("net\ufffd.tlab was not opened.")
    assert desk.settings.recent_files == ()


def test_recent_files_are_up_to_date_when_it_is_told_that_they_may_have_changed(desk, tmp_path):
    path = str(tmp_path / "a.tlab")
    files.save(Project(), path)
    seen: list[tuple[str, ...]] = []
    desk.files.path_changed.connect(lambda _: seen.append(desk.settings.recent_files))
    desk.files.failed.connect(lambda _: seen.append(desk.settings.recent_files))
    desk.files.open(path)
    Path(path).unlink()
    desk.files.open(path)
    assert seen == [(path,), ()]


def test_a_name_with_a_slash_suggests_a_file_in_the_folder(desk):
    suggested: list[str] = []
    desk.answers.save_path = lambda parent, title, start, name_filter: suggested.append(start) or ""
    desk.store.set_project(Project(name="../of/both"))
    assert not desk.files.save()
    assert suggested == [str(Path.home() / ".._of_both.tlab")]


def test_a_run_is_stopped_before_its_project_is_left_if_the_user_agrees(desk, training_snapshot):
    desk.link.snapshot.connect(desk.store.take)
    desk.link.get_ready()
    desk.link.answer(training_snapshot())
    desk.answers.agrees = False
    assert not desk.files.new()
    assert desk.link.signals == [] and len(desk.answers.asked) == 1
    desk.answers.agrees = True
    desk.answers.leave = "discard"
    assert desk.files.new()
    assert desk.link.signals[0] == StopSignal() and desk.answers.asked[-1].endswith("learnt")


def test_a_python_file_is_told_by_its_path(desk, tmp_path):
    path = tmp_path / "net.py"
    path.write_text("import torch\n")
    assert not desk.files.open(str(path))
    assert (desk.python, desk.failures) == ([str(path)], [])


def test_a_file_of_weights_is_told_by_its_path(desk, tmp_path):
    weights = tmp_path / "w.safetensors"
    weights.write_bytes(b"\x10\0\0\0\0\0\0\0{}" + b" " * 14)
    old = tmp_path / "w.pt"
    old.write_bytes(b"\x80\x02K\x01.")
    for path in (weights, old):
        assert not desk.files.open(str(path))
    assert (desk.artifacts, desk.failures) == ([str(weights), str(old)], [])


def test_a_file_with_a_whole_model_is_told_by_its_path(desk, tmp_path):
    path = tmp_path / "net.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/models/model.json", "{}")
        archive.writestr("net/archive_format", "pt2")
    assert not desk.files.open(str(path))
    assert (desk.artifacts, desk.failures) == ([str(path)], [])


def test_a_folder_an_index_and_an_array_are_told_by_their_paths(desk, tmp_path):
    index = tmp_path / "model.safetensors.index.json"
    index.write_text('{"weight_map": {}}')
    array = tmp_path / "x.npy"
    array.write_bytes(b"\x93NUMPY")
    for path in (tmp_path, index, array):
        assert not desk.files.open(str(path))
    assert (desk.artifacts, desk.failures) == ([str(tmp_path), str(index), str(array)], [])


def test_a_window_of_an_engine_that_serves_others_closes_without_a_question_about_weights(
    desk, training_snapshot
):
    desk.link.attach_to(Welcome(About(name="box", pid=7), "steer", serves=True))
    desk.link.get_ready()
    desk.link.answer(training_snapshot(step=3))
    assert desk.files.modified and not desk.files.document_modified
    assert desk.files.may_close() and desk.answers.asked == []
    assert not desk.files.may_leave() and len(desk.answers.asked) == 1
    desk.change()
    assert not desk.files.may_close() and len(desk.answers.asked) == 2
    desk.answers.leave = "discard"
    assert desk.files.may_close()


def test_a_project_that_gets_another_file_is_told_with_the_one_before(desk, tmp_path):
    told: list[str] = []
    desk.files.saved_as.connect(told.append)
    desk.files.saved.connect(lambda: told.append("saved"))
    first, second = (str(tmp_path / f"{name}.tlab") for name in "ab")
    assert desk.files.save_as(first) and desk.files.save() and desk.files.save_as(second)
    assert told == ["saved", "saved", "saved", first]


@pytest.mark.parametrize("written", [True, False])
def test_weights_that_are_saved_on_leaving_are_waited_for(
    desk, tmp_path, training_snapshot, written
):
    desk.link.get_ready()
    desk.link.answer(training_snapshot(step=3))
    waited: list[str] = []

    def wait(parent, text, settled) -> None:
        waited.append(text)
        (tmp_path / "a.safetensors").write_bytes(b"weights")
        if written:
            desk.link.answer(SavedWeightsSnapshot(run="r", step=3))

    desk.answers.wait = wait
    desk.answers.leave, desk.answers.save = "save", str(tmp_path / "a.tlab")
    assert desk.files.may_leave() is written
    assert waited == ["Writing the weights that the model has learnt…"]
