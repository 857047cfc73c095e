"""Every revision of the model is checked by the engine: shapes, counts, problems, code."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.questions import Questions
from app.workbench import Workbench
from engine.protocol import CheckModelCommand


class ModelChecker(QObject):
    """Asks for one check at a time: during a check only the newest revision waits."""

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
        """The store has the ModelSnapshot, and a banner the error."""
        self._is_checking = False
        if self._is_due:
            self.check()

    def _check_first(self) -> None:
        """A new engine knows no model; a check that was sent while it started is on its way."""
        if not self._is_checking:
            self.check()

    def _stop(self) -> None:
        self._is_checking = self._is_due = False
