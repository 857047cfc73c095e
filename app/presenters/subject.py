"""The subject that all workspaces work on: chosen here, kept in the project."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.workbench import Workbench
from engine.project import edits
from engine.project.document import Project
from engine.project.subject import ConsoleSubject, FileSubject, Subject, title
from engine.protocol import (
    ExampleSnapshot,
    FileObject,
    FileSnapshot,
    Snapshot,
    VariablesSnapshot,
)
from widgets.subject.chooser import Group, Offer, SubjectChooser

_CALLED = ("class", "function")


class SubjectPresenter(QObject):
    """`open_requested()`: the user wants to open a Python file."""

    open_requested = Signal()

    def __init__(self, bench: Workbench, chooser: SubjectChooser, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._chooser = bench, chooser
        self._console: tuple[Offer, ...] = ()
        self._files: dict[str, tuple[Offer, ...]] = {}
        chooser.chosen.connect(self.choose)
        chooser.open_requested.connect(self.open_requested)
        bench.store.project_changed.connect(self._on_project_changed)
        bench.store.snapshot.connect(self._on_snapshot)
        bench.link.ended.connect(self._forget)
        chooser.show_subject(bench.project.subject)

    def choose(self, subject: Subject) -> None:
        """Let all workspaces work on the subject; an undo step."""
        self._bench.edit(f"Work on {title(subject)}", lambda p: edits.set_subject(p, subject))

    def _on_project_changed(self, old: Project, new: Project) -> None:
        if old.subject != new.subject:
            self._chooser.show_subject(new.subject)

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        if isinstance(snapshot, VariablesSnapshot) and not isinstance(snapshot, ExampleSnapshot):
            self._console = tuple(
                Offer(ConsoleSubject(variable.name), f"{variable.type}, a variable of the console.")
                for variable in snapshot.variables
                if variable.kind == "module"
            )
        elif isinstance(snapshot, FileSnapshot):
            offers = (_offer(snapshot.path, found) for found in snapshot.objects)
            self._files[snapshot.path] = tuple(offer for offer in offers if offer is not None)
        else:
            return
        self._show_offers()

    def _forget(self) -> None:
        """The engine has ended, and with it what its console and its files held."""
        self._console, self._files = (), {}
        self._show_offers()

    def _show_offers(self) -> None:
        groups = [Group("Console", self._console)] if self._console else []
        groups += [Group(path, offers) for path, offers in self._files.items() if offers]
        self._chooser.show_offers(groups)


def _offer(path: str, found: FileObject) -> Offer | None:
    if found.kind == "module":
        return Offer(FileSubject(path, found.name), f"{found.type}, a module of the file.")
    if found.kind not in _CALLED or found.required:
        return None
    what = "a class" if found.kind == "class" else "a function"
    return Offer(FileSubject(path, f"{found.name}()"), f"{what} of the file, called.")
