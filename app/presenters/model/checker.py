"""Lets the engine check every revision of the model: shapes, counts, problems, code."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.questions import Questions
from app.workbench import Workbench
from engine.protocol import CheckModelCommand


class ModelChecker(QObject):
    """Runs one check at a time. During a check only the newest revision waits for the next one."""

    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._questions = Questions(bench, self)
        self._is_checking = self._is_due = False
        bench.store.revision_changed.connect(self.check)
        bench.link.became_ready.connect(self._check_first)
        bench.link.ended.connect(self._stop)

    def check(self) -> None:
        self._is_due = self._is_checking
        if not self._is_checking:
            project = self._bench.project
            command = CheckModelCommand(model=project.model, training=project.training)
            self._is_checking = self._questions.ask(command, self._on_answer, self._on_answer)

    def _on_answer(self, _: object) -> None:
        """Check the newest revision, if it waits. The answer itself is shown from the store."""
        self._is_checking = False
        if self._is_due:
            self.check()

    def _check_first(self) -> None:
        """Check the model in a new engine, unless a check was sent while the engine started."""
        if not self._is_checking:
            self.check()

    def _stop(self) -> None:
        self._is_checking = self._is_due = False
