"""Train's predictions: read again while a run goes on, and only while they are seen."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.live_reading import LiveReading
from app.workbench import Workbench
from engine.project.document import Project
from engine.protocol import PredictionsSnapshot, ReadPredictionsCommand
from widgets.training.train_view import TrainView


class PredictionsPresenter(QObject):
    def __init__(self, bench: Workbench, view: TrainView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._pane = bench, view.predictions
        self._reading = LiveReading(bench, self._pane, self._command, self._take, self)
        self._pane.asked.connect(self._reading.again)
        bench.store.project_changed.connect(self._on_project_changed)
        switch = view.bar.predictions
        switch.setChecked(bench.settings.train_predictions)
        switch.toggled.connect(lambda on: setattr(bench.settings, "train_predictions", on))

    def _on_project_changed(self, old: Project, new: Project) -> None:
        same = old.subject == new.subject and old.model is new.model
        if not same or old.training.data != new.training.data or old.objective != new.objective:
            self._pane.forget()
            self._reading.again()

    def _command(self) -> ReadPredictionsCommand:
        project, pane = self._bench.project, self._pane
        actual, predicted = pane.cell or (None, None)
        return ReadPredictionsCommand(
            model=project.model,
            training=project.training,
            subject=project.subject,
            objective=project.objective,
            part=pane.part,
            actual=actual,
            predicted=predicted,
            first=pane.first,
        )

    def _take(self, found: PredictionsSnapshot) -> bool:
        self._pane.show_predictions(found)
        return True
