"""Lets the engine check every revision of the model: shapes, counts, problems, code."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.questions import Questions
from app.processes.exit_reasons import ExitReason
from app.workbench import Workbench
from engine.project.document import Project
from engine.protocol import CellSnapshot, CheckModelCommand

_GIVEN_UP = "The engine ended while it checked this model"
_ADVICE = "The model is checked again when you change it."


class ModelChecker(QObject):
    """Runs one check at a time. During a check only the newest revision waits for the next one.

    A model whose check an engine did not survive is checked in the next one only if the user says
    so or changes it.
    """

    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._questions = Questions(bench)
        self._is_due = False
        self._checking: Project | None = None
        self._cut_off: Project | None = None  # its check had no answer when the engine ended
        self._given_up: Project | None = None
        bench.store.revision_changed.connect(self.check)
        bench.store.on(CellSnapshot, self._check_again)
        bench.files.opened.connect(self._check_first)
        bench.link.became_ready.connect(self._check_first)
        bench.link.ended.connect(self._stop)
        bench.link.lost.connect(self._on_lost)

    def check(self) -> None:
        """Check the model of now. A script that the window is attached to does not have it."""
        self._is_due = self._checking is not None
        if self._checking is None and self._bench.link.script is None:
            project = self._bench.project
            command = CheckModelCommand(model=project.model, training=project.training)
            if self._questions.ask(command, self._on_answer, self._on_answer):
                self._checking, self._given_up = project, None
                self._bench.window.banners.dismiss("check")

    def _check_again(self, _: CellSnapshot) -> None:
        """A cell may have made other data of the console, which the model must fit."""
        if self._bench.project.training.data.kind == "console":
            self.check()

    def _on_answer(self, _: object) -> None:
        """Check the newest revision, if it waits. The answer itself is shown from the store."""
        self._checking = None
        if self._is_due:
            self.check()

    def _check_first(self) -> None:
        """Check a model that was opened, or the model in a new engine, unless it is being
        checked."""
        if self._given_up is self._bench.project:
            again = ("Check again", "Check the model in this engine.", self.check)
            self._bench.window.banners.show_banner("check", "error", _GIVEN_UP, _ADVICE, [again])
        elif self._checking is None:
            self.check()

    def _stop(self) -> None:
        self._cut_off, self._checking, self._is_due = self._checking, None, False

    def _on_lost(self, _: ExitReason) -> None:
        """The engine has ended by itself, maybe because of the check."""
        self._given_up = self._cut_off
