"""The window's frame: what it asks, what it remembers, what it takes."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QMimeData, QPointF, QSettings, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QPushButton

from app.actions import SPECS, TRACE_ACTIONS
from app.application import Application, build
from app.autosave import Autosave
from app.inline_link import InlineLink
from app.settings import Settings
from app.store import Store
from engine.project import edits, files
from engine.project.document import WORKSPACES, Project


@pytest.fixture
def make(qtbot, tmp_path, answers):
    """Open the program again and again on the same settings; all are closed at the end."""
    opened: list[Application] = []

    def open_program() -> Application:
        settings = Settings(QSettings(str(tmp_path / "s.ini"), QSettings.Format.IniFormat))
        application = build(InlineLink, answers, settings, tmp_path / "recovery")
        application.window.show()
        opened.append(application)
        application.start()
        return application

    yield open_program
    answers.leave = "discard"
    for application in opened:
        application.window.close()
        application.window.deleteLater()
        application.deleteLater()


def work() -> Project:
    return edits.add_block(Project(name="Work"), "nn.Linear", 0, 0)[0]


def test_every_action_teaches():
    assert all(spec.tip.endswith(".") and spec.icon for spec in SPECS)
    for shared in (True, False):  # the trace and the passes never have their keys together
        rows = [spec for spec in SPECS if (spec.id in TRACE_ACTIONS) == shared and spec.shortcut]
        assert len({spec.shortcut for spec in rows}) == len(rows)


def test_closing_asks_about_unsaved_changes(make, answers):
    program = make()
    program.workspaces.model.edits.add_block("nn.Linear", 0, 0)
    assert program.window.isWindowModified()
    answers.leave = "cancel"
    assert not program.window.close()
    assert program.window.isVisible()
    answers.leave = "discard"
    assert program.window.close()
    assert program.bench.link.state == "lost"
    assert list((program._recovery).glob("*.recovery")) == []


def test_closing_asks_while_a_model_is_trained(make, answers, monkeypatch):
    from app import templates
    from engine.protocol import PauseSignal, TrainingSnapshot

    program = make()
    program.bench.files.new(templates.load_template("mlp"))
    program.bench.actions["train.start"].trigger()
    for _ in range(10):
        program.bench.link._work()
    assert program.bench.store.newest(TrainingSnapshot).state == "running"
    asked: list[str] = []
    monkeypatch.setattr(answers, "confirm", lambda *args: bool(asked.append(args[1])))
    assert not program.window.close()
    assert "being trained" in asked[0]
    program.bench.link.signal(PauseSignal())
    program.bench.link.drain()
    assert program.window.close()
    assert len(asked) == 1


def test_size_panels_theme_and_recent_files_are_remembered(make, answers, tmp_path):
    program = make()
    program.window.resize(790, 640)  # the offscreen platform's screen is 800 × 800
    size = program.window.size()
    program.window.page("model").code_dock.hide()
    program.bench.actions["view.theme_dark"].trigger()
    answers.save = str(tmp_path / "kept.tlab")
    program.bench.actions["file.save"].trigger()
    program.window.close()
    again = make()
    assert again.window.size() == size
    assert again.window.page("model").code_dock.isHidden()
    assert again.bench.actions["view.theme_dark"].isChecked()
    again.window.recent_menu.aboutToShow.emit()
    assert [a.text() for a in again.window.recent_menu.actions()] == ["kept.tlab"]
    again.window.recent_menu.actions()[0].trigger()
    assert again.bench.files.path == answers.save


def test_a_project_opens_in_the_workspace_it_was_left_in(make, answers, tmp_path):
    program = make()
    program.bench.files.new(work())
    program.window.show_workspace("train")
    answers.save = str(tmp_path / "left.tlab")
    program.bench.actions["file.save"].trigger()
    program.bench.actions["file.new"].trigger()
    assert program.window.workspace == "model"
    program.bench.files.open(answers.save)
    assert program.window.workspace == "train"


def test_work_that_was_left_behind_is_offered_and_restored(make, tmp_path):
    crashed = Autosave(Store(work()), lambda: True, lambda: "", tmp_path / "recovery")
    crashed.write()
    crashed._lock.unlock()  # as the system does when a process dies
    program = make()
    banner = program.window.banners.banner("recovery_0")
    assert banner is not None and "Work" in banner.title
    banner.findChild(QPushButton, "banner_restore").click()
    assert program.bench.store.project.model == work().model
    assert program.window.isWindowModified()
    assert not crashed.file.exists()
    assert program.autosave.file.exists()


def test_discarded_work_is_offered_no_more(make, tmp_path):
    crashed = Autosave(Store(work()), lambda: True, lambda: "", tmp_path / "recovery")
    crashed.write()
    crashed._lock.unlock()
    program = make()
    banner = program.window.banners.banner("recovery_0")
    banner.findChild(QPushButton, "banner_discard").click()
    assert program.bench.store.project == Project(view=program.bench.store.project.view)
    assert not crashed.file.exists()
    assert program.window.banners.isHidden()


@pytest.mark.parametrize("workspace", WORKSPACES)
def test_a_project_dropped_anywhere_is_opened(make, tmp_path, workspace):
    path = tmp_path / "dropped.tlab"
    files.save(work(), path)
    program = make()
    program.window.show_workspace(workspace)
    QApplication.processEvents()
    target = program.window.childAt(program.window.rect().center())
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    copy, left = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    none = Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(QPointF(5, 5).toPoint(), copy, data, left, none)
    QApplication.sendEvent(target, enter)
    assert enter.isAccepted()
    QApplication.sendEvent(program.window, QDropEvent(QPointF(5, 5), copy, data, left, none))
    assert program.bench.files.path == str(path)


def test_other_files_are_not_taken(make):
    program = make()
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile("/tmp/picture.png")])
    enter = QDragEnterEvent(
        QPointF(5, 5).toPoint(),
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    enter.ignore()
    QApplication.sendEvent(program.window, enter)
    assert not enter.isAccepted()


def test_the_rail_and_keys_lead_to_the_workspaces(make, qtbot):
    program = make()
    with qtbot.waitActive(program.window):
        program.window.activateWindow()
    for index, name in enumerate(WORKSPACES, start=1):
        qtbot.keyClick(
            program.window, getattr(Qt.Key, f"Key_{index}"), Qt.KeyboardModifier.ControlModifier
        )
        assert program.window.workspace == name
    program.window.rail.buttons["model"].click()
    assert program.window.workspace == "model"


def test_the_edit_menu_names_the_step(make):
    program = make()
    assert not program.bench.actions["edit.undo"].isEnabled()
    program.workspaces.model.edits.add_block("nn.Linear", 0, 0)
    assert program.bench.actions["edit.undo"].text() == "&Undo Add Linear"
    program.bench.actions["edit.undo"].trigger()
    assert program.bench.actions["edit.redo"].text() == "&Redo Add Linear"


def test_help_lists_every_shortcut(make):
    program = make()
    program.bench.actions["help.shortcuts"].trigger()
    sheet = program.window.findChild(object, "help_sheet")
    text = sheet.findChild(object, "help_text").toPlainText()
    for spec in SPECS:
        if spec.shortcut:
            assert spec.tip in text
    sheet.close()
