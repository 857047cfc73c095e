"""The backward pass, node by node: the rule at work, and the gradients it leaves."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QSplitter,
    QTabWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.protocol import (
    BackwardSnapshot,
    ComparisonSnapshot,
    GraphNode,
    GraphSnapshot,
    NodeStep,
    ValueSnapshot,
)
from widgets.autograd.backward_words import (
    NOT_NEEDED,
    UNDEFINED,
    comparison_text,
    facts_text,
    incoming_text,
    plain_call,
    position_text,
    start_text,
)
from widgets.autograd.graph_facts import FREED, node_title, stale_words
from widgets.autograd.next_node import NextNode
from widgets.autograd.pass_options import PassOptions
from widgets.autograd.pass_tabs import PassTabs
from widgets.autograd.step_bar import DEBUG_MOVES, StepBar
from widgets.autograd.value_stack import ValueStack
from widgets.autograd.words import GRAD_FN, rule
from widgets.icons import set_icon
from widgets.text import format_bytes
from widgets.theme import GRID

EMPTY_TEXT = (
    "Start reads the graph from loss.grad_fn, finishing the forward pass if need be. Then each step"
    f" runs one node and shows the gradients that go in and out.\n\n{GRAD_FN}"
)
_SHARES = [300, 220]
"""Of the height, for a step's values and for the lists."""
_ONE_WAY = ("reset", "back", "back_run")


