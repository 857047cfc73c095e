"""The tab Mistakes of the Autograd workspace."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.presenters.questions import Questions
from app.workbench import Workbench
from engine.protocol import (
    BackwardSnapshot,
    CellSnapshot,
    GraphSnapshot,
    Snapshot,
    VariablesSnapshot,
    WhyNoGradientCommand,
)
from widgets.autograd.mistakes_view import MistakesView


class MistakesPresenter(QObject):
    """Signals: `run_requested(source)`: Python for the console; `graph_requested(root)`: read the
    graph of a tensor; then `node_requested(node, words)`: show this node and say what it shows."""

    run_requested = Signal(str)
    graph_requested = Signal(str)
    node_requested = Signal(int, str)

    def __init__(self, bench: Workbench, view: MistakesView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._view = bench, view
        self._questions = Questions(bench, self)
        self._running = ""
        self._wanted: tuple[str, int | str, str] | None = None
        view.run_requested.connect(self._run)
        view.graph_requested.connect(self._show_graph)
        view.why_requested.connect(self._why)
        bench.store.snapshot.connect(self._on_snapshot)
        bench.files.opened.connect(self._forget)
        bench.link.ended.connect(self._forget)

    def _run(self, source: str) -> None:
        self._running = source
        self.run_requested.emit(source)

    def _why(self, name: str, root: str) -> None:
        command = WhyNoGradientCommand(name=name, root=root)
        self._questions.ask(
            command, lambda told: self._view.show_why(told, root), self._view.show_problem
        )

    def _show_graph(self, root: str, node: int | str, words: str) -> None:
        self._wanted = root, node, words
        self.graph_requested.emit(root)

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
            case BackwardSnapshot() if self._wanted is not None:
                (root, node, words), self._wanted = self._wanted, None
                graph = self._bench.newest(GraphSnapshot)
                found = None if graph is None else node_of(graph, node)
                if graph is not None and graph.root == root and found is not None:
                    self.node_requested.emit(found, words)

    def _forget(self) -> None:
        """Clear the view: the variables of its mistake are gone."""
        self._questions.drop()
        self._wanted, self._running = None, ""
        self._view.show_mistake(self._view.mistake)


def node_of(graph: GraphSnapshot, node: int | str) -> int | None:
    """The id of a node: `node` itself, or the first node with this name or of the leaf with this
    name."""
    if isinstance(node, int):
        return node if node < len(graph.nodes) else None
    leaves = (n.id for n in graph.nodes if n.kind == "leaf" and n.label == node)
    named = (n.id for n in graph.nodes if n.name == node)
    return next(leaves, next(named, None))
