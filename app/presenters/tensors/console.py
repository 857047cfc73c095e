"""The console: what is typed goes to the engine as cells, what they print comes back."""

from __future__ import annotations

import tokenize
from pathlib import Path

from PySide6.QtCore import QObject

from app.presenters.cells import CellsPresenter
from app.workbench import Workbench
from engine.protocol import (
    CellSnapshot,
    CompleteCommand,
    CompletionsSnapshot,
    ErrorSnapshot,
    InterruptSignal,
    OutputSnapshot,
    RunCellCommand,
    Snapshot,
)
from widgets.console.console_view import ConsoleView

FILTER = "Python (*.py);;All files (*)"
_KEPT = "<kept cell "
"""How the filename of a cell begins that is run again."""
_NO_ENGINE = "There is no engine: restart it from the status bar."


class ConsolePresenter(QObject):
    """The view runs one cell at a time; those that end well are kept in the project."""

    def __init__(
        self, bench: Workbench, cells: CellsPresenter, view: ConsoleView, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._bench, self._cells, self._view = bench, cells, view
        self._cell_id = 0  # of the cell in hand
        self._to_keep = ""  # its source, if it is to be kept
        self._completion_id = 0
        view.run_requested.connect(self._run)
        view.interrupt_requested.connect(lambda: bench.link.signal(InterruptSignal()))
        view.completion_requested.connect(self._complete)
        view.open_requested.connect(self.open_file)
        bench.link.snapshot.connect(self._on_snapshot)
        bench.link.state_changed.connect(self._on_engine_state)
        bench.files.opened.connect(self._on_opened)

    def open_file(self, path: str = "") -> None:
        """Show a Python file's cells, asking for it when no path is given."""
        window, dialogs = self._bench.window, self._bench.dialogs
        path = path or dialogs.open_path(window, "Open Python", str(Path.home()), FILTER)
        if not path:
            return
        try:
            with tokenize.open(path) as file:  # by the encoding that the file itself declares
                text = file.read()
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
            window.say(f"{Path(path).name} cannot be read: {error}")
            return
        self._view.open_file(path, text)

    def run_again(self) -> None:
        """Run the project's cells in order; the first that fails ends it."""
        for number, cell in enumerate(self._cells.cells, start=1):
            self._view.submit(cell.source, f"{_KEPT}{number}>", remember=False)

    # -- to the engine ---------------------------------------------------------------------------

    def _run(self, source: str, filename: str) -> None:
        self._cell_id = self._bench.send(RunCellCommand(source=source, filename=filename))
        if not self._cell_id:
            self._view.abandon(_NO_ENGINE)
            return
        self._to_keep = "" if filename.startswith(_KEPT) else source.strip("\n")
        self._cells.note_run()

    def _complete(self, source: str, cursor: int) -> None:
        self._completion_id = self._bench.send(CompleteCommand(source=source, cursor=cursor))

    # -- from the engine -------------------------------------------------------------------------

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        if snapshot.reply_to and snapshot.reply_to == self._completion_id:
            if isinstance(snapshot, CompletionsSnapshot):
                self._view.show_completions(snapshot)
            elif isinstance(snapshot, ErrorSnapshot):
                self._bench.window.say(f"No completions: {snapshot.error.message}")
        elif snapshot.reply_to and snapshot.reply_to == self._cell_id:
            match snapshot:
                case OutputSnapshot():
                    self._view.add_output(snapshot)
                case CellSnapshot(ok=ok, error=error):
                    if ok and self._to_keep:
                        self._cells.keep(self._to_keep)
                    self._view.finish_cell(error)
                case ErrorSnapshot(error=error):
                    self._view.finish_cell(error)

    def _on_engine_state(self, state: str) -> None:
        if state == "lost" and self._view.busy:
            self._view.abandon("The engine has ended, and this cell with it.")

    def _on_opened(self) -> None:
        """What runs, waits and stands there is another project's."""
        self._to_keep = ""
        self._cell_id = 0
        if self._view.busy:
            self._bench.link.signal(InterruptSignal())
        self._view.start_anew()
