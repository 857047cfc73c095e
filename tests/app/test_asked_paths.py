"""Which paths a person is asked for, where the dialog begins, and what is told before leaving."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QWidget

from app.files import ARTIFACT_FILTER, FILTER, OPEN_FILTER, ProjectFiles
from app.history import History
from app.settings import Settings
from app.store import Store
from app.weights import Weights
from app.window.dialogs import Dialogs
from engine.project import edits
from engine.project.document import Cell, Project, replace
from engine.protocol import TrainingSnapshot
from tests.app.conftest import AnsweringLink


class Asked(Dialogs):
    """Answers `answer`, and keeps what was asked."""

    def __init__(self) -> None:
        super().__init__(native=False)
        self.answer = ""
        self.seen: list[tuple[Any, ...]] = []

    def open_path(self, parent, *asked: str) -> str:
        self.seen.append(("open", *asked))
        return self.answer

    def open_folder(self, parent, *asked: str) -> str:
        self.seen.append(("folder", *asked))
        return self.answer

    def save_path(self, parent, *asked: str) -> str:
        self.seen.append(("save", *asked))
        return self.answer

    def unsaved(self, parent, name, lost, kept="") -> Any:
        self.seen.append(("unsaved", name, lost, kept))
        return "cancel"

    def confirm(self, parent, question, yes) -> bool:
        self.seen.append(("confirm", question, yes))
        return False


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def files(qtbot, tmp_path: Path, asked: Asked) -> ProjectFiles:
    window = QWidget()
    qtbot.addWidget(window)
    store = Store(parent=window)
    settings = Settings(QSettings(str(tmp_path / "s.ini"), QSettings.Format.IniFormat))
    link = AnsweringLink()
    link.setParent(window)
    weights = Weights(store, link, window)
    return ProjectFiles(window, store, History(store, window), settings, asked, weights)


def test_a_dialog_begins_in_the_folder_of_the_project_or_at_home(
    files: ProjectFiles, asked: Asked, tmp_path: Path
) -> None:
    home = str(Path.home())
    assert not files.open() and files.ask_artifact_path("Compare") == ""
    files.open_folder()
    assert asked.seen == [
        ("open", "Open", home, OPEN_FILTER),
        ("open", "Compare", home, ARTIFACT_FILTER),
        ("folder", "Open a folder", home),
    ]
    assert files.save_as(str(tmp_path / "mine"))
    asked.seen.clear()
    assert not files.open() and files.ask_data_path("folder") == files.ask_data_path("file") == ""
    assert asked.seen == [
        ("open", "Open", str(tmp_path), OPEN_FILTER),
        ("folder", "Choose the data", str(tmp_path)),
        ("open", "Choose the data", str(tmp_path), "All files (*)"),
    ]


def test_a_project_is_saved_under_a_name_with_its_suffix(
    files: ProjectFiles, asked: Asked, tmp_path: Path
) -> None:
    files._store.set_project(replace(Project(), name="a/b\0c"))
    assert not files.save()  # the person cancels
    assert asked.seen == [("save", "Save as", str(Path.home() / "a_b_c.tlab"), FILTER)]
    asked.answer = str(tmp_path / "net")
    assert files.save() and files.path == str(tmp_path / "net.tlab")
    assert files._store.project.name == "net"
    asked.answer = str(tmp_path / "other.tlab")
    assert files.save_as() and files.path == asked.answer
    assert asked.seen[-1] == ("save", "Save as", str(tmp_path / "net.tlab"), FILTER)


@pytest.mark.parametrize(
    ("answer", "path"), [("", ""), ("/x/a", "/x/a.csv"), ("/x/a.txt", "/x/a.txt")]
)
def test_a_name_without_a_suffix_gets_the_one_that_is_suggested(
    files: ProjectFiles, asked: Asked, answer: str, path: str
) -> None:
    asked.answer = answer
    assert files.ask_save_path("Save the table", "runs.csv", "Table (*.csv)") == path
    suggested = str(Path.home() / "runs.csv")
    assert asked.seen == [("save", "Save the table", suggested, "Table (*.csv)")]


def test_a_folder_that_is_chosen_is_shown(
    files: ProjectFiles, asked: Asked, tmp_path: Path
) -> None:
    shown: list[str] = []
    files.artifact_chosen.connect(shown.append)
    asked.answer = str(tmp_path)
    files.open_folder()
    assert shown == [str(tmp_path)]


def test_what_is_lost_is_named_and_where_weights_stay(
    files: ProjectFiles, asked: Asked, tmp_path: Path, training_snapshot: Any, monkeypatch
) -> None:
    assert files.may_leave() and asked.seen == []
    files._history.edit(edits.add_block(files._store.project, "nn.ReLU", 0, 0)[0], "Add")
    assert not files.may_leave()
    assert asked.seen == [("unsaved", "Untitled", ["your edits"], "")]
    files._store.set_project(replace(files._store.project, cells=(Cell("c1", "x = 1"),)))
    assert not files.may_close()
    assert asked.seen[1][2] == ["your edits", "the cells that you ran in the console"]
    assert files.save_as(str(tmp_path / "net"))
    run: TrainingSnapshot = training_snapshot(
        state="stopped", folder="/data/runs/r", checkpoint="/data/runs/r/1.pt",
        checkpoint_step=1234,
    )  # fmt: skip
    files._store.take(run)
    assert files._kept_weights() == ""  # nothing is lost
    monkeypatch.setattr(Weights, "modified", True)
    words = "The weights of step 1,234 stay in your data folder: Runs in Train opens them."
    assert not files.may_leave()
    assert asked.seen[-1][2:] == (["the weights that the model has learnt"], words)
    beside = replace(run, folder=str(tmp_path / "net.runs" / "r"))
    files._store.take(beside)
    assert files._kept_weights() == words.replace("your data folder", "net.runs")
    files._store.take(replace(beside, checkpoint=""))
    assert files._kept_weights() == ""


def test_a_run_that_goes_on_is_stopped_only_if_the_person_agrees(
    files: ProjectFiles, asked: Asked, training_snapshot: Any
) -> None:
    for state in ("paused", "finished", "stopped"):
        files._store.take(training_snapshot(state=state))
        assert files._may_stop() and asked.seen == []
    files._store.take(training_snapshot(state="running", folder="/data/runs/r"))
    assert not files._may_stop()
    ((kind, question, yes),) = asked.seen
    assert (kind, yes) == ("confirm", "Stop")
    assert question == (
        "A model is being trained. Stop it? The run stays in your data folder: Resume goes on"
        " from its last checkpoint."
    )
