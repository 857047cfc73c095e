"""The whole program with its engine in this process, and a person who answers its dialogs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QSettings

from app.application import Application, build
from app.processes.inline_link import InlineLink
from app.settings import Settings
from app.window.dialogs import Dialogs, UnsavedAnswer


class Answers(Dialogs):
    """Answers the dialogs in place of a person. The test sets the answers."""

    def __init__(self) -> None:
        super().__init__(native=False)
        self.open, self.save = "", ""
        self.leave: UnsavedAnswer = "discard"

    def open_path(self, *_args) -> str:
        return self.open

    def save_path(self, *_args) -> str:
        return self.save

    def unsaved(self, *_args) -> UnsavedAnswer:
        return self.leave

    def confirm(self, *_args) -> bool:
        return True


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def program(forked_processes, qtbot, tmp_path, answers) -> Iterator[Application]:
    """The program, shown and started; `program.bench.link.drain()` lets the engine work."""
    settings = Settings(QSettings(str(tmp_path / "settings.ini"), QSettings.Format.IniFormat))
    application = build(InlineLink, answers, settings, tmp_path / "recovery")
    application.window.show()
    application.start()
    application.bench.link.drain()
    yield application
    application.window.close()
    application.window.deleteLater()
    application.deleteLater()
