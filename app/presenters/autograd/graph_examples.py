"""The examples of the tab Step through: each runs in a namespace of its own, then its graph is
read."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from app.presenters.questions import Questions, in_words
from app.workbench import Workbench
from engine.project.examples import GraphExample
from engine.protocol import (
    BackwardSnapshot,
    ErrorReport,
    ExampleSnapshot,
    RunExampleCommand,
    Snapshot,
    Variable,
)
from widgets.autograd.autograd_view import AutogradView


class GraphExamplesPresenter(QObject):
    """Signal `graph_wanted(root, variables, tab)`: the example has run; read the graph of its
    root."""

    graph_wanted = Signal(str, object, str)

    def __init__(self, bench: Workbench, view: AutogradView, parent: QObject) -> None:
        super().__init__(parent)
        self._view = view
        self._questions = Questions(bench)
        self._read: GraphExample | None = None
        view.roots.example_chosen.connect(self._run)
        bench.store.on(BackwardSnapshot, self._show_lesson)
        bench.link.ended.connect(self._forget)
        bench.files.opened.connect(self._forget)

    def _run(self, example: GraphExample) -> None:
        self._read = None

        def answered(snapshot: Snapshot) -> None:
            if isinstance(snapshot, ExampleSnapshot):
                self._on_run(example, snapshot.variables, snapshot.error)

        self._questions.ask(
            RunExampleCommand(source=example.code, tab="steps"),
            answered,
            lambda error: self._on_run(example, (), error),
        )

    def _on_run(
        self, example: GraphExample, variables: Sequence[Variable], error: ErrorReport | None
    ) -> None:
        if error is not None:
            self._view.show_problem(in_words(error))
            return
        self._read = example
        self.graph_wanted.emit(example.root, variables, "steps")

    def _show_lesson(self, _: BackwardSnapshot) -> None:
        if self._read is not None:
            self._view.show_lesson(self._read.tip)
            self._read = None

    def _forget(self) -> None:
        self._questions.drop()
        self._read = None
