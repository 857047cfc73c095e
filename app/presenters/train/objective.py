"""What a subject of code is trained for: the form under Train, and the step that fits the data."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.questions import Questions, in_words
from app.workbench import Workbench
from engine.project import edits
from engine.project.document import Project
from engine.project.subject import (
    FileSubject,
    Objective,
    needs_cells,
    python_file,
    takes_setup_data,
)
from engine.protocol import (
    CellSnapshot,
    ErrorReport,
    FileSnapshot,
    VariablesSnapshot,
    WriteStepCommand,
)
from widgets.training.settings.setup_form import SetupForm

NO_DATA = ("module", "optimizer", "number", "function")
"""Kinds of variables that are no data."""


class ObjectivePresenter(QObject):
    def __init__(self, bench: Workbench, form: SetupForm, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._setup, self._form = bench, form, form.objective
        self._questions = Questions(bench)
        self._form.edited.connect(self._edit)
        bench.store.project_changed.connect(self._on_project_changed)
        bench.store.on(VariablesSnapshot, lambda _: self._offer_names())
        bench.store.on(CellSnapshot, self._on_cell)
        bench.store.on(FileSnapshot, self._on_file)
        bench.store.agreed.connect(self._ask)
        bench.link.became_ready.connect(self._ask)
        self._show()

    def _edit(self, objective: Objective, text: str) -> None:
        self._bench.edit(text, lambda project: edits.set_objective(project, objective))
        self._form.show_objective(self._bench.project.objective)  # as it is, if it was refused

    def _on_project_changed(self, old: Project, new: Project) -> None:
        if (old.subject, old.objective) != (new.subject, new.objective):
            self._show()
        elif _has_other_step(old, new):
            self._ask()

    def _show(self) -> None:
        project = self._bench.project
        self._setup.show_subject(
            is_code=project.subject.is_code,
            of_setup=takes_setup_data(project.subject, project.objective),
            writes=project.objective.loss_of_setup and not project.objective.step,
        )
        self._form.show_objective(project.objective)
        self._offer_names()
        self._ask()

    def _offer_names(self) -> None:
        """Offer the data of the console, or of the subject's file once it has run."""
        subject, names, objects = self._bench.project.subject, list[str](), list[str]()
        variables, file = self._bench.newest(VariablesSnapshot), self._bench.newest(FileSnapshot)
        if isinstance(subject, FileSubject):
            if file is not None and python_file(subject) == file.path:
                names = [found.name for found in file.objects if found.kind == "data"]
                objects = [found.name for found in file.objects]
        elif variables is not None:
            objects = [v.name for v in variables.variables if v.kind != "number"]
            if subject.is_code:
                names = [v.name for v in variables.variables if v.kind not in NO_DATA]
        self._form.offer_names(names)
        self._setup.offer_objects(objects)

    def _ask(self) -> None:
        """Ask for the step that fits the data; nothing for the canvas, or without data."""
        project = self._bench.project
        if not (project.subject.is_code and project.objective.has_data):
            self._questions.drop()
            return
        command = WriteStepCommand(
            subject=project.subject, objective=project.objective, training=project.training
        )
        self._questions.ask(command, self._form.show_usual_step, self._show_error)

    def _show_error(self, error: ErrorReport) -> None:
        self._form.show_words(in_words(error), "error")

    def _on_cell(self, _: CellSnapshot) -> None:
        if needs_cells(self._bench.project.subject):
            self._ask()

    def _on_file(self, file: FileSnapshot) -> None:
        if python_file(self._bench.project.subject) == file.path:
            self._offer_names()
            self._ask()


def _has_other_step(old: Project, new: Project) -> bool:
    """Whether a step is written in another way, since the data set or the loss has changed."""
    then, now = old.training, new.training
    is_other = (then.loss, then.loss_params) != (now.loss, now.loss_params)
    return (new.objective.of_setup and then.data != now.data) or (
        new.objective.loss_of_setup and is_other
    )
