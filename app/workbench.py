"""The parts that every presenter uses, with the two ways that data flows: edits and commands."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeVar

from msgspec import Struct

from app.actions import Actions
from app.files import ProjectFiles
from app.history import History
from app.processes.layout_worker import LayoutWorker
from app.processes.link import Answered, Failed, Link
from app.selection.finding import blocks_of
from app.selection.known import Known
from app.selection.selection import Selection
from app.settings import Settings
from app.store import Store
from app.weights import Weights
from app.window.dialogs import Dialogs
from app.window.main_window import MainWindow
from engine.project.document import Project, replace
from engine.project.edits import EditError
from engine.protocol import (
    Command,
    GraphSnapshot,
    ModelSnapshot,
    Snapshot,
    StructureSnapshot,
    TraceSnapshot,
)

WAITS = "Your cell is running: this comes at its end. Variables and values are read meanwhile."

T = TypeVar("T")
S = TypeVar("S", bound=Snapshot)


class Workbench(Struct, frozen=True):
    """The window, the store and the other parts; `app.application` makes it once."""

    window: MainWindow
    actions: Actions
    store: Store
    history: History
    selection: Selection
    link: Link
    layout: LayoutWorker
    settings: Settings
    dialogs: Dialogs
    files: ProjectFiles
    weights: Weights

    @property
    def project(self) -> Project:
        return self.store.project

    @property
    def known(self) -> Known:
        """The snapshots that references are looked up in."""
        newest = self.store.newest
        return Known(
            self.project,
            graph=newest(GraphSnapshot),
            model=newest(ModelSnapshot),
            structure=newest(StructureSnapshot),
            trace=newest(TraceSnapshot),
        )

    @property
    def selected_blocks(self) -> tuple[str, ...]:
        """The canvas's blocks that the selection is, or is in."""
        return blocks_of(self.selection.current, self.known)

    def newest(self, kind: type[S]) -> S | None:
        """The newest snapshot of a kind, from the store."""
        return self.store.newest(kind)

    def say(self, message: str) -> None:
        """Show a message for some seconds in the status bar."""
        self.window.say(message)

    def confirm(self, question: str, yes: str) -> bool:
        """Ask before something that cannot be undone; `yes` is the text of the button that does
        it."""
        return self.dialogs.confirm(self.window, question, yes)

    def edit(self, text: str, change: Callable[[Project], Project], field: Hashable = None) -> bool:
        """Make an edit as an undo step called `text`. If it is refused, the status bar says why.

        `field`: see `History.edit`.
        """
        return self.edit_with(text, lambda project: (change(project), True), field) is not None

    def edit_with(
        self, text: str, change: Callable[[Project], tuple[Project, T]], field: Hashable = None
    ) -> T | None:
        """As `edit`, for a change that also returns a value: that value, or None if it is
        refused."""
        try:
            project, result = change(self.store.project)
        except EditError as error:
            self.say(str(error))
            return None
        self.history.edit(project, text, field)
        return result

    def about_document(self, command: Command) -> Command:
        """The command with the revision of the document, and whether its Python may be used."""
        return replace(command, revision=self.store.revision, unagreed=self.store.is_unagreed)

    def send(self, command: Command) -> int:
        """Send a command about the current document and return its id; 0 without an engine. While
        code of the user's runs, the status bar says that one waits which does more than read."""
        return self._sent(command, self.link.send)

    def ask(self, command: Command, answered: Answered, failed: Failed) -> int:
        """As `send`, and give its answers to who asks: see `Link.ask`."""
        return self._sent(command, partial(self.link.ask, answered=answered, failed=failed))

    def _sent(self, command: Command, send: Callable[[Command], int]) -> int:
        waits = self.link.runs_code and not type(command).while_running
        command_id = send(self.about_document(command))
        if waits and command_id:
            self.say(WAITS)
        return command_id
