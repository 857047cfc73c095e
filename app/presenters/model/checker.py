"""Lets the engine check every revision of the model: shapes, counts, problems, code."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.questions import Questions
from app.processes.exit_reasons import ExitReason
from app.workbench import Workbench
from engine.project.document import Project
from engine.protocol import CellSnapshot, CheckModelCommand, Snapshot

_GIVEN_UP = "Checking this model has ended the engine twice"
_ADVICE = "It is checked again when you change it."


class ModelChecker(QObject):
    """Runs one check at a time. During a check only the newest revision waits for the next one.

    A project whose check ended two engines is not checked in a third.
    """

    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._questions = Questions(bench, self)
        self._is_checking = self._is_due = False
        self._checked: Project | None = None  # that of the check that the engine's end cut off
        self._lost_with: Project | None = None
        self._given_up: Project | None = None
        bench.store.revision_changed.connect(self.check)
        bench.store.snapshot.connect(self._on_snapshot)
        bench.files.opened.connect(self._check_first)
        bench.link.became_ready.connect(self._check_first)
        bench.link.ended.connect(self._stop)
        bench.link.lost.connect(self._on_lost)

    def check(self) -> None:
        """Check the model of now. A script that the window is attached to does not have it."""
        self._is_due = self._is_checking
        if not self._is_checking and self._bench.link.script is None:
            project = self._bench.project
            command = CheckModelCommand(model=project.model, training=project.training)
            self._is_checking = self._questions.ask(command, self._on_answer, self._on_answer)

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        """A cell may have made other data of the console, which the model must fit."""
        data = self._bench.project.training.data
        if isinstance(snapshot, CellSnapshot) and data.kind == "console":
            self.check()

    def _on_answer(self, _: object) -> None:
        """Check the newest revision, if it waits. The answer itself is shown from the store."""
        self._is_checking = False
        if self._is_due:
            self.check()

    def _check_first(self) -> None:
        """Check a model that was opened, or the model in a new engine, unless it is being
        checked."""
        if self._given_up is self._bench.project:
            self._bench.window.banners.show_banner("check", "error", _GIVEN_UP, _ADVICE)
        elif not self._is_checking:
            self.check()

    def _stop(self) -> None:
        self._checked = self._bench.project if self._is_checking else None
        self._is_checking = self._is_due = False

    def _on_lost(self, _: ExitReason) -> None:
        """The engine has ended by itself, maybe because of the check."""
        if self._checked is not None and self._checked is self._lost_with:
            self._given_up = self._checked
        self._lost_with = self._checked
