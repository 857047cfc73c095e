"""The picture of one recorded forward of a subject of code, beside its structure."""

from __future__ import annotations

from typing import cast

from PySide6.QtCore import QObject, Signal

from app.presenters.autograd.graph_picture import GraphPicturePresenter
from app.presenters.questions import Questions, in_words
from app.workbench import Workbench
from engine.project.document import replace
from engine.project.subject import CodeSubject
from engine.protocol import (
    ErrorReport,
    ForwardGraphSnapshot,
    GraphSnapshot,
    ReadForwardGraphCommand,
    Snapshot,
    StructureSnapshot,
    join_graph,
)
from widgets.boxes.boxes import VisibleGraph
from widgets.layout.nested_layout import layout_nested
from widgets.layout.outline import Direction, EdgeStyle, NestedLayout
from widgets.structure.calls_picture import CallsPane
from widgets.structure.words import raised_words

SLOT = "structure graph"
"""The slot of its requests to the layout worker."""
UNRUN = "No forward was recorded. Name data under Train: then its calls are drawn here."


class CallsPresenter(QObject):
    """Reads the graph after each structure. `module_chosen(path)`: a module's box was selected, by
    the module's path in the structure."""

    module_chosen = Signal(str)

    def __init__(self, bench: Workbench, pane: CallsPane, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._view = bench, pane.view
        self._questions = Questions(bench)
        self._files = GraphPicturePresenter(bench, pane, self)
        self._parts: list[GraphSnapshot] = []
        self._drawn: GraphSnapshot | None = None
        self._title = ""
        pane.view.layout_requested.connect(self._lay_out)
        pane.view.module_chosen.connect(self._choose)

    def drop(self) -> None:
        """Show nothing, and take no more answers."""
        self._questions.drop()
        self._clear("")

    def show_structure(self, subject: CodeSubject, whole: StructureSnapshot) -> None:
        """Draw the forward of a subject whose structure was read."""
        self._title = whole.modules[0].type
        if not whole.batch or whole.unrun:
            self._questions.drop()
            self._clear(UNRUN if whole.unrun is None else raised_words(whole.unrun))
            return
        project = self._bench.project
        command = ReadForwardGraphCommand(
            subject=subject, objective=project.objective, training=project.training
        )
        self._parts = []
        self._questions.ask(command, self._take, self._fail)

    def show_module(self, path: str) -> None:
        """Select the box of a module of the structure."""
        if self._drawn is not None:
            self._view.show_module(f"{self._title}.{path}" if path else self._title)

    def _take(self, part: Snapshot) -> None:
        if not isinstance(part, ForwardGraphSnapshot):
            return
        self._parts.append(part.graph)
        if len(self._parts) == part.graph.parts:
            graph = _of_forward(join_graph(self._parts))
            self._parts = []
            if graph != self._drawn:
                self._drawn = graph
                self._view.show_graph(graph)

    def _fail(self, error: ErrorReport) -> None:
        self._clear(in_words(error))

    def _clear(self, text: str) -> None:
        self._drawn, self._parts = None, []
        self._view.clear(text)

    def _choose(self, path: str) -> None:
        inside = path.removeprefix(self._title)
        if path and inside != path:
            self.module_chosen.emit(inside.removeprefix("."))

    def _lay_out(self, visible: VisibleGraph, direction: Direction, style: EdgeStyle) -> None:
        self._bench.layout.submit(
            SLOT,
            layout_nested,
            visible.outline,
            direction,
            style,
            then=lambda layout: self._view.show_layout(visible, cast(NestedLayout, layout)),
        )


def _of_forward(graph: GraphSnapshot) -> GraphSnapshot:
    """The graph with the names of operations in place of those of their backward, and sequence
    numbers that count from its first node: then the graphs of two equal forwards are equal."""
    least = min((node.sequence for node in graph.nodes if node.kind == "operation"), default=0)
    return replace(
        graph,
        nodes=tuple(
            replace(node, name=node.op or node.name, sequence=node.sequence - least)
            if node.kind == "operation"
            else node
            for node in graph.nodes
        ),
    )
