"""The contents of the data set under Train: asked of the engine when the reader looks."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.questions import Questions, in_words
from app.presenters.train.objective import NO_DATA
from app.workbench import Workbench
from engine.project.catalogue import datasets
from engine.project.document import Project
from engine.project.subject import takes_setup_data
from engine.protocol import (
    CellSnapshot,
    DataSnapshot,
    DescribeDataCommand,
    ErrorReport,
    VariablesSnapshot,
)
from widgets.training.settings.data_form import DataForm


class DataPresenter(QObject):
    """A bundled set is described while its preview is open; data of a file always, since its
    faults are shown in place."""

    def __init__(self, bench: Workbench, form: DataForm, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._form = bench, form
        self._questions = Questions(bench)
        form.report_wanted.connect(self._ask)
        form.path_wanted.connect(self._choose_path)
        bench.store.project_changed.connect(self._on_project_changed)
        bench.store.on(VariablesSnapshot, self._offer_names)
        bench.store.on(CellSnapshot, self._look_again)
        bench.store.agreed.connect(self._ask)
        bench.link.became_ready.connect(self._ask)
        self._ask()

    def _offer_names(self, snapshot: VariablesSnapshot) -> None:
        names = [v.name for v in snapshot.variables if v.kind not in NO_DATA]
        self._form.console.offer_names(names)

    def _look_again(self, _: CellSnapshot) -> None:
        if self._is_of_console():
            self._ask()

    def _is_of_console(self) -> bool:
        project = self._bench.project
        return _is_used(project) and project.training.data.kind == "console"

    def _choose_path(self, what: str) -> None:
        path = self._bench.files.ask_data_path(what)
        if path:
            self._form.set_path(path)

    def _on_project_changed(self, old: Project, new: Project) -> None:
        if old.training.data != new.training.data or _is_used(old) != _is_used(new):
            self._ask()

    def _ask(self) -> None:
        project = self._bench.project
        setup = project.training.data
        kind = datasets().get(setup.kind)
        source = kind.source if kind else ""
        self._questions.drop()
        self._form.show_report(bool(source))
        wanted = self._form.previews or source
        if kind is None or not _is_used(project) or not wanted:
            return
        if source and not (setup.points if source == "points" else setup.path):
            self._form.report.clear()
            return
        self._form.report.show_words("Reading the data…")
        command = DescribeDataCommand(data=setup)
        if not self._questions.ask(command, self._show, self._show_error):
            self._form.report.show_words(self._bench.link.unsent)

    def _show(self, snapshot: DataSnapshot) -> None:
        self._form.report.show_data(snapshot)

    def _show_error(self, error: ErrorReport) -> None:
        self._form.report.show_problem(in_words(error))


def _is_used(project: Project) -> bool:
    """Whether the project trains on the data set of the form."""
    return takes_setup_data(project.subject, project.objective)
