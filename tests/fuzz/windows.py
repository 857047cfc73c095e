"""Broken projects in the real window: each is told in a banner, or shown on every page."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from PySide6.QtCore import QEvent, QSettings, qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from app.application import build
from app.selection.references import Blocks
from app.settings import Settings
from app.window.dialogs import Dialogs, UnsavedAnswer
from tests.fuzz.projects import Projects


class _Discards(Dialogs):
    def unsaved(self, *_args) -> UnsavedAnswer:
        return "discard"

    def confirm(self, *_args) -> bool:
        return True


class Windows:
    """Opens one broken project file a call, in a window without an engine."""

    def __init__(self, random_: random.Random, folder: Path) -> None:
        self._handler = qInstallMessageHandler(
            lambda *_: None
        )  # what a window without a screen cannot do
        qt = QApplication.instance() or QApplication(["tensorlab"])
        assert isinstance(qt, QApplication)
        self._qt = qt
        settings = Settings(QSettings(str(folder / "s.ini"), QSettings.Format.IniFormat))
        self._application = build(
            dialogs=_Discards(native=False), settings=settings, recovery=folder / "recovery"
        )
        self._application.window.show()
        for page in ("train", "model"):
            self._application.window.show_workspace(page)
        self._path = folder / "broken.tlab"
        self._projects = Projects(random_)
        self.failures: list[str] = []
        self._shown_in_files: list[str] = []
        self._errors: list[BaseException] = []
        # An exception in a slot ends nothing; PySide gives it to this hook.
        self._hook = sys.excepthook
        sys.excepthook = lambda kind, error, trace: self._errors.append(error)
        files = self._application.bench.files
        files.failed.connect(self.failures.append)
        files.artifact_chosen.connect(self._shown_in_files.append)

    def make(self) -> bytes:
        return self._projects.make()

    def attempt(self, data: bytes) -> str:
        """Raises what the program may not raise. Returns "refused" or "opened"."""
        self._path.write_bytes(data)
        self.failures.clear()
        self._shown_in_files.clear()
        try:
            return self._open()
        finally:
            errors, self._errors = self._errors, []
            if errors:
                raise errors[0]

    def _open(self) -> str:
        files = self._application.bench.files
        opened = files.open(str(self._path))
        self._qt.processEvents()
        # Only an event loop that runs does this by itself.
        self._qt.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        if self._shown_in_files:  # it begins as a pickle does: the page Files says what it is
            return "opened"
        if not opened:
            assert self.failures and self.failures[0].startswith("broken.tlab was not opened. ")
            return "refused"
        canvas = self._application.workspaces.model.page.canvas
        canvas.grab()
        blocks = [block.id for block in self._application.bench.project.model.blocks]
        self._application.bench.selection.choose(Blocks(tuple(blocks[:1])))
        if blocks:
            canvas.request_copy()
            canvas.request_paste()
        assert files.save()
        assert files.open(str(self._path)), self.failures
        return "opened"

    def close(self) -> None:
        self._qt.clipboard().clear()  # before Python goes, since its data was made there
        sys.excepthook = self._hook
        self._application.window.close()
        self._application.window.deleteLater()
        self._application.deleteLater()
        qInstallMessageHandler(self._handler)
        self._qt.processEvents()
