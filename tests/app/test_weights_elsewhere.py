"""The weights beside a project while the engine is elsewhere: it outlives the window, and sees the
files of another machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings

from app.other_files import Done, NoOtherFiles, Stop
from app.settings import Settings
from app.store import Store
from app.weights import Weights
from engine.connecting.engine_place import EnginePlace
from engine.project.files import weights_file
from engine.protocol import OpenWeightsCommand, SavedWeightsSnapshot, StopSignal
from tests.app.conftest import AnsweringLink
from tests.app.test_weights import Desk


@pytest.fixture
def desk(tmp_path, qapp, training_snapshot) -> Desk:
    return Desk(tmp_path, training_snapshot)


# -- an engine that outlives the window ------------------------------------------------------------


class FarLink(AnsweringLink):
    """Of an engine on another machine."""

    elsewhere = EnginePlace("ssh box")  # type: ignore[assignment]


@pytest.fixture
def window(tmp_path, qapp, training_snapshot):
    """Open a window on the same settings: what it knows of weights, and its link."""
    store = QSettings(str(tmp_path / "s.ini"), QSettings.Format.IniFormat)

    def open_window(kind: type[AnsweringLink] = FarLink) -> Desk:
        desk = Desk(tmp_path, training_snapshot)
        desk.store, desk.link = Store(), kind()
        desk.link.snapshot.connect(desk.store.take)
        desk.link.get_ready()
        desk.settings = Settings(store)
        desk.weights = Weights(desk.store, desk.link, settings=desk.settings)
        return desk

    return open_window


def test_a_run_that_goes_on_elsewhere_is_remembered_with_its_project(window):
    desk = window()
    desk.train(1)
    assert desk.settings.going_run == ("r", "")
    desk.weights.save(desk.path)
    desk.train(2)
    assert desk.settings.going_run == ("r", desk.path)
    later = window()
    later.train(3)  # it shows no project yet, and leaves that of the run
    assert later.settings.going_run == ("r", desk.path)
    later.train(1, run="next")
    assert later.settings.going_run == ("next", "")
    near = window(AnsweringLink)
    near.settings.going_run = ("", "")
    near.train(1)
    assert near.settings.going_run == ("", "")


@pytest.mark.parametrize("has_file", [False, True])
def test_what_a_run_learnt_while_no_window_was_there_is_not_replaced(window, has_file):
    before = window()
    before.weights.open(before.path)
    before.train(1)
    assert before.settings.going_run == ("r", before.path)
    if has_file:
        before.file.write_bytes(b"older weights")
    after = window()
    after.train(9, state="finished")
    assert after.settings.going_run == ("r", after.path)
    sent = len(after.link.sent)
    after.weights.open(after.path)
    assert after.link.sent[sent:] == [] and after.settings.going_run == ("", "")
    assert after.weights.learnt and after.weights.modified
    after.train(9, state="finished")
    after.weights.save(after.path)
    after.write("r", 9)
    assert not after.weights.modified
    after.weights.open(after.path)  # from now on a project like any other
    assert isinstance(after.link.sent[-1], OpenWeightsCommand)


@pytest.mark.parametrize(("run", "path"), [("other", "net.tlab"), ("r", "other.tlab")])
def test_a_run_of_another_project_does_not_keep_its_weights(window, tmp_path, run, path):
    desk = window()
    desk.settings.going_run = (run, str(tmp_path / path))
    desk.train(9, state="finished")
    desk.file.write_bytes(b"weights")
    desk.weights.open(desk.path)
    assert isinstance(desk.link.sent[-1], OpenWeightsCommand)
    assert desk.settings.going_run == (run, str(tmp_path / path))


def test_a_run_that_another_project_has_ended_is_no_run_of_either(window, tmp_path):
    desk, other = window(), str(tmp_path / "other.tlab")
    weights_file(other).write_bytes(b"weights")
    desk.weights.open(desk.path)
    desk.train(1)
    desk.weights.open(other)
    assert desk.link.signals == [StopSignal()] and desk.settings.going_run == ("", "")
    for state in ("running", "stopped"):
        desk.train(2, state=state)
        assert desk.settings.going_run == ("", "")
    for path in (other, desk.path):  # its weights have gone: those of the files are loaded
        after = window()
        after.train(2, state="stopped")
        weights_file(path).write_bytes(b"weights")
        after.weights.open(path)
        assert after.link.sent[-1].path == os.fsencode(weights_file(path))


def test_a_run_whose_end_the_window_saw_is_nothing_special(window):
    desk = window()
    desk.weights.open(desk.path)
    desk.train(1)
    desk.train(9, state="finished")
    assert desk.settings.going_run == ("", "")
    desk.file.write_bytes(b"weights")
    desk.weights.open(desk.path)
    assert isinstance(desk.link.sent[-1], OpenWeightsCommand)


# -- an engine that sees the files of another machine ----------------------------------------------


class Box(NoOtherFiles):
    """Another machine; the test ends its copies."""

    machine = "box"

    def __init__(self) -> None:
        self.folder = "/there"
        self.fetched: list[tuple[str, Path, Done]] = []
        self.brought: list[tuple[Path, str, Done]] = []

    def fetch(self, there: str, here: Path, done: Done) -> Stop:
        self.fetched.append((there, here, done))
        return lambda: None

    def bring(self, here: Path, there: str, done: Done) -> None:
        self.brought.append((here, there, done))


@pytest.fixture
def box(desk) -> Box:
    box = Box()
    desk.weights.use_there(box)
    desk.settled = []
    desk.weights.settled.connect(lambda: desk.settled.append(desk.weights.modified))
    return box


def save_there(desk) -> None:
    desk.weights.save(desk.path)
    assert desk.link.sent[-1].path == b"/there/net.safetensors"
    desk.link.answer(SavedWeightsSnapshot(run="r", step=1))


def test_weights_are_saved_once_the_copy_of_them_is_here(desk, box):
    desk.train(step=1)
    save_there(desk)
    ((*places, done),) = box.fetched
    assert places == ["/there/net.safetensors", desk.file]
    assert desk.weights.writing and desk.weights.modified and desk.settled == []
    desk.file.write_bytes(b"weights")
    done("")
    assert not desk.weights.writing and not desk.weights.modified and desk.settled == [False]
    assert desk.weights.foreign_file(desk.path) == ""


def test_a_copy_that_fails_is_told_and_the_weights_stay_unsaved(desk, box):
    desk.train(step=1)
    save_there(desk)
    box.fetched[0][2]("the line is cut")
    assert desk.failures == ["The weights were not saved in net.safetensors: the line is cut"]
    assert not desk.weights.writing and desk.weights.modified and desk.settled == [True]


@pytest.mark.parametrize("another", [False, True])
def test_a_copy_goes_on_without_the_engine_and_is_told_at_its_own_end(desk, box, another):
    desk.train(step=1)
    save_there(desk)
    if another:
        desk.weights.save(desk.path)  # the engine has not answered
    desk.link.close()
    assert len(desk.failures) == another
    assert desk.weights.writing and desk.settled == []
    box.fetched[0][2]("the line is cut")
    assert len(desk.failures) == another + 1 and desk.settled == [desk.weights.writing] == [False]


def test_without_a_folder_there_nothing_is_saved_and_opening_waits(desk, box):
    box.folder = ""
    desk.train(step=1)
    sent = len(desk.link.sent)
    desk.weights.save(desk.path)
    assert desk.failures == [
        "The weights were not saved in net.safetensors: nothing can be copied from box yet"
    ]
    assert desk.settled == [True]
    desk.file.write_bytes(b"weights")
    desk.weights.open(desk.path)
    assert desk.link.sent[sent:] == [] and box.brought == []


@pytest.mark.parametrize("failure", ["", "the line is cut"])
def test_weights_are_opened_from_a_copy_there(desk, box, failure):
    box.folder = ""
    desk.file.write_bytes(b"weights")
    desk.weights.open(desk.path)
    box.folder = "/there"
    desk.weights.begin_there()
    ((here, there, done),) = box.brought
    assert (here, there, desk.link.sent) == (desk.file, "/there/net.safetensors", [])
    done(failure)
    told = [f"The weights beside the project were not loaded. {failure}"]
    assert desk.failures == told * bool(failure)
    assert [command.path for command in desk.link.sent] == [there.encode()] * (not failure)


def test_a_copy_for_a_project_that_is_shown_no_more_is_not_opened(desk, box, tmp_path):
    desk.file.write_bytes(b"weights")
    desk.weights.open(desk.path)
    desk.weights.open(str(tmp_path / "other.tlab"))
    box.brought[0][2]("")
    box.brought[0][2]("the line is cut")
    assert [command.path for command in desk.link.sent] == [b""] and desk.failures == []
