"""The element below Train's parameters: read again while a run goes on, while it is seen."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.live_reading import LiveReading
from app.workbench import Workbench
from engine.project.document import Project
from engine.protocol import ElementSnapshot, ReadElementCommand
from widgets.training.element_view import ElementView


class ElementPresenter(QObject):
    def __init__(self, bench: Workbench, view: ElementView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._view = bench, view
        self._reading = LiveReading(bench, view, self._command, self._take, self)
        view.asked.connect(self._reading.again)
        bench.store.project_changed.connect(self._on_project_changed)

    def _on_project_changed(self, old: Project, new: Project) -> None:
        if old.subject != new.subject or old.model is not new.model:
            self._reading.again()

    def _command(self) -> ReadElementCommand:
        project, view = self._bench.project, self._view
        return ReadElementCommand(
            name=view.name,
            index=view.index,
            whole=view.is_whole,
            subject=project.subject,
            model=project.model,
            training=project.training,
        )

    def _take(self, found: ElementSnapshot) -> bool:
        self._view.show_element(found)
        return True
