"""The tab Mistakes of the Autograd workspace."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from app.presenters.questions import Questions
from app.workbench import Workbench
from engine.protocol import (
    BackwardSnapshot,
    ExampleSnapshot,
    ExampleTab,
    GraphSnapshot,
    OutputSnapshot,
    RunExampleCommand,
    Snapshot,
    Variable,
    VariablesSnapshot,
    WhyNoGradientCommand,
)
from widgets.autograd.mistakes_view import MistakesView


class MistakesPresenter(QObject):
    """Mistakes and corrections run in a namespace of this tab.

    Signals: `graph_requested(root)`: read the graph of a tensor from where the graph on screen
    came; `example_graph_requested(root, variables, tab)`: of the code that ran here. Then
    `node_requested(node, words)`: show this node and say what it shows."""

    graph_requested = Signal(str)
    example_graph_requested = Signal(str, object, str)
    node_requested = Signal(int, str)

    def __init__(self, bench: Workbench, view: MistakesView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._view = bench, view
        self._questions = Questions(bench)
        self._variables: tuple[Variable, ...] = ()  # of the code that ran here last
        self._asks_of_run = False  # whether a question is about that code, or the graph on screen
        self._wanted: tuple[str, int | str, str] | None = None
        view.run_requested.connect(self._run)
        view.graph_requested.connect(self._show_graph)
        view.where_requested.connect(self._show_where)
        view.why_requested.connect(self._ask_why)
        bench.store.on(VariablesSnapshot, self._on_variables)
        bench.store.on(GraphSnapshot, self._on_graph)
        bench.store.on(BackwardSnapshot, self._on_backward)
        bench.files.opened.connect(self._forget)
        bench.link.ended.connect(self._forget)

    def _run(self, source: str) -> None:
        printed: list[str] = []

        def answered(snapshot: Snapshot) -> None:
            match snapshot:
                case OutputSnapshot(text=text):
                    printed.append(text)
                case ExampleSnapshot(variables=variables, error=error):
                    self._variables, self._asks_of_run = variables, True
                    self._show_names(variables)
                    self._view.show_ran(source, error, "".join(printed))

        self._questions.ask(
            RunExampleCommand(source=source, tab="mistakes"), answered, self._view.show_problem
        )

    def _ask_why(self, name: str, root: str) -> None:
        tab: ExampleTab = "mistakes" if self._asks_of_run else ""
        command = WhyNoGradientCommand(name=name, root=root, example=tab)
        self._questions.ask(
            command, lambda told: self._view.show_why(told, root), self._view.show_problem
        )

    def _show_graph(self, root: str, node: int | str, words: str) -> None:
        self._wanted = root, node, words
        self.example_graph_requested.emit(root, self._variables, "mistakes")

    def _show_where(self, root: str, node: int, words: str) -> None:
        if self._asks_of_run:
            self._show_graph(root, node, words)
        else:
            self._wanted = root, node, words
            self.graph_requested.emit(root)

    def _on_variables(self, snapshot: VariablesSnapshot) -> None:
        if not self._asks_of_run:
            self._show_names(snapshot.variables)

    def _on_graph(self, _: GraphSnapshot) -> None:
        if self._wanted is None:
            self._asks_of_run = False

    def _on_backward(self, _: BackwardSnapshot) -> None:
        if self._wanted is None:
            return
        (root, node, words), self._wanted = self._wanted, None
        graph = self._bench.newest(GraphSnapshot)
        found = None if graph is None else node_of(graph, node)
        if graph is not None and graph.root == root and found is not None:
            self.node_requested.emit(found, words)

    def _show_names(self, variables: Sequence[Variable]) -> None:
        names = [v.name for v in variables if v.kind == "tensor"]
        self._view.name.show_names(names)
        self._view.root.show_names(names)

    def _forget(self) -> None:
        """Clear the view: the variables of its mistake are gone."""
        self._questions.drop()
        self._wanted, self._variables, self._asks_of_run = None, (), False
        self._view.show_mistake(self._view.mistake)


def node_of(graph: GraphSnapshot, node: int | str) -> int | None:
    """The id of a node: `node` itself, or the first node with this name or of the leaf with this
    name."""
    if isinstance(node, int):
        return node if node < len(graph.nodes) else None
    leaves = (n.id for n in graph.nodes if n.kind == "leaf" and n.label == node)
    named = (n.id for n in graph.nodes if n.name == node)
    return next(leaves, next(named, None))
