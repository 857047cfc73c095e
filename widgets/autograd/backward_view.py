"""The backward pass, node by node: the rule at work, and the gradients it leaves."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSplitter, QVBoxLayout, QWidget

from engine.protocol import (
    BackwardSnapshot,
    ComparisonSnapshot,
    GraphNode,
    GraphSnapshot,
    NodeStep,
    ValueSnapshot,
)
from widgets.autograd.gradient_table import GradientTable
from widgets.autograd.graph_facts import node_title
from widgets.autograd.step_bar import StepBar
from widgets.autograd.value_stack import ValueStack
from widgets.autograd.words import GRAD_FN, rule
from widgets.icons import set_icon
from widgets.text import format_bytes, format_number
from widgets.theme import GRID

EMPTY_TEXT = (
    "Start reads the graph from loss.grad_fn, finishing the forward pass if need be. Then each step"
    f" runs one node and shows the gradients that go in and out.\n\n{GRAD_FN}"
)
UNDEFINED = "No gradient here: it is undefined, which counts as zero"
NOT_NEEDED = "No gradient here: this input needs none"


def comparison_text(snapshot: ComparisonSnapshot) -> str:
    """The result of the comparison in words."""
    if snapshot.max_difference == 0:
        return "Equals loss.backward(): max difference 0 over all parameters."
    worst = max(snapshot.differences, key=lambda name: snapshot.differences[name], default="")
    where = f", in {worst}" if worst else ""
    difference = format_number(snapshot.max_difference)
    return f"Differs from loss.backward(): max difference {difference}{where}."


class BackwardView(QWidget):
    """Steps through the graph's nodes; shows a node's gradients and the parameters' `.grad`."""

    start_requested = Signal()
    move_requested = Signal(str, int)
    """(step | back | to | end | reset, the node for `to`)"""
    compare_requested = Signal()
    inspect_requested = Signal(str, str)
    """("gradient" | "parameter", parameter's name) or ("gradient", node id)"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._graph: GraphSnapshot | None = None
        self._snapshot: BackwardSnapshot | None = None
        self._names: Mapping[str, str] = {}
        self._selected: int | None = None
        self.setObjectName("backward_view")
        self.setAccessibleName("Backward pass")

        heading = QLabel("Backward")
        heading.setProperty("role", "heading")
        heading.setToolTip(GRAD_FN)
        self._start = QPushButton("Start")
        self._start.setObjectName("backward_start")
        self._start.setProperty("role", "primary")
        self._start.setAccessibleName("Start a backward pass")
        self._start.setToolTip("Read the graph from loss.grad_fn and stand before its root (F7)")
        set_icon(self._start, "mdi6.play", "on_accent")
        self._start.clicked.connect(self.start_requested)
        self._compare = QPushButton("Compare")
        self._compare.setObjectName("backward_compare")
        self._compare.setAccessibleName("Compare with loss.backward()")
        self._compare.setToolTip(
            "Run the same batch through plain loss.backward() and compare every .grad"
        )
        set_icon(self._compare, "mdi6.scale-balance")
        self._compare.clicked.connect(self.compare_requested)
        self._bar = StepBar("backward", "node", self)
        self._bar.moved.connect(self._move)
        self._line = _label("backward_line", "muted")
        self._result = _label("backward_comparison")
        self._title = _label("node_title", "heading")
        self._about = _label("node_about", "muted")
        self.values = ValueStack("backward_values")
        self.table = GradientTable()
        self.table.inspect_requested.connect(self.inspect_requested)

        head = QHBoxLayout()
        head.setSpacing(GRID)
        head.addWidget(heading)
        head.addStretch(1)
        head.addWidget(self._compare)
        head.addWidget(self._start)
        upper = QWidget()
        above = QVBoxLayout(upper)
        above.setContentsMargins(0, 0, 0, GRID)
        above.setSpacing(GRID // 2)
        above.addWidget(self._title)
        above.addWidget(self._about)
        above.addWidget(self.values, 1)
        self._splitter = QSplitter(Qt.Orientation.Vertical)
        self._splitter.addWidget(upper)
        self._splitter.addWidget(self.table)
        self._splitter.setStretchFactor(0, 3)
        self._splitter.setStretchFactor(1, 2)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(GRID, GRID, 2 * GRID, GRID)
        layout.setSpacing(GRID)
        layout.addLayout(head)
        layout.addWidget(self._bar)
        layout.addWidget(self._line)
        layout.addWidget(self._result)
        layout.addWidget(self._splitter, 1)
        layout.addStretch(0)
        self.clear()

    # -- showing ---------------------------------------------------------------------------------

    def show_backward(
        self,
        snapshot: BackwardSnapshot,
        graph: GraphSnapshot,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """Show where the pass stands; `names` are the blocks' names by id."""
        self._snapshot, self._graph, self._names = snapshot, graph, names or {}
        self._selected = None
        self._splitter.show()
        self._result.hide()
        done, all_nodes = snapshot.position, len(graph.plan)
        finished = done == all_nodes
        words = f"{done} of {all_nodes} nodes have run."
        if graph.truncated:
            words += f" {graph.truncated:,} more nodes are not shown."
        if finished:
            words += " Every .grad is filled in: Compare checks it against loss.backward()."
        self._line.setText(words)
        self._compare.setEnabled(finished)
        self.table.show_gradients(snapshot.gradients)
        if snapshot.step is not None:
            self._show_step(snapshot.step)
        else:
            self._title.setText(self._node_text(graph.plan[0]) if graph.plan else "")
            self._about.setText(
                "Step runs this node. Backward starts with the gradient of the loss with respect to"
                " itself, which is 1."
            )
            self.values.show_sections([])
        self._show_bar()

    def show_selected(self, node: int) -> None:
        """The reader has chosen a node of the graph."""
        graph, snapshot = self._graph, self._snapshot
        if graph is None or snapshot is None:
            return
        self._selected = node
        self._show_bar()
        if snapshot.step is not None and snapshot.step.node == node:
            self._show_step(snapshot.step)
            return
        self._title.setText(self._node_text(node))
        executed = node in graph.plan[: snapshot.position]
        words = "" if executed else " It has not run yet."
        self._about.setText(self._node_words(node) + words)
        self.values.show_sections([])
        if executed:
            self.inspect_requested.emit("gradient", str(node))

    def show_value(self, snapshot: ValueSnapshot) -> None:
        """Show a parameter, a `.grad`, or the gradients of a node that was asked for."""
        if snapshot.of == "activation" or self._graph is None:
            return
        if snapshot.key.isdigit():
            node = int(snapshot.key)
            if node != self._selected:
                return
            self.values.show_sections([("", snapshot.values, "")])
            return
        of_gradient = snapshot.of == "gradient"
        self._title.setText(f"{snapshot.key}.grad" if of_gradient else snapshot.key)
        self._about.setText(
            "What the optimizer will use to move this parameter."
            if of_gradient
            else "The parameter itself: backward has not reached it yet."
        )
        self.values.show_sections([("", snapshot.values, "")])

    def show_comparison(self, snapshot: ComparisonSnapshot) -> None:
        self._result.setText(comparison_text(snapshot))
        equal = snapshot.max_difference == 0
        _set_role(self._result, "success" if equal else "error")
        self._result.show()
        self.table.show_differences(snapshot.differences)

    def clear(self) -> None:
        """Return to the empty state."""
        self._graph = self._snapshot = self._selected = None
        self._splitter.hide()
        self._result.hide()
        self._compare.setEnabled(False)
        self._line.setText(EMPTY_TEXT)
        self._show_bar()

    def show_ready(self, ready: bool) -> None:
        """The engine is there, or not."""
        self._start.setEnabled(ready)

    def _show_step(self, step: NodeStep) -> None:
        self._title.setText(self._node_text(step.node))
        self._about.setText(self._node_words(step.node))
        self.values.show_sections([("", step.incoming, UNDEFINED), ("", step.outgoing, NOT_NEEDED)])

    def _node(self, node: int) -> GraphNode | None:
        """None for a node that the snapshot leaves out: a very large graph is cut off."""
        nodes = self._graph.nodes if self._graph else ()
        return nodes[node] if node < len(nodes) else None

    def _node_text(self, node: int) -> str:
        info = self._node(node)
        if info is None:
            return f"Node {node}"
        text = node_title(info)
        return f"{text} · {self._names.get(info.block, info.block)}" if info.block else text

    def _node_words(self, node: int) -> str:
        info = self._node(node)
        if info is None:
            return "This node lies beyond the part of the graph that is shown."
        words = rule(info)
        if info.saved_bytes:
            words += f" Keeps {format_bytes(info.saved_bytes)} from forward."
        return words

    def _show_bar(self) -> None:
        position = self._snapshot.position if self._snapshot else 0
        length = len(self._graph.plan) if self._graph else 0
        self._bar.show_position(position, length, self._selected is not None)

    # -- asking ----------------------------------------------------------------------------------

    def _move(self, move: str) -> None:
        target = self._selected if move == "to" and self._selected is not None else -1
        self.move_requested.emit(move, target)


def _label(name: str, role: str = "") -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    if role:
        label.setProperty("role", role)
    return label


def _set_role(label: QLabel, role: str) -> None:
    label.setProperty("role", role)
    label.style().unpolish(label)
    label.style().polish(label)
