"""The curves of other runs over Train's plots: read from their folders, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from app.presenters.questions import Questions, in_words
from app.workbench import Workbench
from engine.protocol import ErrorReport, KeptRunSnapshot, ReadRunCommand, RunRow
from widgets.runs.run_words import name_of
from widgets.training.train_view import TrainView

MAX_TITLE_CHARS = 24


class Curves(QObject):
    """`failed(words)`: the curves of a run cannot be read."""

    failed = Signal(str)

    def __init__(self, bench: Workbench, view: TrainView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._view = bench, view
        self._questions = Questions(bench)
        self._wanted: tuple[str, ...] = ()
        self._titles: dict[str, str] = {}
        self._steps: dict[str, int] = {}
        self._read: dict[str, KeptRunSnapshot | None] = {}  # None: it cannot be read
        self._own = ""
        self._asked = ""

    def show(self, folders: Sequence[str], rows: Sequence[RunRow]) -> None:
        """Draw the runs of these folders. One that has gone on is read again."""
        self._wanted = tuple(folders)
        self._titles = {row.folder: _title(row) for row in rows}
        steps = {row.folder: row.step for row in rows}
        self._read = {
            folder: read
            for folder, read in self._read.items()
            if folder in folders and steps.get(folder) == self._steps.get(folder)
        }
        self._steps = steps
        self._go_on()

    def leave_out(self, folder: str) -> None:
        """The plots show this run already."""
        if folder != self._own:
            self._own = folder
            self._go_on()

    def _go_on(self) -> None:
        """Draw what has been read, and read the next."""
        drawn = [
            (self._titles[folder], read)
            for folder in self._wanted
            if folder != self._own and (read := self._read.get(folder)) is not None
        ]
        self._view.show_overlays(drawn)
        for folder in self._wanted:
            if folder not in self._read:
                self._questions.ask(ReadRunCommand(folder=folder), self._take, self._fail)
                self._asked = folder
                return

    def _take(self, kept: KeptRunSnapshot) -> None:
        self._read[kept.folder] = kept
        self._go_on()

    def _fail(self, error: ErrorReport) -> None:
        self._read[self._asked] = None
        self.failed.emit(in_words(error))
        self._go_on()


def _title(row: RunRow) -> str:
    """The run's note if it is short, else when it began."""
    return row.note if 0 < len(row.note) <= MAX_TITLE_CHARS else name_of(row)
