"""What every presenter works with, and the two ways that data flows: edits and commands."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar

from engine.project.document import Project, replace
from engine.project.edits import EditError
from engine.protocol import Command

from .actions import Actions
from .dialogs import Dialogs
from .files import ProjectFiles
from .history import History
from .layout_worker import LayoutWorker
from .link import Link
from .main_window import MainWindow
from .selection import Selection
from .settings import Settings
from .store import Store

T = TypeVar("T")


@dataclass(frozen=True)
class Workbench:
    """Made once by `app.application`."""

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

    def edit(self, text: str, change: Callable[[Project], Project], field: Hashable = None) -> bool:
        """Make an edit as an undo step called `text`; a refused one is told in the status bar.

        `field`: see `History.edit`.
        """
        return self.edit_with(text, lambda project: (change(project), True), field) is not None

    def edit_with(
        self, text: str, change: Callable[[Project], tuple[Project, T]], field: Hashable = None
    ) -> T | None:
        """As `edit`, of a change that also returns something: that, or None when refused."""
        try:
            project, result = change(self.store.project)
        except EditError as error:
            self.window.say(str(error))
            return None
        self.history.edit(project, text, field)
        return result

    def send(self, command: Command) -> int:
        """Send a command about the document as it is now; returns its id, 0 without an engine."""
        return self.link.send(replace(command, revision=self.store.revision))
