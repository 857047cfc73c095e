"""The modal questions, answered as a person does."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QApplication,
    QFileDialog,
    QInputDialog,
    QMessageBox,
    QProgressBar,
    QProgressDialog,
    QPushButton,
    QWidget,
)

from app.window.dialogs import Dialogs


@pytest.fixture
def window(qtbot) -> QWidget:
    window = QWidget()
    qtbot.addWidget(window)
    return window


def when_open(act) -> None:
    """Do something with the modal dialog as soon as it is open."""
    QTimer.singleShot(0, lambda: act(QApplication.activeModalWidget()))


@pytest.mark.parametrize(
    ("button", "answer"),
    [
        (QMessageBox.StandardButton.Save, "save"),
        (QMessageBox.StandardButton.Discard, "discard"),
        (QMessageBox.StandardButton.Cancel, "cancel"),
    ],
)
def test_unsaved_changes_are_saved_dropped_or_kept(window, button, answer) -> None:
    seen = []

    def act(box: QMessageBox) -> None:
        default = box.standardButton(box.defaultButton())
        seen.extend((box.text(), box.informativeText(), box.icon(), default, box.windowTitle()))
        box.button(button).click()

    when_open(act)
    assert Dialogs(native=False).unsaved(window, "mine", ["your edits"]) == answer
    assert seen[:2] == ["Save “mine”?", "Without saving, your edits are lost."]
    assert seen[2] == QMessageBox.Icon.Question
    assert seen[3] == QMessageBox.StandardButton.Save


def test_all_that_would_be_lost_is_named(window) -> None:
    seen = []
    when_open(lambda box: (seen.append(box.informativeText()), box.reject()))
    told = Dialogs(native=False).unsaved(
        window, "mine", ["your edits", "cells", "weights"], "The run stays."
    )
    assert told == "cancel"
    assert seen == ["Without saving, your edits, cells and weights are lost. The run stays."]


@pytest.mark.parametrize("agrees", [True, False])
def test_what_cannot_be_undone_is_asked_first(window, agrees) -> None:
    seen = []

    def act(box: QMessageBox) -> None:
        assert (box.icon(), box.windowTitle()) == (QMessageBox.Icon.Question, "Tensor Lab")
        assert box.parentWidget() is window
        seen.append((box.text(), box.defaultButton().text().replace("&", "")))
        texts = {button.text().replace("&", ""): button for button in box.buttons()}
        texts["Delete" if agrees else "Cancel"].click()

    when_open(act)
    assert Dialogs(native=False).confirm(window, "Delete all runs?", "Delete") == agrees
    assert seen == [("Delete all runs?", "Cancel")]


@pytest.mark.parametrize("native", [True, False])
def test_a_file_is_asked_for_with_its_folder_and_kind(window, monkeypatch, native) -> None:
    asked = []

    def answer(parent, title, start, name_filter, options):
        asked.append((parent, title, start, name_filter, options))
        return "/home/me/a.tlab", name_filter

    monkeypatch.setattr(QFileDialog, "getOpenFileName", answer)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", answer)
    dialogs = Dialogs(native)
    given = (window, "Open a project", "/home/me", "Projects (*.tlab)")
    assert dialogs.open_path(*given) == dialogs.save_path(*given) == "/home/me/a.tlab"
    options = QFileDialog.Option(0) if native else QFileDialog.Option.DontUseNativeDialog
    assert asked == [(*given, options)] * 2


@pytest.mark.parametrize("native", [True, False])
def test_a_folder_is_asked_for(window, monkeypatch, native) -> None:
    asked = []
    monkeypatch.setattr(
        QFileDialog,
        "getExistingDirectory",
        lambda *given, options: asked.append((given, options)) or "/home/me/runs",
    )
    given = (window, "Open a folder", "/home/me")
    assert Dialogs(native).open_folder(*given) == "/home/me/runs"
    folders = QFileDialog.Option.ShowDirsOnly
    own = QFileDialog.Option.DontUseNativeDialog
    assert asked == [(given, folders if native else folders | own)]


@pytest.mark.parametrize("agrees", [True, False])
def test_a_line_is_asked_for(window, qtbot, agrees) -> None:
    seen = []

    def act(dialog: QInputDialog) -> None:
        parent, title = dialog.parentWidget(), dialog.windowTitle()
        seen.append((parent, title, dialog.labelText(), dialog.textValue()))
        dialog.setTextValue("new")
        (dialog.accept if agrees else dialog.reject)()

    when_open(act)
    answer = Dialogs(native=False).ask_line(window, "Rename", "Its new name", "old")
    assert answer == ("new" if agrees else None)
    assert seen == [(window, "Rename", "Its new name", "old")]


class _Work(QObject):
    done = Signal()


@pytest.mark.parametrize("how", ["done while the dialog opens", "done later", "not waited for"])
def test_a_wait_ends_with_the_signal_or_when_the_user_ends_it(window, monkeypatch, how) -> None:
    work = _Work()
    if how == "done while the dialog opens":
        show = QProgressDialog.show
        monkeypatch.setattr(QProgressDialog, "show", lambda self: (show(self), work.done.emit()))
    elif how == "done later":
        QTimer.singleShot(0, work.done.emit)
    else:
        QTimer.singleShot(0, lambda: window.findChild(QPushButton).click())
    Dialogs(native=False).wait(window, "Saving…", work.done)
    assert work.receivers("2done()") == 0


def test_a_wait_says_what_for_and_that_nobody_knows_how_long(window) -> None:
    work, seen = _Work(), []

    def look() -> None:
        dialog = window.findChild(QProgressDialog)
        seen.extend((dialog.labelText(), dialog.windowTitle(), dialog.isVisible()))
        seen.append(dialog.windowModality())
        bar = dialog.findChild(QProgressBar)
        seen.append((bar.minimum(), bar.maximum()))  # equal ends: Qt shows that it is busy
        work.done.emit()

    QTimer.singleShot(0, look)
    Dialogs(native=False).wait(window, "Saving…", work.done)
    modal = Qt.WindowModality.ApplicationModal
    assert seen == ["Saving…", "Tensor Lab", True, modal, (0, 0)]
