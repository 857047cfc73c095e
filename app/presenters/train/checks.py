"""Checks before training: asked of the engine, shown beside the plots."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.questions import Questions, in_words
from app.workbench import Workbench
from engine.project import edits
from engine.project.document import Project, replace
from engine.protocol import CheckSnapshot, CheckTrainingCommand, ErrorReport
from widgets.training.train_view import TrainView


class ChecksPresenter(QObject):
    def __init__(self, bench: Workbench, view: TrainView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._pane = bench, view.checks
        self._questions = Questions(bench)
        self._goes_on = False
        self._asked = 0
        view.bar.check_requested.connect(self.check)
        view.checks.stop_requested.connect(self._stop)
        view.checks.rate_wanted.connect(self._use_rate)
        bench.store.project_changed.connect(self._on_project_changed)
        bench.link.state_changed.connect(self._on_engine_state)

    def check(self) -> None:
        """Check the subject with the settings of now."""
        project = self._bench.project
        command = CheckTrainingCommand(
            model=project.model,
            training=project.training,
            subject=project.subject,
            objective=project.objective,
        )
        self._pane.begin()
        self._asked = self._questions.ask(command, self._show, self._fail)
        self._goes_on = bool(self._asked)
        if not self._goes_on:
            self._pane.end(self._bench.link.unsent)

    def _show(self, snapshot: CheckSnapshot) -> None:
        self._pane.show_check(snapshot)
        self._goes_on = snapshot.done < snapshot.total

    def _fail(self, error: ErrorReport) -> None:
        self._end(in_words(error))

    def _stop(self) -> None:
        self._bench.link.stop_command(self._asked)
        self._questions.drop()
        self._end("Stopped.")

    def _end(self, words: str) -> None:
        self._goes_on = False
        self._pane.end(words)

    def _on_engine_state(self, state: str) -> None:
        if self._goes_on and state != "ready":
            self._questions.drop()
            self._end("The engine has ended.")

    def _on_project_changed(self, old: Project, new: Project) -> None:
        checked = ("model", "training", "subject", "objective")
        is_other = any(getattr(old, name) != getattr(new, name) for name in checked)
        if self._pane.rows and is_other and not self._goes_on:
            self._pane.end("Model or settings have changed since: check again.")

    def _use_rate(self, rate: float) -> None:
        training = self._bench.project.training
        setup = replace(training, optimizer_params={**training.optimizer_params, "lr": rate})
        text = f"Set lr to {rate:g}"
        self._bench.edit(text, lambda project: edits.set_training(project, setup))
