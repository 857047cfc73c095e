"""Choosing a file or a folder of the engine's machine."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel

from tests.pictures import assert_same_picture
from widgets import theme
from widgets.folders.folder_view import FolderView

ENTRIES = (("runs", True, 0), ("digits.csv", False, 2048), ("labels.csv", False, 10))


@pytest.fixture
def heard() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def view(qtbot, request, heard) -> FolderView:
    made = FolderView("box", getattr(request, "param", "file"))
    qtbot.addWidget(made)
    made.folder_wanted.connect(lambda path: heard.append(("folder", path)))
    made.chosen.connect(lambda path: heard.append(("chosen", path)))
    made.show_folder("/data", "/", ENTRIES, 0)
    return made


def test_a_file_is_chosen_and_a_folder_entered(view: FolderView, heard):
    assert not view.button.isEnabled()
    view.table.selectRow(0)
    assert not view.button.isEnabled()  # a folder is no file
    view.table.itemActivated.emit(view.table.item(0, 0))
    view.table.selectRow(1)
    view.button.click()
    view.table.itemActivated.emit(view.table.item(1, 0))
    view.up.click()
    view.path.setText(" /other ")
    view.path.returnPressed.emit()
    assert heard == [
        ("folder", "/data/runs"), ("chosen", "/data/digits.csv"), ("chosen", "/data/digits.csv"),
        ("folder", "/"), ("folder", "/other"),
    ]  # fmt: skip


@pytest.mark.parametrize("view", ["folder"], indirect=True)
def test_a_folder_is_the_selected_one_or_the_one_that_is_shown(view: FolderView, heard):
    assert not view.name.isVisibleTo(view)
    view.button.click()
    view.table.selectRow(0)
    view.button.click()
    assert heard == [("chosen", "/data"), ("chosen", "/data/runs")]


@pytest.mark.parametrize("view", ["save"], indirect=True)
def test_a_file_to_write_has_the_name_that_is_typed(view: FolderView, heard):
    assert not view.button.isEnabled()
    view.name.setText("model.pt")
    view.name.returnPressed.emit()
    view.table.selectRow(2)
    view.button.click()
    assert heard == [("chosen", "/data/model.pt"), ("chosen", "/data/labels.csv")]
    assert view.has("/data/labels.csv") and view.has("/data/runs")
    assert not view.has("/data/model.pt") and not view.has("/other/labels.csv")


def test_what_cannot_be_shown_is_said(view: FolderView):
    note = view.findChild(QLabel, "folder_note")
    view.tell("/no: No such file or directory.")
    assert note.text() == "/no: No such file or directory."
    view.show_folder("/", "", ENTRIES, 1500)
    assert note.text() == "1,500 more entries: type the path of the folder."
    assert not view.up.isEnabled()
    view.show_folder("/data", "/", ENTRIES, 0)
    assert note.text() == ""


def test_picture(view: FolderView, qapp):
    view.resize(480, 300)
    view.table.selectRow(1)
    theme.apply(qapp, theme.DARK)
    assert_same_picture(view, "folder_view")
