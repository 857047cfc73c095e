"""The project's console cells: added after they ran, and run again only if the user asks."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.workbench import Workbench
from engine.project import edits
from engine.project.document import Cell
from engine.protocol import NewNamespaceCommand

_BANNER = "cells"


class CellsPresenter(QObject):
    """Lives as long as the window: a project with cells may be opened in any workspace.

    `again_requested()`: the project's cells are to be run again.
    """

    again_requested = Signal()

    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._namespace_used = False
        bench.link.ended.connect(self._on_engine_ended)
        bench.files.opened.connect(self._on_opened)
        bench.store.project_changed.connect(self._show_actions)
        self._show_actions()

    @property
    def cells(self) -> tuple[Cell, ...]:
        return self._bench.project.cells

    def keep(self, source: str) -> None:
        """Add a cell that ran without an error to the project."""
        store = self._bench.store
        store.set_project(edits.record_cell(store.project, source))

    def note_run(self) -> None:
        """Note that cells have run in this engine, so its end loses their variables."""
        self._namespace_used = True

    def run_again(self) -> None:
        self._bench.window.banners.dismiss(_BANNER)
        self.again_requested.emit()

    def forget(self) -> None:
        """Remove the cells from the project if the user agrees."""
        count = len(self.cells)
        question = f"Take {_cells(count).lower()} out of the project? The variables stay."
        if self._bench.confirm(question, "Forget cells"):
            store = self._bench.store
            store.set_project(edits.forget_cells(store.project))
            self._bench.window.banners.dismiss(_BANNER)

    def _on_engine_ended(self) -> None:
        if self._namespace_used:
            self._namespace_used = False
            self._offer("The console's variables went with the engine")

    def _on_opened(self) -> None:
        """Start a new namespace: the console's variables belong to the previous project."""
        if self._namespace_used:
            self._namespace_used = False
            self._bench.send(NewNamespaceCommand())
        self._bench.window.banners.dismiss(_BANNER)
        self._offer("This project holds Python that was run in its console")

    def _offer(self, title: str) -> None:
        if self.cells:
            self._bench.window.banners.show_banner(
                _BANNER,
                "accent",
                title,
                f"{_cells(len(self.cells))} made its variables. Nothing runs until you say so.",
                (("Run again", "Run the project's cells, in order.", self.run_again),),
            )

    def _show_actions(self) -> None:
        for action in ("tensors.run_again", "tensors.forget_cells"):
            self._bench.actions[action].setEnabled(bool(self.cells))


def _cells(count: int) -> str:
    return "One cell" if count == 1 else f"{count:,} cells"
