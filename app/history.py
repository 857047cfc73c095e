"""Undo and redo: every edit is one step, with the project before and after it and a text."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from PySide6.QtCore import QObject
from PySide6.QtGui import QUndoCommand, QUndoStack

from app.store import Store
from engine.project.document import Project, replace


class History(QObject):
    """Owns the undo stack. Every edit that can be undone goes through it into the store."""

    def __init__(self, store: Store, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self.stack = QUndoStack(self)

    def edit(self, project: Project, text: str, field: Hashable = None) -> None:
        """Make `project` the current one, as an undo step called `text`.

        Consecutive edits of the same `field` (as when a number is typed) are one step, until
        `seal`. An edit that changes nothing makes no step.
        """
        if project != self._store.project:
            self.stack.push(_Edit(self._store, self._store.project, project, text, field))

    def change(self, text: str, do: Callable[[], object], undo: Callable[[], object]) -> None:
        """Change what is not part of the project, as an undo step called `text`."""
        self.stack.push(_Change(text, do, undo))

    @property
    def is_saved(self) -> bool:
        """Whether the project is as it was when the stack was clean, whatever else was changed."""
        clean, now = self.stack.cleanIndex(), self.stack.index()
        steps = map(self.stack.command, range(min(clean, now), max(clean, now)))
        return clean >= 0 and not any(isinstance(step, _Edit) for step in steps)

    def seal(self) -> None:
        """Make the next edit a step of its own."""
        index = self.stack.index()
        command = self.stack.command(index - 1) if index else None
        if isinstance(command, _Edit):
            command.field = None

    def restart(self, project: Project) -> None:
        """Show another project, with an empty history."""
        self.stack.clear()
        self._store.set_project(project)


class _Change(QUndoCommand):
    def __init__(self, text: str, do: Callable[[], object], undo: Callable[[], object]) -> None:
        super().__init__(text)
        self._do, self._undo = do, undo

    def redo(self) -> None:
        self._do()

    def undo(self) -> None:
        self._undo()


class _Edit(QUndoCommand):
    def __init__(
        self, store: Store, before: Project, after: Project, text: str, field: Hashable
    ) -> None:
        super().__init__(text)
        self._store, self._before, self._after = store, before, after
        self.field = field

    def id(self) -> int:
        return -1 if self.field is None else 1

    def mergeWith(self, other: QUndoCommand) -> bool:
        if not isinstance(other, _Edit) or other.field != self.field:
            return False
        self._after = other._after
        self.setText(other.text())
        self.setObsolete(self._after == self._before)
        return True

    def undo(self) -> None:
        self._show(self._before)

    def redo(self) -> None:
        self._show(self._after)

    def _show(self, project: Project) -> None:
        # Undo does not change the file's name, the cells and the view: they are not edits.
        current = self._store.project
        self._store.set_project(
            replace(project, name=current.name, cells=current.cells, view=current.view)
        )
