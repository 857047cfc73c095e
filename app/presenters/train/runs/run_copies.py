"""Copies the runs of a project that is saved under another name, if the user agrees."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject

from app.presenters.questions import Questions, in_words
from app.weights import shown_name
from app.workbench import Workbench
from engine.project import files
from engine.protocol import (
    CopiedRunsSnapshot,
    CopyRunsCommand,
    ErrorReport,
    ListRunsCommand,
    RunsSnapshot,
)
from widgets.runs.run_pane import RunPane


class RunCopies(QObject):
    def __init__(self, bench: Workbench, pane: RunPane, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._pane = bench, pane
        self._questions = Questions(bench)
        self._is_copying = False
        bench.files.saved_as.connect(self._look)
        pane.stop_requested.connect(self._stop)
        bench.link.ended.connect(self._end)

    def _look(self, before: str) -> None:
        """The project of the file `before` has another file now: see whether there are runs."""
        command = ListRunsCommand(runs=files.runs_folder(before))
        self._questions.ask(command, self._ask, lambda error: None)  # there is no folder to read

    def _ask(self, found: RunsSnapshot) -> None:
        runs = tuple(
            row.folder for row in found.runs if row.state not in ("running", "silent", "damaged")
        )
        path = self._bench.files.path
        if not runs or not path or files.runs_folder(path) == found.folder:
            return
        going = " The run that is under way stays there." if len(runs) < len(found.runs) else ""
        beside, name = shown_name(Path(found.folder)), shown_name(Path(path))
        count = f"{len(runs):,} run{'' if len(runs) == 1 else 's'}"
        question = f"{beside} has {count} of this project. Copy them beside {name}, too?{going}"
        bench = self._bench
        if bench.dialogs.confirm(bench.window, question, "Copy"):
            command = CopyRunsCommand(folders=runs, runs=files.runs_folder(path))
            if self._questions.ask(command, self._show, self._fail):
                self._is_copying = True
                self._pane.show_writing(f"Copying {count}…")
            else:
                self._pane.show_problem(bench.link.unsent)

    def _show(self, told: CopiedRunsSnapshot) -> None:
        if told.copied < told.runs:
            self._pane.show_writing(f"Copying runs: {told.copied + 1} of {told.runs}…")
        else:
            self._end(f"{told.runs:,} runs are copied.")
            self._pane.came_in_sight.emit()

    def _fail(self, error: ErrorReport) -> None:
        self._end()
        self._pane.show_problem(in_words(error))

    def _stop(self) -> None:
        if self._is_copying:
            self._questions.stop()
            self._questions.drop()
            self._end("Stopped. The runs that are copied stay; all are where they were.")
            self._pane.came_in_sight.emit()

    def _end(self, words: str = "") -> None:
        if self._is_copying:
            self._is_copying = False
            self._pane.show_writing("")
            self._pane.show_told(words)
