"""The memory of a step, under Train's settings: asked of the engine when the reader wants it."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.questions import Questions, in_words
from app.workbench import Workbench
from engine.protocol import ErrorReport, MeasureStepCommand
from widgets.training.settings.execution_form import ExecutionForm


class ExecutionPresenter(QObject):
    def __init__(self, bench: Workbench, form: ExecutionForm, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._form = bench, form
        self._questions = Questions(bench)
        form.measure_asked.connect(self._ask)

    def _ask(self) -> None:
        project = self._bench.project
        command = MeasureStepCommand(
            model=project.model,
            training=project.training,
            subject=project.subject,
            objective=project.objective,
        )
        self._form.show_words("Running one batch…")
        if not self._questions.ask(command, self._form.show_memory, self._show_error):
            self._form.show_words(self._bench.link.unsent)

    def _show_error(self, error: ErrorReport) -> None:
        self._form.show_words(in_words(error), "error")
