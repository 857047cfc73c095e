"""The subject that all workspaces work on: chosen here, kept in the project."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.presenters.cells import ALLOW
from app.presenters.offers import names_of_canvas, offers_of_console, offers_of_file
from app.presenters.python_files import BANNER, PythonFiles
from app.presenters.questions import Questions
from app.workbench import Workbench
from engine.project import edits
from engine.project.document import Project, replace
from engine.project.names import CONSOLE_NAMES
from engine.project.subject import (
    MODEL,
    ConsoleSubject,
    FileSubject,
    Subject,
    files_of,
    holds_model,
    needs_cells,
    title,
)
from engine.protocol import (
    ErrorReport,
    ExampleSnapshot,
    FileSnapshot,
    ReadStructureCommand,
    ShowSubjectCommand,
    Snapshot,
    StructureSnapshot,
    VariablesSnapshot,
)
from widgets.subject.chooser import Group, Offer, SubjectChooser

_NAME = re.compile(r"[^\W\d]\w*")


class SubjectPresenter(QObject):
    """Offers the modules of the console, of Python files that have run, and of files that hold a
    model. `cells_wanted()`: run
    the project's cells, which make its subject."""

    cells_wanted = Signal()

    def __init__(
        self, bench: Workbench, files: PythonFiles, chooser: SubjectChooser, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._bench, self._python, self._chooser = bench, files, chooser
        self._questions = Questions(bench)
        self._console: tuple[Offer, ...] = ()
        self._canvas: tuple[Subject, ...] = ()  # other names of the canvas's model
        self._variables: frozenset[str] = frozenset()
        self._before_script: Project | None = None
        self._files: dict[str, tuple[Offer, ...]] = {}
        self._asked: Offer | None = None  # the class whose arguments are asked for
        chooser.picked.connect(self._pick)
        chooser.arguments_entered.connect(self._try_arguments)
        chooser.open_requested.connect(lambda: files.open())
        chooser.again_requested.connect(files.run)
        chooser.need_pressed.connect(self._answer_need)
        files.ran.connect(self._on_ran)
        files.changed.connect(self._show_need)
        bench.store.project_changed.connect(self._on_project_changed)
        bench.store.revision_changed.connect(self._show_need)
        bench.store.on(VariablesSnapshot, self._show_variables)
        bench.link.became_ready.connect(self._on_ready)
        bench.link.ended.connect(self._forget)
        chooser.show_subject(bench.project.subject)
        self._show_need()

    def choose(self, subject: Subject) -> None:
        """Let all workspaces work on the subject; an undo step."""
        self._bench.edit(f"Work on {title(subject)}", lambda p: edits.set_subject(p, subject))

    def open_model(self, path: str) -> None:
        """Work on the model that a file holds."""
        subject = FileSubject(path, MODEL)
        self._files[path] = (Offer(subject, "The model that the file holds."),)
        self._show_offers()
        self.choose(subject)

    # -- choosing --------------------------------------------------------------------------------

    def _pick(self, offer: Offer) -> None:
        if offer.required:
            self._asked = offer
            self._chooser.ask_arguments(offer)
        else:
            self.choose(offer.subject)

    def _try_arguments(self, expression: str) -> None:
        """Choose the class with its arguments, once the engine has made a module of it."""
        assert self._asked is not None and isinstance(self._asked.subject, FileSubject)
        subject = FileSubject(self._asked.subject.path, expression)
        command = ReadStructureCommand(subject=subject, training=self._bench.project.training)
        made, failed = partial(self._on_made, subject), self._on_unmade
        if not self._questions.ask(command, made, failed):
            self._chooser.arguments.tell(self._bench.link.unsent)

    def _on_made(self, subject: FileSubject, snapshot: Snapshot) -> None:
        if isinstance(snapshot, StructureSnapshot) and not snapshot.left:
            self._chooser.arguments.hide()
            self.choose(subject)

    def _on_unmade(self, error: ErrorReport) -> None:
        name = "" if error.type == "LabError" else f"{error.type}: "
        self._chooser.arguments.tell(f"{name}{error.message} {error.hint}".strip())

    def _on_ran(self, snapshot: FileSnapshot, opening: bool) -> None:
        held = self._files[snapshot.path] = offers_of_file(snapshot.path, snapshot.objects)
        modules = [offer for offer in held if not offer.is_other] or held
        self._show_offers()
        if not opening:
            return
        if len(modules) == 1:
            self._pick(modules[0])
        elif held:
            self._chooser.open_menu()
        else:
            self._bench.window.banners.show_banner(
                BANNER,
                "warning",
                f"{Path(snapshot.path).name} has run, and has no module to work on",
                "A subject is an nn.Module, a class of one, or a function that returns one.",
            )

    # -- what is known ---------------------------------------------------------------------------

    def _on_project_changed(self, old: Project, new: Project) -> None:
        if (old.subject, old.training.seed) != (new.subject, new.training.seed):
            self._tell()
        if old.subject != new.subject:
            self._chooser.show_subject(new.subject)
        self._show_need()

    def _on_ready(self) -> None:
        """Work on the model of a script that the window is attached to. That is no edit: the
        subject from before comes back when the script is left."""
        attached, store = self._bench.link.script, self._bench.store
        if attached is not None and attached.models:
            self._before_script = store.project
            subject = ConsoleSubject(attached.models[0])
            store.set_project(edits.set_subject(store.project, subject))
        self._tell()

    def _leave_script(self) -> None:
        before, self._before_script = self._before_script, None
        store = self._bench.store
        if before is not None and needs_cells(store.project.subject):
            store.set_project(
                replace(store.project, subject=before.subject, objective=before.objective)
            )

    def _tell(self) -> None:
        """Tell the engine what `lab.subject` is."""
        project = self._bench.project
        self._bench.send(ShowSubjectCommand(subject=project.subject, training=project.training))

    def _show_variables(self, snapshot: VariablesSnapshot) -> None:
        if isinstance(snapshot, ExampleSnapshot):
            return
        self._variables = frozenset(variable.name for variable in snapshot.variables)
        self._console = offers_of_console(snapshot.variables)
        self._canvas = names_of_canvas(snapshot.variables)
        self._show_offers()
        self._show_need()

    def _forget(self) -> None:
        """The engine has ended, and with it what its console and its files held."""
        self._leave_script()
        self._console, self._canvas, self._variables = (), (), frozenset()
        self._files = {path: held for path, held in self._files.items() if holds_model(path)}
        self._show_offers()
        self._show_need()

    def _show_offers(self) -> None:
        groups = [Group("Console", self._console)] if self._console else []
        groups += [
            Group(path, offers, "" if holds_model(path) else f"Run {Path(path).name} again")
            for path, offers in self._files.items()
        ]
        self._chooser.show_offers(groups, self._canvas)

    # -- what the subject needs ------------------------------------------------------------------

    def _show_need(self) -> None:
        path = self._file_to_run()
        if path:
            name = Path(path).name
            if self._python.has_run(path):
                self._chooser.show_need(
                    f"Run {name} again",
                    f"{path}, or a file that it imports, has changed since it ran.",
                )
            else:
                why = f"{path} has not run in this engine. Nothing runs until you say so."
                self._chooser.show_need(f"Run {name}", why)
        elif self._needs_cells():
            why = "Run the project's cells, which make the subject, in order."
            self._chooser.show_need("Run its cells", why)
        elif self._bench.store.is_unagreed:
            why = f"{title(self._bench.project.subject)} came with the file. Nothing runs until you"
            self._chooser.show_need(ALLOW, f"{why} say so.")
        else:
            self._chooser.show_need("")

    def _answer_need(self) -> None:
        """Each answer agrees to the Python that the project names."""
        path, needs_cells_run = self._file_to_run(), self._needs_cells()
        self._bench.files.agree()
        if path:
            self._python.run(path)
        elif needs_cells_run:
            self.cells_wanted.emit()

    def _file_to_run(self) -> str:
        """The first file of the subject or its data that has not run, or has changed since."""
        project, files = self._bench.project, self._python
        for named in files_of(project.subject, project.objective):
            path = str(Path(named).absolute())
            current = files.has_run(path) and not files.has_changed(path)
            if not current and not files.is_running(path):
                return path
        return ""

    def _needs_cells(self) -> bool:
        """Whether the subject is a variable of the console's that cells of the project make."""
        project = self._bench.project
        if not isinstance(project.subject, ConsoleSubject) or not project.cells:
            return False
        name = _NAME.match(project.subject.expression)
        return name is not None and name.group() not in {*self._variables, *CONSOLE_NAMES}
