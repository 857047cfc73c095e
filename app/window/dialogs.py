"""The modal questions: which file to use, and what to do with unsaved changes.

Classes of `QtWidgets` are made when they are first named: here when a question is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from PySide6 import QtWidgets
from PySide6.QtCore import QEventLoop, Qt, SignalInstance
from PySide6.QtWidgets import QWidget

UnsavedAnswer = Literal["save", "discard", "cancel"]


class Dialogs:
    """Asks the user. Tests replace it by an object with the same methods.

    `native` chooses the system's file dialogs; a test can only use Qt's own.
    """

    def __init__(self, native: bool = True) -> None:
        self._native = native

    def open_path(self, parent: QWidget, title: str, start: str, name_filter: str) -> str:
        """The chosen file; empty if the user cancels."""
        return QtWidgets.QFileDialog.getOpenFileName(
            parent, title, start, name_filter, options=self._options()
        )[0]

    def open_folder(self, parent: QWidget, title: str, start: str) -> str:
        """The chosen folder; empty if the user cancels."""
        options = self._options() | QtWidgets.QFileDialog.Option.ShowDirsOnly
        return QtWidgets.QFileDialog.getExistingDirectory(parent, title, start, options=options)

    def save_path(self, parent: QWidget, title: str, start: str, name_filter: str) -> str:
        """The chosen file, which the user may have agreed to overwrite; empty if the user
        cancels."""
        return QtWidgets.QFileDialog.getSaveFileName(
            parent, title, start, name_filter, options=self._options()
        )[0]

    def unsaved(
        self, parent: QWidget, name: str, lost: Sequence[str], kept: str = ""
    ) -> UnsavedAnswer:
        """`lost` says what of the project `name` is not saved, each in the plural; `kept` is a
        sentence on what stays all the same."""
        box = QtWidgets.QMessageBox(parent)
        box.setIcon(QtWidgets.QMessageBox.Icon.Question)
        box.setWindowTitle("Unsaved changes")
        box.setText(f"Save “{name}”?")
        things = " and ".join(filter(None, (", ".join(lost[:-1]), lost[-1])))
        box.setInformativeText(f"Without saving, {things} are lost. {kept}".strip())
        box.setStandardButtons(
            QtWidgets.QMessageBox.StandardButton.Save
            | QtWidgets.QMessageBox.StandardButton.Discard
            | QtWidgets.QMessageBox.StandardButton.Cancel
        )
        box.setDefaultButton(QtWidgets.QMessageBox.StandardButton.Save)
        button = box.exec()
        box.deleteLater()
        if button == QtWidgets.QMessageBox.StandardButton.Save:
            return "save"
        return "discard" if button == QtWidgets.QMessageBox.StandardButton.Discard else "cancel"

    def ask_line(self, parent: QWidget, title: str, label: str, text: str) -> str | None:
        """A line of text, at first `text`; None if the user cancels."""
        line, agreed = QtWidgets.QInputDialog.getText(parent, title, label, text=text)
        return line if agreed else None

    def wait(self, parent: QWidget, text: str, done: SignalInstance) -> None:
        """Show `text` until the signal `done` comes, or the user does not want to wait."""
        loop = QEventLoop()
        progress = QtWidgets.QProgressDialog(text, "Do not wait", 0, 0, parent)
        progress.setWindowTitle("Tensor Lab")
        progress.setWindowModality(Qt.WindowModality.ApplicationModal)
        progress.setMinimumDuration(0)
        ended: list[bool] = []  # a signal that comes before the loop runs cannot end it

        def end() -> None:
            ended.append(True)
            loop.quit()

        progress.canceled.connect(end)
        connection = done.connect(end)
        progress.show()
        if not ended:
            loop.exec()
        done.disconnect(connection)
        progress.deleteLater()

    def confirm(self, parent: QWidget, question: str, yes: str) -> bool:
        """Ask before something that cannot be undone; `yes` is the text of the button that does
        it."""
        box = QtWidgets.QMessageBox(
            QtWidgets.QMessageBox.Icon.Question, "Tensor Lab", question, parent=parent
        )
        act = box.addButton(yes, QtWidgets.QMessageBox.ButtonRole.AcceptRole)
        box.addButton(QtWidgets.QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(QtWidgets.QMessageBox.StandardButton.Cancel)
        box.exec()
        agreed = box.clickedButton() is act
        box.deleteLater()
        return agreed

    def _options(self) -> QtWidgets.QFileDialog.Option:
        options = QtWidgets.QFileDialog.Option
        return options(0) if self._native else options.DontUseNativeDialog
