"""The learning rate over the run to come, under its schedule."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.questions import Questions
from app.workbench import Workbench
from engine.project.document import Project
from engine.protocol import ErrorReport, PreviewRatesCommand
from widgets.training.settings.rate_curve import RateCurve

_TEST_SETTINGS = (
    "data",
    "batch_size",
    "epochs",
    "accumulate",
    "optimizer",
    "optimizer_params",
    "schedule",
    "averaging",
)


class RatesPresenter(QObject):
    """Asks for the rates of a set-up with a schedule whenever something changes them."""

    def __init__(self, bench: Workbench, curve: RateCurve, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._curve = bench, curve
        self._questions = Questions(bench)
        bench.store.project_changed.connect(self._on_project_changed)
        bench.link.became_ready.connect(self._ask)
        self._ask()

    def _on_project_changed(self, old: Project, new: Project) -> None:
        before, after = ([getattr(p.training, name) for name in _TEST_SETTINGS] for p in (old, new))
        subjects = (old.subject, old.objective) == (new.subject, new.objective)
        if before != after or not subjects:
            self._ask()

    def _ask(self) -> None:
        project = self._bench.project
        self._questions.drop()
        training = project.training
        if not training.schedule.kind and not training.averaging.swa_lr:
            return
        command = PreviewRatesCommand(
            model=project.model,
            training=training,
            subject=project.subject,
            objective=project.objective,
        )
        if not self._questions.ask(command, self._curve.show_rates, self._show_error):
            self._curve.show_words(self._bench.link.unsent)

    def _show_error(self, error: ErrorReport) -> None:
        self._curve.show_words(error.message)
