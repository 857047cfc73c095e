"""Compares the subject of code with a copy kept before, or with another module."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.offers import offers_of_file
from app.presenters.questions import Questions, in_words
from app.workbench import Workbench
from engine.project.document import Project
from engine.project.subject import CanvasSubject, CodeSubject, ConsoleSubject, Subject
from engine.protocol import (
    CompareSubjectsCommand,
    DifferenceSnapshot,
    ErrorReport,
    ExampleSnapshot,
    FileSnapshot,
    KeepBeforeCommand,
    KeptSnapshot,
    Snapshot,
    VariablesSnapshot,
)
from widgets.structure.view import StructureView

OtherSubject = Subject | None
"""The other side of the comparison; None is the copy that is kept."""


class ComparingPresenter(QObject):
    """A comparison that is shown is made again when the structure is read again."""

    def __init__(self, bench: Workbench, view: StructureView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._view = bench, view
        self._questions = Questions(bench)
        self._console: list[ConsoleSubject] = []
        self._files: dict[str, list[Subject]] = {}
        self._other: OtherSubject = None
        view.compare.keep_requested.connect(self._keep)
        view.compare.compare_requested.connect(self._compare)
        bench.store.project_changed.connect(self._on_project_changed)
        bench.store.on(VariablesSnapshot, self._offer_modules)
        bench.store.on(FileSnapshot, self._offer_objects)
        bench.link.ended.connect(self._forget)
        variables, file = bench.newest(VariablesSnapshot), bench.newest(FileSnapshot)
        if variables is not None:
            self._offer_modules(variables)
        if file is not None:
            self._offer_objects(file)

    def compare_again(self) -> None:
        """The subject may have changed."""
        if self._view.shows_difference:
            self._compare(self._other)

    def tell_outdated(self) -> None:
        """The subject's weights have changed: to compare again takes a step of the user's code."""
        self._view.difference.tell_outdated()

    @property
    def _subject(self) -> CodeSubject | None:
        subject = self._bench.project.subject
        return None if isinstance(subject, CanvasSubject) else subject

    def _keep(self) -> None:
        if self._subject is not None:
            training = self._bench.project.training
            command = KeepBeforeCommand(subject=self._subject, training=training)
            self._ask(command)

    def _compare(self, other: OtherSubject) -> None:
        if self._subject is None:
            return
        self._other = other
        project = self._bench.project
        self._ask(
            CompareSubjectsCommand(
                subject=self._subject,
                other=other,
                model=project.model,
                objective=project.objective,
                training=project.training,
            )
        )

    def _ask(self, command: KeepBeforeCommand | CompareSubjectsCommand) -> None:
        if not self._questions.ask(command, self._take, self._fail):
            self._view.bar.tell(self._bench.link.unsent, "error")

    def _take(self, answer: Snapshot) -> None:
        match answer:
            case KeptSnapshot(title=kept):
                self._view.compare.show_kept(kept)
                self._bench.say(f"A copy of {kept} is kept: Compare tells what has changed since.")
            case DifferenceSnapshot():
                self._view.show_difference(answer)

    def _fail(self, error: ErrorReport) -> None:
        if self._view.shows_difference:
            self._view.difference.refuse(in_words(error))
        else:
            self._view.bar.tell(in_words(error), "error")

    # -- what there is to compare with -----------------------------------------------------------

    def _on_project_changed(self, old: Project, new: Project) -> None:
        if old.subject != new.subject:
            self._questions.drop()
            self._view.show_picture()
        self._show_others()

    def _offer_modules(self, snapshot: VariablesSnapshot) -> None:
        if not isinstance(snapshot, ExampleSnapshot):
            modules = (v for v in snapshot.variables if v.kind == "module" and not v.same_as)
            self._console = [ConsoleSubject(module.name) for module in modules]
            self._show_others()

    def _offer_objects(self, snapshot: FileSnapshot) -> None:
        self._files[snapshot.path] = [
            offer.subject
            for offer in offers_of_file(snapshot.path, snapshot.objects)
            if not (offer.required or offer.is_other)
        ]
        self._show_others()

    def _show_others(self) -> None:
        of_files = (subject for subjects in self._files.values() for subject in subjects)
        canvas = [CanvasSubject()] if self._bench.project.model.blocks else []
        others = [*canvas, *self._console, *of_files]
        self._view.compare.show_others([other for other in others if other != self._subject])

    def _forget(self) -> None:
        """The engine has ended, and with it all modules and the copy."""
        self._console, self._files = [], {}
        self._questions.drop()
        self._view.show_picture()
        self._view.compare.show_kept("")
        self._show_others()
