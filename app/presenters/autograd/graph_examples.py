"""The examples of the tab Step through: each runs in the console, then its graph is read."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.presenters.questions import in_words
from app.workbench import Workbench
from engine.project.examples import GraphExample
from engine.protocol import BackwardSnapshot, CellSnapshot, Snapshot
from widgets.autograd.autograd_view import AutogradView


class GraphExamplesPresenter(QObject):
    """Signal `run_requested(source)`: run Python in the console."""

    run_requested = Signal(str)

    def __init__(self, bench: Workbench, view: AutogradView, parent: QObject) -> None:
        super().__init__(parent)
        self._view = view
        self._running: GraphExample | None = None
        self._read: GraphExample | None = None
        view.roots.example_chosen.connect(self._run)
        bench.store.snapshot.connect(self._on_snapshot)
        bench.link.ended.connect(self._forget)

    def _run(self, example: GraphExample) -> None:
        self._running, self._read = example, None
        self.run_requested.emit(example.code)

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        match snapshot:
            case CellSnapshot(error=error) if self._running is not None:
                example, self._running = self._running, None
                if error is not None:
                    self._view.show_problem(in_words(error))
                    return
                self._read = example
                self._view.roots.choose(example.root)
            case BackwardSnapshot() if self._read is not None:
                self._view.show_lesson(self._read.tip)
                self._read = None

    def _forget(self) -> None:
        self._running = self._read = None