class BackwardView(QWidget):
    """Steps through the graph's nodes; shows a node's gradients and the parameters' `.grad`.

    `options` say how the next pass is run, `next_node` is what can be edited, `tabs` hold the
    lists. Tabs that explain the step's rule are put beside its values by `set_rule_card`.
    """

    start_requested = Signal()
    move_requested = Signal(str, int)
    """(a BackwardMove, the node for `to`)"""
    compare_requested = Signal()
    inspect_requested = Signal(str, str)
    """("gradient" | "parameter", parameter's name) or ("gradient", node id)"""
    script_requested = Signal(bool)
    """The pass as a script: to a file (True) or to the clipboard."""
    node_chosen = Signal(int)
    """A row that stands for a node was chosen: show it in the graph."""

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
        self._script = self._script_button()
        self.options = PassOptions()
        self.options.started.connect(self.start_requested)
        self._bar = StepBar("backward", "node", self, DEBUG_MOVES)
        self._bar.moved.connect(self._move)
        self._line = _label("backward_line", "muted")
        self._stopped = _label("backward_stopped")
        self._result = _label("backward_comparison")
        self.next_node = NextNode()
        self.next_node.looked.connect(self._show_next_values)
        self._title = _label("node_title", "heading")
        self._about = _label("node_about", "muted")
        self.values = ValueStack("backward_values")
        self.tabs = PassTabs()
        self.table = self.tabs.table
        self.table.inspect_requested.connect(self.inspect_requested)
        self.tabs.again_requested.connect(lambda: self.move_requested.emit("again", -1))
        self.tabs.node_chosen.connect(self.node_chosen)

        head = QHBoxLayout()
        head.setSpacing(GRID)
        head.addWidget(heading)
        head.addStretch(1)
        for button in (self._script, self._compare, self._start):
            head.addWidget(button)
        upper = QWidget()
        self._above = QVBoxLayout(upper)
        self._above.setContentsMargins(0, 0, 0, GRID)
        self._above.setSpacing(GRID // 2)
        self._above.addWidget(self._title)
        self._above.addWidget(self._about)
        self._above.addWidget(self.values, 1)
        self._splitter = QSplitter(Qt.Orientation.Vertical)
        self._splitter.addWidget(upper)
        self._splitter.addWidget(self.tabs)
        self._splitter.setStretchFactor(0, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(GRID, GRID, 2 * GRID, GRID)
        layout.setSpacing(GRID // 2)
        layout.addLayout(head)
        for widget in (
            self.options,
            self._bar,
            self._line,
            self._stopped,
            self._result,
            self.next_node,
        ):
            layout.addWidget(widget)
        layout.addWidget(self._splitter, 1)
        layout.addStretch(0)
        self.clear()

    def set_rule_card(self, card: QTabWidget) -> None:
        """Let the step's values and what explains its rule share a place: they are its tabs.

        In halves, one above the other, neither can be read in a window of 900 pixels.
        """
        self._above.replaceWidget(self.values, card)
        self._above.setStretchFactor(card, 1)
        card.insertTab(0, self.values, "Values")
        card.setTabToolTip(0, "The gradients that go in and out")
        card.setCurrentIndex(0)
        self._splitter.setSizes([4, 1])

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
        if self._splitter.isHidden():
            self._splitter.show()
            self._splitter.setSizes(_SHARES)
        self._result.hide()
        finished = snapshot.position == len(graph.plan)
        self._line.setText(position_text(snapshot, graph))
        self._line.setToolTip(facts_text(snapshot))
        self._stopped.setText(f"Stopped. {snapshot.stopped_by}" if snapshot.stopped_by else "")
        self._stopped.setVisible(bool(snapshot.stopped_by))
        self._compare.setEnabled(finished)
        self._script.setEnabled(True)
        self.tabs.show_backward(snapshot, self._node_text)
        self._show_next()
        if snapshot.step is not None:
            self._show_step(snapshot.step)
        else:
            self._title.setText(self._node_text(graph.plan[0]) if graph.plan else "")
            self._about.setText(start_text(graph))
            self._show_sections_of_next()
        self._show_bar()

    def show_selected(self, node: int) -> None:
        """The reader has chosen a node of the graph."""
        graph, snapshot = self._graph, self._snapshot
        if graph is None or snapshot is None:
            return
        self._selected = node
        self._show_bar()
        self._show_next()
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
        inputs = self._snapshot.inputs if self._snapshot else ()
        self._result.setText(comparison_text(snapshot, plain_call(self._graph, inputs)))
        equal = snapshot.max_difference == 0
        _set_role(self._result, "success" if equal else "error")
        self._result.show()
        self.table.show_differences(snapshot.differences)

    def clear(self) -> None:
        """Return to the empty state."""
        self._graph = self._snapshot = self._selected = None
        for widget in (self._splitter, self._result, self._stopped, self.next_node):
            widget.hide()
        self._compare.setEnabled(False)
        self._script.setEnabled(False)
        self._line.setText(EMPTY_TEXT)
        self._line.setToolTip("")
        self._show_bar()

    def show_ready(self, ready: bool) -> None:
        """The engine is there, or not."""
        self._start.setEnabled(ready)

    def _show_step(self, step: NodeStep) -> None:
        self._title.setText(self._node_text(step.node))
        words = [self._node_words(step.node)]
        if step.edited:
            words.append("What came in is what your edit made of it.")
        if step.hooks:
            words.append(f"Hooks: {step.hooks}.")
        self._about.setText(" ".join(words))
        sections = [("", step.incoming, UNDEFINED), ("", step.outgoing, NOT_NEEDED)]
        if step.grad_after is not None:
            sections.append(
                ("", (step.grad_before, step.grad_after), "No .grad before: what came in is it now")
            )
        self.values.show_sections(sections)

    def _show_next(self) -> None:
        """The node that can be edited: the one selected while it waits, else the next."""
        graph, snapshot = self._graph, self._snapshot
        if graph is None or snapshot is None:
            return
        following = snapshot.next
        waits = self._selected is not None and self._selected in graph.plan[snapshot.position :]
        node = self._selected if waits else following.node if following else None
        self.next_node.setVisible(node is not None)
        if node is None:
            return
        is_next = following is not None and following.node == node
        info = self._node(node)
        self.next_node.show_node(
            node,
            f"{'Next' if is_next else 'Waiting'}: {self._node_text(node)}",
            incoming_text(snapshot, node),
            [spec.shape for spec in info.outputs] if info else [()],
            [edit for edit in snapshot.edits if edit.node == node],
            following.problem if is_next and following else "",
            can_look=is_next,
        )

    def _show_next_values(self) -> None:
        snapshot = self._snapshot
        if snapshot is None or snapshot.next is None:
            return
        self._title.setText(self._node_text(snapshot.next.node))
        self._about.setText(f"It runs next. {self._node_words(snapshot.next.node)}")
        self._show_sections_of_next()

    def _show_sections_of_next(self) -> None:
        following = self._snapshot.next if self._snapshot else None
        if following is None:
            self.values.show_sections([])
            return
        sections = [("", following.incoming, UNDEFINED)]
        if following.edited:
            sections.append(("", following.edited, "Cut: the edit gives no gradient"))
        self.values.show_sections(sections)

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
        if info is None or self._graph is None:
            return "This node lies beyond the part of the graph that is shown."
        words = rule(info, self._graph)
        if info.saved_bytes:
            words += f" Keeps {format_bytes(info.saved_bytes)} from forward."
        faults = [stale_words(save) for save in self._graph.stale if save.node == node]
        for fault in (*faults, *([FREED] if info.freed else ())):
            words += f" {fault}."
        return words

    def _show_bar(self) -> None:
        position = self._snapshot.position if self._snapshot else 0
        length = len(self._graph.plan) if self._graph else 0
        one_way = self._snapshot is not None and self._snapshot.real_engine
        can_run_to = self._selected is not None
        if one_way and self._graph is not None:
            can_run_to = self._selected in self._graph.plan[position:]
        self._bar.show_position(position, length, can_run_to, _ONE_WAY if one_way else ())

    # -- asking ----------------------------------------------------------------------------------

    def _move(self, move: str) -> None:
        target = self._selected if move == "to" and self._selected is not None else -1
        self.move_requested.emit(move, target)

    def _script_button(self) -> QToolButton:
        button = QToolButton()
        button.setObjectName("backward_script")
        button.setAccessibleName("The pass as a Python script")
        button.setToolTip(
            "This pass as a Python script: edits become hooks on the right nodes, and .grad comes"
            " out the same to the bit"
        )
        button.setAutoRaise(True)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        set_icon(button, "mdi6.script-text-outline")
        menu = QMenu(button)
        for name, title, to_file in (
            ("copy", "Copy script", False),
            ("save", "Save script…", True),
        ):
            action = menu.addAction(title, lambda to=to_file: self.script_requested.emit(to))
            action.setObjectName(f"backward_script_{name}")
        button.setMenu(menu)
        return button


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
