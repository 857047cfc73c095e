"""The whole program with its engine in this process, and a person who answers its dialogs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings

from app.application import Application, build
from app.processes.inline_link import InlineLink
from app.processes.link import EngineLink, Link
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


@contextmanager
def started(link: type[Link], answers: Answers, folder: Path) -> Iterator[Application]:
    settings = Settings(QSettings(str(folder / "settings.ini"), QSettings.Format.IniFormat))
    application = build(link, answers, settings, folder / "recovery")
    application.window.show()
    application.start()
    yield application
    application.window.close()
    if isinstance(application.bench.link, EngineLink):
        application.bench.link.wait_closed()
    application.window.deleteLater()
    application.deleteLater()


@pytest.fixture
def program(forked_processes, qtbot, tmp_path, answers) -> Iterator[Application]:
    """The program, shown and started; `program.bench.link.drain()` lets the engine work."""
    with started(InlineLink, answers, tmp_path) as application:
        application.bench.link.drain()
        yield application


@pytest.fixture
def real_program(forked_processes, qtbot, tmp_path, answers) -> Iterator[Application]:
    """The program with an engine process, ready."""
    with started(EngineLink, answers, tmp_path) as application:
        qtbot.waitUntil(lambda: application.bench.link.state == "ready", timeout=60_000)
        yield application
