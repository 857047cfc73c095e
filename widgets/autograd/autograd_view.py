"""The Autograd workspace: forward at the left, the graph in the middle, backward at the right.

In a narrow window, forward and backward share one column as tabs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QLabel, QWidget

from engine.protocol import (
    BackwardSnapshot,
    ComparisonSnapshot,
    ForwardSnapshot,
    GraphSnapshot,
    ValueSnapshot,
)
from widgets import make
from widgets.autograd.code_and_graph import CodeAndGraph
from widgets.autograd.forward_view import ForwardView
from widgets.autograd.graph_code import GraphCode
from widgets.autograd.own_call import OwnCall
from widgets.autograd.pass_bar import PassBar, next_words
from widgets.autograd.pass_columns import PassColumns
from widgets.autograd.root_bar import RootBar
from widgets.backward.view import BackwardView
from widgets.graph.pane import GraphPane
from widgets.recording_note import RecordingNote
from widgets.theme import GRID


class AutogradView(QWidget):
    """Shows the forward and backward pass of one batch. `forward`, `graph` and `backward` emit what
    the reader asks of each."""

    inspect_requested = Signal(str, str)
    """(of, key) of an InspectCommand"""
    came_in_sight = Signal()
    """The view is shown again."""
    node_selected = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "autograd_view", "Autograd")
        self._graph: GraphSnapshot | None = None
        self._names: Mapping[str, str] = {}
        self.roots = RootBar()
        self.bar = PassBar()
        self.own_call = OwnCall()
        self.forward = ForwardView()
        self.graph_pane = GraphPane()
        self.graph = self.graph_pane.view
        self.graph_pane.bar.follow()
        self.backward = BackwardView()
        self.recording = RecordingNote(
            "autograd", "the graphs of cells have no lines, module names or values."
        )
        self.recording.setContentsMargins(2 * GRID, GRID // 2, GRID, GRID // 2)
        self._lesson = self._words("autograd_lesson", "heading")
        self._problem = self._words("autograd_problem", "error")
        self._old = self._words("autograd_old", "warning")

        self.code = GraphCode()
        self._middle = CodeAndGraph(self.code, self.graph_pane)
        self.columns = PassColumns(self.forward, self._middle, self.backward)
        parts = (
            self.roots,
            self.own_call,
            self.bar,
            self.recording,
            self._lesson,
            self._problem,
            self._old,
            (self.columns, 1),
        )
        make.column(*parts, on=self, gap=0)

        self.bar.more_toggled.connect(self.show_more)
        self.forward.inspect_requested.connect(self.inspect_requested)
        self.backward.inspect_requested.connect(self.inspect_requested)
        self.graph.node_selected.connect(self._on_node)
        self.graph.run_to_requested.connect(lambda n: self.backward.move_requested.emit("to", n))

    def _words(self, name: str, role: str) -> QLabel:
        label = make.label("", role, name, wrap=True)
        label.setContentsMargins(2 * GRID, GRID, 2 * GRID, GRID)
        label.hide()
        return label

    # -- showing ---------------------------------------------------------------------------------

    def show_forward(self, snapshot: ForwardSnapshot, names: Mapping[str, str]) -> None:
        """Show the forward pass; `names` are the blocks' names by id."""
        self._names = names
        self.show_problem("")
        self.forward.show_forward(snapshot, names)
        self.bar.show_forward(snapshot)
        following = snapshot.order[snapshot.position :][:1]
        self.graph.clear(next_words(snapshot, *(names.get(block, block) for block in following)))
        self.columns.show_forward(True)
        self.columns.bring_up(self.forward)

    def show_graph(self, graph: GraphSnapshot, names: Mapping[str, str]) -> None:
        """Show a new graph. It is drawn as soon as its layout is computed."""
        self._graph, self._names = graph, names
        self.show_lesson("")
        self.show_old("")
        self.roots.show_graph(graph)
        self.columns.show_forward(not graph.root)
        self._show_code(graph)
        self.graph.show_graph(graph, names)

    def show_backward(self, snapshot: BackwardSnapshot) -> None:
        """Show the backward pass; does nothing before `show_graph`."""
        if self._graph is None:
            return
        self.show_problem("")
        self.bar.show_backward(self._graph, snapshot)
        self.own_call.show_backward(snapshot)
        self.backward.show_backward(snapshot, self._graph, self._names)
        self.columns.bring_up(self.backward)
        self.code.show_backward(snapshot)
        self.graph.show_backward(snapshot)

    def show_comparison(self, snapshot: ComparisonSnapshot) -> None:
        self.backward.show_comparison(snapshot)

    def show_value(self, snapshot: ValueSnapshot) -> None:
        """Show the answer to an `inspect_requested`."""
        self.forward.show_value(snapshot)
        self.backward.show_value(snapshot)

    def show_lesson(self, text: str) -> None:
        """Show a note on the graph until the next graph; none if empty."""
        make.tell(self._lesson, text)

    def show_problem(self, text: str) -> None:
        """Show an error and what to try; none if empty."""
        make.tell(self._problem, text)

    def show_old(self, root: str) -> None:
        """Say that the variables of this root have changed since its graph was read; nothing if
        empty."""
        words = (
            f"The variables of `{root}` have changed since this graph was read. Press Enter in"
            " Graph of to read it again: a new pass begins."
        )
        make.tell(self._old, words if root else "")

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.came_in_sight.emit()

    def show_engine_state(self, state: Literal["starting", "ready", "lost"]) -> None:
        """Return to the empty state: the engine was lost, and its passes with it."""
        ready = state == "ready"
        self.bar.show_ready(ready)
        self.forward.show_ready(ready)
        self.backward.show_ready(ready)
        if state == "lost":
            self.clear()

    def clear_backward(self) -> None:
        """Remove the graph: a new forward pass has started."""
        self._graph = None
        self.show_lesson("")
        self.show_old("")
        self.roots.show_graph(None)
        self._show_code(None)
        self.graph.clear()
        self.bar.show_backward(None, None)
        self.backward.clear()

    def clear(self) -> None:
        """Return to the empty state."""
        self.forward.clear()
        self.bar.show_forward(None)
        self.clear_backward()

    def show_more(self, on: bool) -> None:
        """Show all controls, or those that a first pass needs."""
        self.bar.show_more(on)
        self.forward.show_controls(on)
        self.backward.show_controls(on)
        self.graph_pane.bar.setVisible(on)

    def _show_code(self, graph: GraphSnapshot | None) -> None:
        was_shown = not self.code.isHidden()
        self.code.show_graph(graph)
        if not was_shown:
            self._middle.arrange()

    def _on_node(self, node: int) -> None:
        self.backward.show_selected(node)
        self.columns.bring_up(self.backward)
        self.node_selected.emit(node)
