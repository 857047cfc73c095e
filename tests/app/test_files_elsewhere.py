"""What is opened while the engine is on another machine: files are copied there first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QWidget

from app.other_files import Wanted
from tests.app.test_app_files import Desk
from tests.app.test_weights_elsewhere import Box


class AskingBox(Box):
    """A person there answers with `path`."""

    def __init__(self) -> None:
        super().__init__()
        self.path = ""
        self.asked: list[tuple[str, Wanted, str]] = []

    def ask(self, title: str, wanted: Wanted, name: str = "") -> str:
        self.asked.append((title, wanted, name))
        return self.path


@pytest.fixture
def box() -> AskingBox:
    return AskingBox()


@pytest.fixture
def desk(qtbot, tmp_path, box) -> Desk:
    window = QWidget()
    qtbot.addWidget(window)
    desk = Desk(window, tmp_path)
    desk.files.there = box
    return desk


@pytest.mark.parametrize("failure", ["", "The line is cut."])
def test_a_file_of_tensors_is_copied_and_shown_there(desk, box, tmp_path, failure):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(3.0))
    assert not desk.files.open(str(path))
    ((here, there, done),) = box.brought
    assert (here, there, desk.artifacts) == (path, "/there/x.npy", [])
    done(failure)
    assert desk.artifacts == ["/there/x.npy"] * (not failure)
    assert desk.failures == [f"x.npy was not copied to box. {failure}"] * bool(failure)
    assert desk.python == [] and box.asked == []


@pytest.mark.parametrize("copy", ["/home/me/net.py", ""])
def test_a_python_file_is_copied_to_where_the_user_says(desk, box, tmp_path, copy):
    path, box.path = tmp_path / "net.py", copy
    path.write_text("x = 1\n")
    desk.files.open(str(path))
    title = "Copy net.py to run it, without the files beside it"
    assert box.asked == [(title, "save", "net.py")]
    assert [each[:2] for each in box.brought] == [(path, copy)] * bool(copy)
    if copy:
        box.brought[0][2]("")
    assert desk.python == [copy] * bool(copy) and desk.artifacts == desk.failures == []


def test_a_folder_of_this_machine_is_not_copied(desk, box, tmp_path):
    desk.files.open(str(tmp_path))
    assert desk.failures == [
        f"{tmp_path.name} is a folder of this machine, the engine is on box: copy it there, and"
        " open it there."
    ]
    assert desk.artifacts == [] and box.brought == []


@pytest.mark.parametrize("path", ["/there/runs", ""])
def test_folders_and_files_are_asked_for_there(desk, box, path):
    box.path = path
    desk.files.open_folder()
    assert desk.artifacts == [path] * bool(path)
    desk.artifacts.clear()
    desk.files.open_there()
    assert desk.artifacts == [path] * bool(path)
    assert desk.files.ask_artifact_path("Compare with") == path
    assert box.asked == [
        ("Open a folder", "folder", ""), ("Open", "file", ""), ("Compare with", "file", "")
    ]  # fmt: skip
    box.path = "/there/net.py"
    desk.files.open_there()
    assert desk.python == ["/there/net.py"]


def test_on_this_machine_nothing_is_asked_there(desk, box, tmp_path):
    box.machine, box.path = "", "/there/a.pt"
    desk.files.open_there()
    desk.files.open(str(tmp_path))
    assert desk.artifacts == [str(tmp_path)] and box.asked == box.brought == []


def test_runs_lie_beside_the_project_only_on_this_machine(desk, box, tmp_path):
    assert desk.files.save_as(str(tmp_path / "net.tlab"))
    assert desk.files.runs_folder == ""
    box.machine = ""
    assert Path(desk.files.runs_folder).parent == tmp_path
