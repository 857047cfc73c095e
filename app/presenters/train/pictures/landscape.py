"""The slice of the loss landscape: asked of the engine, shown point by point."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.questions import Questions, in_words
from app.workbench import Workbench
from engine.project.document import Project
from engine.protocol import (
    ErrorReport,
    FitSnapshot,
    LandscapeCommand,
    LandscapeSnapshot,
    RunSnapshot,
    Snapshot,
    WeightsSnapshot,
)
from widgets.training.train_view import TrainView

_DRAWN_FROM = ("model", "training", "subject", "objective")


class LandscapePresenter(QObject):
    def __init__(self, bench: Workbench, view: TrainView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._pane = bench, view.landscape
        self._questions = Questions(bench)
        self._goes_on = False
        self._asked = 0
        self._pane.compute_requested.connect(self.compute)
        self._pane.stop_requested.connect(self._stop)
        bench.store.project_changed.connect(self._on_project_changed)
        bench.store.on((RunSnapshot, WeightsSnapshot, FitSnapshot), self._tell_outdated)
        bench.link.state_changed.connect(self._on_engine_state)

    def compute(self) -> None:
        """Compute the loss around the weights with the settings of now."""
        project, pane = self._bench.project, self._pane
        command = LandscapeCommand(
            model=project.model,
            training=project.training,
            subject=project.subject,
            objective=project.objective,
            is_plane=pane.is_plane,
            points=pane.points,
            span=pane.span,
            batches=pane.batches,
            seed=pane.seed,
        )
        pane.begin()
        self._asked = self._questions.ask(command, self._show, self._fail)
        self._goes_on = bool(self._asked)
        if not self._goes_on:
            pane.end(self._bench.link.unsent, is_error=True)

    def _show(self, found: LandscapeSnapshot) -> None:
        self._goes_on = not self._pane.show_points(found)

    def _fail(self, error: ErrorReport) -> None:
        self._end(in_words(error), is_error=True)

    def _stop(self) -> None:
        self._bench.link.stop_command(self._asked)
        self._questions.drop()
        self._end("Stopped.")

    def _end(self, words: str, is_error: bool = False) -> None:
        self._goes_on = False
        self._pane.end(words, is_error)

    def _on_engine_state(self, state: str) -> None:
        if self._goes_on and state != "ready":
            self._questions.drop()
            self._end("The engine has ended.", is_error=True)

    def _tell_outdated(self, _: Snapshot) -> None:
        """The weights may be others."""
        if not self._goes_on:
            self._pane.tell_outdated()

    def _on_project_changed(self, old: Project, new: Project) -> None:
        if self._goes_on:
            return
        if old.subject != new.subject or old.model is not new.model:
            self._pane.clear()
        elif any(getattr(old, name) != getattr(new, name) for name in _DRAWN_FROM):
            self._pane.tell_outdated()
