"""The tab Mistakes of the Autograd workspace."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.presenters.questions import Questions
from app.workbench import Workbench
from engine.protocol import (
    CellSnapshot,
    Snapshot,
    VariablesSnapshot,
    WhyNoGradientCommand,
)
from widgets.autograd.mistakes_view import MistakesView


class MistakesPresenter(QObject):
    """Signals: `run_requested(source)` for the console, `graph_requested(root)`."""

    run_requested = Signal(str)
    graph_requested = Signal(str)

    def __init__(self, bench: Workbench, view: MistakesView, parent: QObject) -> None:
        super().__init__(parent)
        self._view = view
        self._questions = Questions(bench, self)
        self._running = ""
        view.run_requested.connect(self._run)
        view.graph_requested.connect(self.graph_requested)
        view.why_requested.connect(self._why)
        bench.store.snapshot.connect(self._on_snapshot)
        bench.link.state_changed.connect(self._on_engine_state)

    def _run(self, source: str) -> None:
        self._running = source
        self.run_requested.emit(source)

    def _why(self, name: str, root: str) -> None:
        command = WhyNoGradientCommand(name=name, root=root)
        self._questions.ask(command, self._view.show_why, self._view.show_problem)

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        match snapshot:
            case VariablesSnapshot(variables=variables):
                names = [v.name for v in variables if v.kind == "tensor"]
                self._view.name.show_names(names)
                self._view.root.show_names(names)
            case CellSnapshot(error=error) if self._running:
                if self._running == self._view.code.code():
                    self._view.show_made(error)
                self._running = ""

    def _on_engine_state(self, state: str) -> None:
        if state == "lost":
            self._questions.drop()
            self._view.show_mistake(self._view.mistake)
