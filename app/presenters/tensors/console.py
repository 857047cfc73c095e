"""The console: sends typed cells to the engine, and shows their output."""

from __future__ import annotations

import tokenize
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject

from app.presenters.cells import CellsPresenter
from app.presenters.questions import Questions
from app.selection.finding import lines_of
from app.selection.references import Line, Reference
from app.workbench import Workbench
from engine.protocol import (
    CellSnapshot,
    CompleteCommand,
    OutputSnapshot,
    OutputTailSnapshot,
    RunCellCommand,
    Snapshot,
)
from widgets.console.console_view import ConsoleView

CONSOLE = "console"
FILTER = "Python (*.py);;All files (*)"
_KEPT_CELL = "<kept cell "
"""The start of the file name of a cell that is run again."""


class ConsolePresenter(QObject):
    """The view runs one cell at a time. A cell that ends without an error is added to the
    project."""

    def __init__(
        self, bench: Workbench, cells: CellsPresenter, view: ConsoleView, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._bench, self._cells, self._view = bench, cells, view
        self._questions = Questions(bench)
        view.run_requested.connect(self._run)
        view.interrupt_requested.connect(bench.link.stop_code)
        view.completion_requested.connect(self._complete)
        view.open_requested.connect(self.open_file)
        view.output.line_chosen.connect(self._choose_line)
        bench.selection.views[view.output] = CONSOLE
        bench.selection.changed.connect(self._follow)
        bench.link.ended.connect(self._on_engine_ended)
        bench.files.opened.connect(self._on_opened)

    def open_file(self, path: str = "") -> None:
        """Show a Python file's cells; without a path, ask for a file."""
        window, dialogs = self._bench.window, self._bench.dialogs
        path = path or dialogs.open_path(window, "Open Python", str(Path.home()), FILTER)
        if not path:
            return
        try:
            with tokenize.open(path) as file:  # in the encoding that the file declares
                text = file.read()
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
            window.say(f"{Path(path).name} cannot be read: {error}")
            return
        self._cells.note_file(path)
        self._view.open_file(path, text)

    def run_again(self) -> None:
        """Run the project's cells in order, up to the first one that fails."""
        for number, cell in enumerate(self._cells.cells, start=1):
            self._view.submit(cell.source, f"{_KEPT_CELL}{number}>", remember=False)

    def _run(self, source: str, filename: str) -> None:
        to_keep = "" if filename.startswith(_KEPT_CELL) else source.strip("\n")
        project = self._bench.project
        command = RunCellCommand(
            source=source, filename=filename, model=project.model, training=project.training
        )
        if self._questions.ask(command, partial(self._take, to_keep), self._view.finish_cell):
            self._cells.note_run()
        else:
            self._view.abandon(self._bench.link.unsent)

    def _complete(self, source: str, cursor: int) -> None:
        self._questions.ask(
            CompleteCommand(source=source, cursor=cursor),
            self._view.show_completions,
            lambda error: self._bench.say(f"No completions: {error.message}"),
        )

    def _take(self, to_keep: str, snapshot: Snapshot) -> None:
        """Show what the running cell sends: its output, and its end."""
        match snapshot:
            case OutputSnapshot() | OutputTailSnapshot():
                self._view.add_output(snapshot)
            case CellSnapshot(ok=ok, error=error, file=file):
                if ok and to_keep:
                    self._cells.keep(to_keep)
                self._view.finish_cell(error, file)

    # -- selection -------------------------------------------------------------------------------

    def _choose_line(self, file: str, line: int) -> None:
        self._bench.selection.choose(Line(file, line), CONSOLE)

    def _follow(self, reference: Reference | None) -> None:
        found = lines_of(reference, self._bench.known)
        self._view.output.lines.light([(each.file, each.line) for each in found])

    def show_line(self) -> None:
        """Bring the line of what is chosen into view."""
        self._view.output.lines.reveal()

    def _on_engine_ended(self) -> None:
        self._view.output.lines.forget()
        if self._view.busy:
            self._view.abandon("The engine has ended, and this cell with it.")

    def _on_opened(self) -> None:
        """Clear the console: its cells belong to another project."""
        self._questions.drop()
        if self._view.busy:
            self._bench.link.stop_code()
        self._view.start_anew()
