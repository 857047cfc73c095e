"""The processes of Train's run, and the command for several machines."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.live_reading import LiveReading
from app.workbench import Workbench
from engine.project.document import Project
from engine.project.machines import NoCommand, train_arguments
from engine.protocol import RanksSnapshot, ReadRanksCommand, TrainingSnapshot
from widgets.training.train_view import TrainView


class RanksPresenter(QObject):
    def __init__(self, bench: Workbench, view: TrainView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._pane, self._form = bench, view.ranks, view.form.ranks
        self._reading = LiveReading(bench, self._pane, self._command, self._take, self)
        self._pane.asked.connect(self._reading.again)
        bench.store.project_changed.connect(self._on_project_changed)
        bench.files.path_changed.connect(self._show_command)
        self._show_command()

    def _on_project_changed(self, old: Project, new: Project) -> None:
        if _of_command(old) != _of_command(new):
            self._show_command()

    def _show_command(self) -> None:
        try:
            arguments = train_arguments(self._bench.project, self._bench.files.path)
        except NoCommand as reason:
            self._form.show_problem(str(reason))
        else:
            self._form.show_arguments(arguments)

    def _command(self) -> ReadRanksCommand:
        run = self._bench.newest(TrainingSnapshot)
        return ReadRanksCommand(folder=run.folder if run else "", rank=self._pane.rank)

    def _take(self, told: RanksSnapshot) -> bool:
        self._pane.show_ranks(told)
        return True


def _of_command(project: Project) -> tuple[object, ...]:
    """The settings that the command depends on, besides the project's path."""
    return project.subject, project.objective, project.training
