"""The window's frame: what it asks, what it remembers, what it takes."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QMargins, QMimeData, QPointF, QRect, QSettings, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QPushButton

from app.actions import SPECS, TRACE_ACTIONS
from app.application import Application, build
from app.autosave import Autosave, recovery_folder
from app.presenters.guide import FOLDER, NAMES
from app.processes.inline_link import InlineLink
from app.settings import Settings
from app.store import Store
from app.window.dialogs import Dialogs
from app.window.new_window import fit_screen
from engine.project import edits, files
from engine.project.document import WORKSPACES, Project
from tests.gestures import press_key


@pytest.fixture
def make(qtbot, tmp_path, answers):
    """Open the program again and again on the same settings; all are closed at the end."""
    opened: list[Application] = []

    def open_program(path: str = "") -> Application:
        settings = Settings(QSettings(str(tmp_path / "s.ini"), QSettings.Format.IniFormat))
        application = build(InlineLink, answers, settings, tmp_path / "recovery")
        application.window.show()
        opened.append(application)
        application.start(path)
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


def test_a_workspace_that_is_shown_is_in_front_and_marked_in_the_rail(make):
    window = make().window
    changed = []
    window.workspace_changed.connect(changed.append)
    for name in (*WORKSPACES, WORKSPACES[0], WORKSPACES[0]):
        window.show_workspace(name)
        assert window.stack.currentWidget() is window.page(name)
        marked = [key for key, button in window.rail.buttons.items() if button.isChecked()]
        assert (marked, window.workspace) == ([name], name)
    assert changed[-2:] == [WORKSPACES[-1], WORKSPACES[0]]  # each is told once


def test_recent_files_are_in_the_menu_and_open(make, answers, tmp_path):
    program = make()
    menu = program.window.recent_menu
    menu.aboutToShow.emit()
    empty = [(action.text(), action.isEnabled()) for action in menu.actions()]
    assert empty == [("Nothing was opened or saved yet", False)]
    paths = [str(tmp_path / name) for name in ("first.tlab", "second.tlab")]
    for path in paths:
        files.save(work(), path)
        assert program.bench.files.open(path)
    menu.aboutToShow.emit()
    shown = [(action.text(), action.toolTip()) for action in menu.actions()]
    assert shown == [("second.tlab", paths[1]), ("first.tlab", paths[0])]
    menu.actions()[1].trigger()
    assert program.bench.files.path == paths[0]


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


def test_the_window_and_its_title_come_inside_a_small_screen(make):
    program = make()
    for free in ((0, 0, 1366, 728), (0, 32, 1024, 668), (1920, 0, 1366, 768)):
        program.window.setGeometry(0, 0, 1440, 900)
        fit_screen(program.window, QRect(*free))
        with_frame = program.window.size().grownBy(QMargins(8, 32, 8, 8))
        assert QRect(*free).contains(QRect(program.window.pos(), with_frame)), free
        assert program.window.width() >= 1000 and program.window.height() >= 600


def test_a_window_that_fits_its_screen_stays_as_it_is(make):
    program = make()
    program.window.setGeometry(100, 100, 1440, 900)
    before = program.window.geometry()
    fit_screen(program.window, QRect(0, 0, 1920, 1080))
    assert program.window.geometry() == before


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


def test_a_program_without_parts_of_a_test_has_its_own(qtbot):
    program = build(InlineLink)
    try:
        assert type(program.bench.dialogs) is Dialogs
        assert program._recovery == recovery_folder()
        assert program.bench.settings.recent_files == ()
        assert not program.window.isVisible() and program.bench.link.state == "lost"
    finally:
        program.close()
        program.window.deleteLater()
        program.deleteLater()


def test_a_data_folder_that_cannot_be_made_does_not_stop_the_start(qtbot, tmp_path, answers):
    (tmp_path / "data").write_text("a file where the folder should be", encoding="utf-8")
    settings = Settings(QSettings(str(tmp_path / "data" / "s.ini"), QSettings.Format.IniFormat))
    program = build(InlineLink, answers, settings, tmp_path / "data" / "recovery")
    try:
        program.window.show()
        program.start()
        program.bench.link.drain()
        assert program.bench.link.state == "ready"
        program.workspaces.model.edits.add_block("nn.Linear", 0, 0)
        program.autosave.write()
        said = program.window.statusBar().currentMessage()
        assert said.startswith("Unsaved work cannot be saved for recovery in ")
        program.workspaces.at_tensors().submit("x = 1")
        program.bench.link.drain()
        answers.save = str(tmp_path / "work.tlab")
        program.bench.actions["file.save"].trigger()
        assert not program.window.isWindowModified()
    finally:
        assert program.window.close()
        program.window.deleteLater()
        program.deleteLater()


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


def test_a_damaged_file_at_the_start_is_told_and_the_engine_starts(make, tmp_path):
    path = tmp_path / "damaged.tlab"
    path.write_text(files.dumps(work()).replace('"canvas_zoom": 1.0', '"canvas_zoom": NaN'))
    program = make(str(path))
    program.bench.link.drain()
    assert program.window.workspace == "start"
    banner = program.window.banners.banner("file")
    assert banner is not None and "view.canvas_zoom: This number is not finite." in banner.title
    assert program.bench.link.state == "ready"


def test_a_project_at_the_start_is_shown_at_once_and_work_is_offered(make, tmp_path):
    crashed = Autosave(Store(work()), lambda: True, lambda: "", tmp_path / "recovery")
    crashed.write()
    crashed._lock.unlock()  # as the system does when a process dies
    path = tmp_path / "work.tlab"
    files.save(work(), path)
    program = make(str(path))
    assert program.window.workspace == "model"
    assert "start" not in program.window.pages
    assert program.window.banners.banner("recovery_0") is not None


def test_a_project_dropped_anywhere_is_opened(make, tmp_path):
    program = make()
    for workspace in WORKSPACES:
        path = tmp_path / f"{workspace}.tlab"
        files.save(work(), path)
        program.window.show_workspace(workspace)
        QApplication.processEvents()
        target = program.window.childAt(program.window.rect().center())
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(path))])
        copy, left = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
        none = Qt.KeyboardModifier.NoModifier
        enter = QDragEnterEvent(QPointF(5, 5).toPoint(), copy, data, left, none)
        QApplication.sendEvent(target, enter)
        assert enter.isAccepted(), workspace
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
        press_key(
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


def test_the_guide_opens_beside_the_window_and_keeps_its_size(make):
    program = make()
    assert program.bench.actions["help.guide"].shortcut().toString() == "Shift+F1"
    program.bench.actions["help.guide"].trigger()
    guide = program.guide.window
    assert guide.isVisible() and not guide.isModal() and guide.view.page.name == NAMES[0]
    assert sorted(NAMES) == sorted(path.name for path in FOLDER.iterdir())
    assert guide.view.contents.topLevelItemCount() == len(NAMES)
    guide.view.field.setText("torchrun")
    assert guide.view.hits
    press_key(guide.view.field, Qt.Key.Key_Escape)
    assert guide.isVisible() and guide.view.field.text() == ""
    guide.resize(700, 500)
    press_key(guide.view.field, Qt.Key.Key_Escape)
    assert not guide.isVisible()
    program.bench.actions["help.guide"].trigger()
    assert program.guide.window is guide and guide.isVisible()
    program.window.close()
    again = make()
    again.bench.actions["help.guide"].trigger()
    assert (again.guide.window.width(), again.guide.window.height()) == (700, 500)
