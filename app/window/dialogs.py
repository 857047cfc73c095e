"""The modal questions: which file to use, and what to do with unsaved changes."""

from __future__ import annotations

from typing import Literal

from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

UnsavedAnswer = Literal["save", "discard", "cancel"]


class Dialogs:
    """Asks the user. Tests and the tour replace it by an object with the same methods.

    `native` chooses the system's file dialogs; a test can only use Qt's own.
    """

    def __init__(self, native: bool = True) -> None:
        self._options = QFileDialog.Option(0) if native else QFileDialog.Option.DontUseNativeDialog

    def open_path(self, parent: QWidget, title: str, start: str, name_filter: str) -> str:
        """The chosen file; empty if the user cancels."""
        return QFileDialog.getOpenFileName(
            parent, title, start, name_filter, options=self._options
        )[0]

    def save_path(self, parent: QWidget, title: str, start: str, name_filter: str) -> str:
        """The chosen file, which the user may have agreed to overwrite; empty if the user
        cancels."""
        return QFileDialog.getSaveFileName(
            parent, title, start, name_filter, options=self._options
        )[0]

    def unsaved(self, parent: QWidget, name: str) -> UnsavedAnswer:
        box = QMessageBox(parent)
        box.setIcon(QMessageBox.Icon.Question)
        box.setWindowTitle("Unsaved changes")
        box.setText(f"Save the changes to “{name}”?")
        box.setInformativeText("Without saving, they are lost.")
        box.setStandardButtons(
            QMessageBox.StandardButton.Save
            | QMessageBox.StandardButton.Discard
            | QMessageBox.StandardButton.Cancel
        )
        box.setDefaultButton(QMessageBox.StandardButton.Save)
        button = box.exec()
        box.deleteLater()
        if button == QMessageBox.StandardButton.Save:
            return "save"
        return "discard" if button == QMessageBox.StandardButton.Discard else "cancel"

    def confirm(self, parent: QWidget, question: str, yes: str) -> bool:
        """Ask before something that cannot be undone; `yes` is the text of the button that does
        it."""
        box = QMessageBox(QMessageBox.Icon.Question, "Tensor Lab", question, parent=parent)
        act = box.addButton(yes, QMessageBox.ButtonRole.AcceptRole)
        box.addButton(QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(QMessageBox.StandardButton.Cancel)
        box.exec()
        agreed = box.clickedButton() is act
        box.deleteLater()
        return agreed
