"""The window's presenter: title, undo, recent files, theme, recovered work, places."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import cast

import pytest
from PySide6.QtCore import QLockFile, QPoint, QRect, QSize
from PySide6.QtWidgets import QDialog, QLabel, QPushButton, QTextBrowser, QWidget

from app.actions import ON_CANVAS
from app.autosave import Autosave, Recovery
from app.presenters.window import WindowPresenter
from app.window.main_window import MainWindow
from app.window.new_window import apply_theme, fit_screen
from app.workbench import Workbench
from engine.project import edits
from engine.project.document import Project, ViewState, replace
from engine.project.subject import FileSubject
from widgets import theme


@pytest.fixture
def desk(bench: Workbench, qtbot, tmp_path: Path) -> Workbench:
    """The bench with a real window, and its presenter."""
    window = MainWindow()
    qtbot.addWidget(window)
    window.page_makers = {
        name: lambda name=name: window.add_page(name, QWidget())
        for name in ("start", "tensors", "model", "autograd", "train")
    }
    desk = replace(bench, window=window, actions=window.actions_table)
    autosave = Autosave(
        desk.store, lambda: desk.files.modified, lambda: desk.files.path, tmp_path / "kept"
    )
    presenter = WindowPresenter(desk, autosave, window)
    window.setProperty("presenter", presenter)
    window.show()
    return desk


def presenter_of(desk: Workbench) -> WindowPresenter:
    return cast(WindowPresenter, desk.window.property("presenter"))


def recovery_of(desk: Workbench, tmp_path: Path, original: str) -> Recovery:
    file = tmp_path / "left.recovery"
    file.write_text("{}")
    lock = QLockFile(str(tmp_path / "left.lock"))
    lock.tryLock(0)
    project = edits.add_block(Project(name="left"), "nn.Linear", 0, 0)[0]
    return Recovery(file, project, original, datetime(2026, 3, 4, 5, 6, 7), lock)


def press(desk: Workbench, key: str, text: str) -> None:
    banner = desk.window.banners.banner(key)
    assert banner is not None
    next(b for b in banner.findChildren(QPushButton) if b.text() == text).click()


def add_linear(desk: Workbench) -> None:
    desk.edit("Add Linear", lambda project: edits.add_block(project, "nn.Linear", 0, 0)[0])


def test_undo_and_redo_name_their_step_and_the_title_has_a_star(desk) -> None:
    undo, redo = desk.actions["edit.undo"], desk.actions["edit.redo"]
    assert (undo.text(), undo.isEnabled(), redo.text(), redo.isEnabled()) == (
        "&Undo", False, "&Redo", False)  # fmt: skip
    assert not desk.window.isWindowModified()
    assert desk.window.windowTitle() == f"{desk.project.name}[*] – Tensor Lab"
    add_linear(desk)
    assert (undo.text(), undo.isEnabled(), redo.isEnabled()) == ("&Undo Add Linear", True, False)
    assert desk.window.isWindowModified()
    desk.history.stack.undo()
    assert (undo.isEnabled(), redo.text(), redo.isEnabled()) == (False, "&Redo Add Linear", True)
    assert not desk.window.isWindowModified()


def test_saving_is_said_and_stands_in_the_title(desk, tmp_path) -> None:
    desk.dialogs.path = ""
    presenter_of(desk).save()
    assert desk.window.statusBar().currentMessage() == ""
    add_linear(desk)
    desk.dialogs.path = str(tmp_path / "mine.tlab")
    presenter_of(desk).save()
    assert desk.window.statusBar().currentMessage() == f"Saved {tmp_path / 'mine.tlab'}."
    assert desk.window.windowTitle() == "mine[*] – Tensor Lab"
    assert desk.window.windowFilePath() == str(tmp_path / "mine.tlab")
    assert not desk.window.isWindowModified()


def test_recent_files_are_offered_by_name(desk, tmp_path) -> None:
    menu = desk.window.recent_menu
    menu.aboutToShow.emit()
    (none,) = menu.actions()
    assert none.text() == "Nothing was opened or saved yet" and not none.isEnabled()
    add_linear(desk)
    desk.files.save_as(str(tmp_path / "mine.tlab"))
    desk.settings.add_recent_file(str(tmp_path / "gone.tlab"))
    menu.aboutToShow.emit()
    gone, mine = menu.actions()
    assert (gone.text(), mine.text()) == ("gone.tlab", "mine.tlab")
    assert mine.toolTip() == str(tmp_path / "mine.tlab")
    desk.files.new()
    mine.trigger()
    assert desk.files.path == str(tmp_path / "mine.tlab")
    gone.trigger()
    banner = desk.window.banners.banner("file")
    assert banner is not None and banner.title.startswith("gone.tlab was not opened.")
    mine.trigger()  # what opens takes the message away
    assert desk.window.banners.banner("file") is None
    desk.weights.failed.emit("The weights were not written.")
    banner = desk.window.banners.banner("weights")
    assert banner is not None and banner.title == "The weights were not written."


@pytest.mark.parametrize("choice", ["light", "dark", "system"])
def test_the_theme_that_is_chosen_is_marked_and_kept(desk, tmp_path, choice) -> None:
    presenter_of(desk).choose_theme(choice)
    assert desk.settings.theme == choice
    assert theme.current() is {"dark": theme.DARK}.get(choice, theme.LIGHT)
    window = MainWindow()
    again = replace(desk, window=window, actions=window.actions_table)
    autosave = Autosave(
        again.store, lambda: False, str, Path(desk.settings._store.fileName()).parent
    )
    WindowPresenter(again, autosave, window)
    marked = {name: again.actions[f"view.theme_{name}"] for name in ("light", "dark", "system")}
    assert [name for name, action in marked.items() if action.isChecked()] == [choice]
    marked["dark"].trigger()
    assert [name for name, action in marked.items() if action.isChecked()] == ["dark"]
    window.deleteLater()


def test_the_desktops_theme_counts_only_where_it_was_chosen(desk, qapp) -> None:
    apply_theme("dark")
    desk.settings.theme = "dark"
    qapp.styleHints().colorSchemeChanged.emit(qapp.styleHints().colorScheme())
    assert theme.current() is theme.DARK
    desk.settings.theme = "system"
    qapp.styleHints().colorSchemeChanged.emit(qapp.styleHints().colorScheme())
    assert theme.current() is theme.LIGHT


@pytest.mark.parametrize(("original", "of"), [("", ""), ("/home/me/a.tlab", " of /home/me/a.tlab")])
def test_recovered_work_is_offered_with_what_it_is(desk, tmp_path, original, of) -> None:
    recovery = recovery_of(desk, tmp_path, original)
    presenter_of(desk).offer([recovery])
    banner = desk.window.banners.banner("recovery_0")
    assert banner is not None
    assert banner.title == "Unsaved work was recovered: “left”"
    assert banner.text == (
        f"1 block{of}, saved 04 Mar 2026, 05:06:07, before the program ended unexpectedly."
    )
    press(desk, "recovery_0", "Restore")
    assert desk.files.path == original and desk.files.modified
    assert desk.project.name == (Path(original).stem or "left") and desk.project.model.blocks
    assert not recovery.file.exists() and desk.window.banners.banner("recovery_0") is None
    assert len(list((tmp_path / "kept").glob("*.recovery"))) == 1


def test_recovered_work_is_deleted_or_stays_offered(desk, tmp_path) -> None:
    recovery = recovery_of(desk, tmp_path, "")
    add_linear(desk)
    desk.dialogs.leave = "cancel"
    presenter_of(desk).offer([recovery])
    press(desk, "recovery_0", "Restore")
    assert desk.project.name != "left" and recovery.file.exists()
    press(desk, "recovery_0", "Discard")
    assert not recovery.file.exists() and desk.window.banners.banner("recovery_0") is None


def test_the_workspace_is_kept_and_only_the_canvas_has_its_actions(desk) -> None:
    for name in ("model", "train", "model", "tensors"):
        desk.window.show_workspace(name)
        assert desk.project.view.workspace == name
        assert {desk.actions[action].isEnabled() for action in ON_CANVAS} == {name == "model"}
    assert not desk.files.modified


@pytest.mark.parametrize(
    ("left_in", "shown"), [("train", "train"), ("start", "model"), ("model", "model")]
)
def test_a_project_opens_where_it_was_left(desk, left_in, shown) -> None:
    desk.files.new(replace(Project(), view=ViewState(workspace=left_in)))
    assert desk.window.workspace == shown


def test_leaving_asks_and_keeps_the_place_of_the_window(desk) -> None:
    add_linear(desk)
    desk.dialogs.leave = "cancel"
    assert not desk.window.close() and desk.settings.bytes("geometry").isEmpty()
    desk.dialogs.leave = "discard"
    desk.window.resize(1000, 700)
    assert desk.window.close()
    assert desk.settings.bytes("geometry") == desk.window.saveGeometry()


@pytest.mark.parametrize(
    ("free", "at", "place"),
    [
        (QRect(0, 0, 2000, 1500), QPoint(300, 200), QRect(300, 200, 1200, 800)),
        (QRect(0, 0, 2000, 1500), QPoint(1500, 200), QRect(392, 330, 1200, 800)),
        (QRect(0, 0, 1000, 600), QPoint(0, 0), QRect(0, 0, 984, 560)),
    ],
)
def test_the_window_and_its_frame_come_inside_the_screen(desk, free, at, place) -> None:
    desk.window.resize(QSize(1200, 800))
    desk.window.move(at)
    fit_screen(desk.window, free)
    assert QRect(desk.window.pos(), desk.window.size()) == place


def test_help_is_shown_on_sheets(desk, link) -> None:
    presenter_of(desk).show_shortcuts()
    (sheet,) = desk.window.findChildren(QDialog, "help_sheet")
    assert "Autograd graph" in sheet.findChild(QTextBrowser).toPlainText()
    sheet.deleteLater()
    link.get_ready()
    presenter_of(desk).show_about()
    about = desk.window.findChildren(QDialog, "help_sheet")[-1]
    assert "2.13.0" in about.findChild(QTextBrowser).toPlainText()


def test_what_autosave_could_not_write_is_said(desk) -> None:
    assert desk.window.findChild(QLabel, "model_totals") is not None
    presenter_of(desk)._autosave.failed.emit("Unsaved work could not be saved for recovery: full.")
    assert desk.window.statusBar().currentMessage() == (
        "Unsaved work could not be saved for recovery: full."
    )


def test_recovered_work_on_code_is_told_by_its_subject(desk, tmp_path) -> None:
    recovery = recovery_of(desk, tmp_path, "")
    project = edits.set_subject(recovery.project, FileSubject("/work/net.py", "Net()"))
    presenter_of(desk).offer([replace(recovery, project=project)])
    banner = desk.window.banners.banner("recovery_0")
    assert banner is not None and banner.text.startswith("net.py: Net(), saved 04 Mar 2026")
    recovery.discard()
