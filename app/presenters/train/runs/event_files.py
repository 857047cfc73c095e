"""Runs of the list as event files of TensorBoard: where to, progress, stop."""

from __future__ import annotations

from pathlib import PurePath

from PySide6.QtCore import QObject

from app.presenters.questions import Questions, in_words
from app.workbench import Workbench
from engine.protocol import ErrorReport, EventsSnapshot, WriteEventsCommand
from widgets.runs.run_pane import RunPane

_TITLE = "Folder for TensorBoard's event files"
SEE = "See them with: tensorboard --logdir ."


class EventFilesPresenter(QObject):
    def __init__(self, bench: Workbench, pane: RunPane, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._pane = bench, pane
        self._questions = Questions(bench)
        self._wanted = 0
        """How many runs are being written."""
        pane.events_requested.connect(self._ask)
        pane.stop_requested.connect(self._stop)
        bench.link.ended.connect(self._end)

    def _ask(self, folders: tuple[str, ...]) -> None:
        bench = self._bench
        out = bench.dialogs.open_folder(bench.window, _TITLE, "")
        if not out:
            return
        command = WriteEventsCommand(folders=folders, path=out)
        if self._questions.ask(command, self._show, self._fail):
            self._wanted = len(folders)
            self._pane.show_writing(f"Writing event files into {out}…")
        else:
            self._pane.show_problem(bench.link.unsent)

    def _show(self, told: EventsSnapshot) -> None:
        if not told.written:
            done = f"{told.runs + 1} of {self._wanted}, {told.steps:,} steps"
            self._pane.show_writing(f"Writing event files into {told.path}: run {done}…")
            return
        names = ", ".join(PurePath(folder).name for folder in told.written)
        self._end(f"Written into {told.path}: {names}. {SEE}")

    def _fail(self, error: ErrorReport) -> None:
        self._end()
        self._pane.show_problem(in_words(error))

    def _stop(self) -> None:
        if not self._wanted:
            return
        self._questions.stop()
        self._questions.drop()
        self._end("Stopped. The event files of the runs before stay where they are.")

    def _end(self, words: str = "") -> None:
        if self._wanted:
            self._wanted = 0
            self._pane.show_writing("")
            self._pane.show_told(words)
