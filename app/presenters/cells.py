"""The project's console cells: added after they ran, and run again only if the user asks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.window.banners import Choice
from app.workbench import Workbench
from engine.project import edits
from engine.project.cells import expressions_of
from engine.project.document import Cell
from engine.protocol import EnterFolderCommand, NewNamespaceCommand

_BANNER = "cells"
ALLOW = "Allow its Python"


class CellsPresenter(QObject):
    """Adds cells that ran to the project, offers to run the cells of an opened project again, and
    removes them.

    `again_requested()` asks to run the project's cells again.
    """

    again_requested = Signal()

    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._namespace_used = False
        self._python_path = self._folder = ""
        bench.link.ended.connect(self._on_engine_ended)
        bench.files.opened.connect(self._on_opened)
        bench.files.path_changed.connect(lambda path: self._enter_folder())
        bench.link.became_ready.connect(self._enter_folder)
        bench.store.project_changed.connect(self._show_actions)
        self._show_actions()

    @property
    def cells(self) -> tuple[Cell, ...]:
        return self._bench.project.cells

    def keep(self, source: str) -> None:
        """Add a cell that ran without an error to the project."""
        store = self._bench.store
        store.set_project(edits.record_cell(store.project, source))

    def note_file(self, path: str) -> None:
        """Note the Python file that is shown in the console. Of an unsaved project, its folder is
        that of relative paths."""
        self._python_path = path
        self._enter_folder()

    def note_run(self) -> None:
        """Note that cells have run in this engine, so its end loses their variables."""
        self._namespace_used = True

    def run_again(self) -> None:
        self._bench.window.banners.dismiss(_BANNER)
        self._bench.files.agree()
        self.again_requested.emit()

    def forget(self) -> None:
        """Remove the cells from the project if the user agrees."""
        count = len(self.cells)
        question = f"Remove {_cells(count).lower()} from the project? The variables stay."
        if self._bench.confirm(question, "Remove cells"):
            store = self._bench.store
            store.set_project(edits.forget_cells(store.project))
            self._bench.window.banners.dismiss(_BANNER)

    def _enter_folder(self) -> None:
        """Tell the engine where relative paths of cells start: in the project's folder. A script
        that the window is attached to stays where it is."""
        if self._bench.link.script is not None:
            return
        file = self._bench.files.path or self._python_path
        folder = str(Path(file).absolute().parent) if file else ""
        if folder != self._folder and self._bench.link.state == "ready":
            self._folder = folder
            self._bench.send(EnterFolderCommand(folder=folder))

    def _on_engine_ended(self) -> None:
        self._folder = ""  # a new engine begins where the program was started
        if self._namespace_used:
            self._namespace_used = False
            self.ask("The console's variables went with the engine", cells=self.cells)

    def _on_opened(self) -> None:
        """Start a new namespace: the console's variables belong to the previous project."""
        if self._namespace_used:
            self._namespace_used = False
            self._bench.send(NewNamespaceCommand())
        self._python_path = ""
        self._enter_folder()
        self._bench.window.banners.dismiss(_BANNER)
        self.ask(
            "This project holds Python that was run in its console"
            if self.cells
            else "This project names Python",
            cells=self.cells,
        )

    def ask(
        self,
        title: str,
        then: Callable[[], object] = lambda: None,
        cells: tuple[Cell, ...] = (),
    ) -> None:
        """Offer to run cells of the project, and to use what else it names of Python and do what
        comes then. Pressing either agrees to all of it."""
        named = expressions_of(self._bench.project) if self._bench.store.is_unagreed else ()
        words = [f"{_cells(len(cells))} made its variables."] if cells else []
        parts = [f"# %% {number}\n{cell.source}" for number, cell in enumerate(cells, 1)]
        choices: list[Choice] = []
        if cells:
            choices.append(("Run again", "Run the cells below, in order.", self.run_again))
        if named:
            words.append("It names objects and code that it works with.")
            parts += ["# %% What it names", *named]
            tip = "Use what is named below. It is asked once for this content of the file."
            choices.append((ALLOW, tip, partial(self._allow, then)))
        if choices:
            self._bench.window.banners.show_banner(
                _BANNER,
                "accent",
                title,
                " ".join((*words, "Nothing runs until you say so.")),
                choices,
                code="\n".join(parts),
            )

    def _allow(self, then: Callable[[], object]) -> None:
        self._bench.files.agree()
        then()

    def _show_actions(self) -> None:
        for action in ("tensors.run_again", "tensors.forget_cells"):
            self._bench.actions[action].setEnabled(bool(self.cells))


def _cells(count: int) -> str:
    return "One cell" if count == 1 else f"{count:,} cells"
