"""The backward pass, node by node: each node's rule and gradients, and every `.grad`."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QSplitter, QTabWidget, QWidget

from engine.protocol import (
    BackwardSnapshot,
    ComparisonSnapshot,
    GraphSnapshot,
    NodeStep,
    ValueSnapshot,
)
from widgets import make
from widgets.backward.next_node import NextNode
from widgets.backward.node_words import NodeWords
from widgets.backward.pass_head import PassHead
from widgets.backward.pass_options import PassOptions
from widgets.backward.pass_tabs import PassTabs
from widgets.backward.step_bar import DEBUG_MOVES, StepBar
from widgets.backward.step_pane import StepPane, next_sections, step_sections
from widgets.backward.update_words import update_text
from widgets.backward.words import (
    comparison_text,
    facts_text,
    incoming_text,
    plain_call,
    position_text,
    start_text,
)
from widgets.boxes.operation_words import GRAD_FN
from widgets.theme import GRID

EMPTY_TEXT = (
    "Once the loss is known, Step reads the graph from loss.grad_fn. Each further step runs one"
    f" node and shows the gradients that go in and out.\n\n{GRAD_FN}"
)
_SHARES = [360, 180]
"""Shares of the height, for a step's values and for the lists."""
_MARGINS = (GRID, 2 * GRID)
"""The margins at the left and the right."""
_ONE_WAY = ("reset", "back", "back_run")


class BackwardView(QWidget):
    """Steps through the graph's nodes; shows a node's gradients and the parameters' `.grad`.

    `options` are those of the next pass, `next_node` can be edited, `values` are the node's
    gradients, `tabs` hold the lists. `set_rule_card` adds tabs that explain the step's rule.
    """

    start_requested = Signal()
    move_requested = Signal(str, int)
    """(a BackwardMove, the node for `to`)"""
    compare_requested = Signal()
    inspect_requested = Signal(str, str)
    """("gradient" | "parameter", parameter's name) or ("gradient", node id)"""
    copy_requested = Signal()
    """The pass as code, to the clipboard."""
    node_chosen = Signal(int)
    """A row for this node was selected: show the node in the graph."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words: NodeWords | None = None
        self._snapshot: BackwardSnapshot | None = None
        self._selected: int | None = None
        self._shows_line = True
        make.named(self, "backward_view", "Backward pass")

        self._head = PassHead()
        self._head.start_requested.connect(self.start_requested)
        self._head.compare_requested.connect(self.compare_requested)
        self._head.copy_requested.connect(self.copy_requested)
        self.options = PassOptions()
        self.options.started.connect(self.start_requested)
        self._bar = StepBar("backward", "node", self, DEBUG_MOVES)
        self._bar.moved.connect(self._move)
        self._line = make.text("backward_line", "muted", wrap=True, width="any")
        self._stopped = make.text("backward_stopped", wrap=True, width="any")
        self._result = make.text("backward_comparison", wrap=True, width="any")
        self.next_node = NextNode()
        kept = self.next_node.sizePolicy()  # at the end of a pass nothing moves up
        kept.setRetainSizeWhenHidden(True)
        self.next_node.setSizePolicy(kept)
        self.next_node.looked.connect(self._show_next_values)
        self._pane = StepPane()
        self.values = self._pane.values
        self.tabs = PassTabs()
        self.table = self.tabs.table
        self.table.inspect_requested.connect(self.inspect_requested)
        self.tabs.again_requested.connect(lambda: self.move_requested.emit("again", -1))
        self.tabs.node_chosen.connect(self.node_chosen)

        self._splitter = _Shares(Qt.Orientation.Vertical)
        self._splitter.addWidget(self._pane)
        self._splitter.addWidget(self.tabs)
        self._splitter.setStretchFactor(0, 1)
        self._splitter.setSizes(_SHARES)
        words = (self._line, self._stopped, self._result)
        self.options.add_beside(self._head)
        parts = (self.options, self._bar, *words, self.next_node)
        margins = (_MARGINS[0], GRID, _MARGINS[1], GRID)
        stretched = ((self._splitter, 1), make.Stretch(0))
        make.column(*parts, *stretched, on=self, gap=GRID // 2, margins=margins)
        self.clear()

    def set_rule_card(self, card: QTabWidget) -> None:
        """Add the pages that explain the step's rule to its values."""
        self._pane.set_rule_card(card)

    @property
    def has_pass(self) -> bool:
        """Whether a pass has started."""
        return self._snapshot is not None

    def full_width(self) -> int:
        """The width in pixels at which every move has its button."""
        return self._bar.sizeHint().width() + sum(_MARGINS)

    def show_controls(self, shown: bool) -> None:
        """Show or hide all but the step's values, its formula and the gradients."""
        for widget in (self.options, self._bar):
            widget.setVisible(shown)
        self._shows_line = shown
        self._line.setVisible(shown or self._snapshot is None)
        self.next_node.show_controls(shown)
        self._pane.show_controls(shown)
        self.tabs.show_controls(shown)

    # -- showing ---------------------------------------------------------------------------------

    def show_backward(
        self,
        snapshot: BackwardSnapshot,
        graph: GraphSnapshot,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """Show the position of the pass; `names` are the blocks' names by id."""
        words = NodeWords(graph, names or {})
        self._snapshot, self._words = snapshot, words
        self._selected = None
        self._splitter.show()
        self._result.hide()
        self._line.setText(position_text(snapshot, graph))
        self._line.setVisible(self._shows_line)  # the bar tells the position, too
        self._line.setToolTip(facts_text(snapshot))
        make.tell(self._stopped, snapshot.stopped_by)
        self._head.compare.setEnabled(snapshot.position == len(graph.plan))
        self._head.copy.setEnabled(True)
        self.tabs.show_backward(snapshot, words.title)
        self._show_next()
        if snapshot.step is not None:
            self._show_step(words, snapshot.step)
        else:
            title = words.title(graph.plan[0]) if graph.plan else ""
            self._pane.show_node(title, start_text(graph), next_sections(snapshot.next))
        self._show_bar()

    def show_selected(self, node: int) -> None:
        """Show a node that the reader has selected in the graph."""
        words, snapshot = self._words, self._snapshot
        if words is None or snapshot is None:
            return
        self._selected = node
        self._show_bar()
        self._show_next()
        if snapshot.step is not None and snapshot.step.node == node:
            self._show_step(words, snapshot.step)
            return
        executed = node in words.graph.plan[: snapshot.position]
        waits = "" if executed else " It has not run yet."
        self._pane.show_node(words.title(node), words.about(node) + waits)
        if executed:
            self.inspect_requested.emit("gradient", str(node))

    def show_value(self, snapshot: ValueSnapshot) -> None:
        """Show the answer to a request: a parameter, a `.grad`, or the gradients of a node."""
        if snapshot.of == "activation" or self._words is None:
            return
        if snapshot.key.isdigit():
            if int(snapshot.key) == self._selected:
                came_in = [v for v in snapshot.values if v.label.startswith("gradient in")]
                went_out = [v for v in snapshot.values if v not in came_in]
                self.values.show_sections([("", came_in, ""), ("", went_out, "")])
            return
        sections = [("", snapshot.values, "")]
        if snapshot.of == "gradient":
            title = f"{snapshot.key}.grad"
            about = "What the optimizer uses to update this parameter."
            if snapshot.missing:
                about = f"It stays from before. {snapshot.missing}"
            elif snapshot.update is not None:
                about += f"\n{update_text(snapshot.update)}"
        else:
            title = snapshot.key
            about = snapshot.missing or "backward has not reached it yet."
            about = f"The parameter itself: {about}"
        self._pane.show_node(title, about, sections)

    def show_comparison(self, snapshot: ComparisonSnapshot) -> None:
        inputs = self._snapshot.inputs if self._snapshot else ()
        edited = bool(self._snapshot and self._snapshot.edits)
        graph = self._words.graph if self._words else None
        self._result.setText(comparison_text(snapshot, plain_call(graph, inputs), edited))
        unequal = "warning" if edited or snapshot.zeroed else "error"
        make.set_role(self._result, "success" if snapshot.max_difference == 0 else unequal)
        self._result.show()
        self.table.show_differences(snapshot.differences)

    def clear(self) -> None:
        """Return to the empty state."""
        self._words = self._snapshot = self._selected = None
        for widget in (self._splitter, self._result, self._stopped, self.next_node):
            widget.hide()
        self._head.compare.setEnabled(False)
        self._head.copy.setEnabled(False)
        self._line.setText(EMPTY_TEXT)
        self._line.show()
        self._line.setToolTip("")
        self._show_bar()

    def show_ready(self, ready: bool) -> None:
        """Set whether the engine is connected."""
        self._head.start.setEnabled(ready)

    def _show_step(self, words: NodeWords, step: NodeStep) -> None:
        self._pane.show_node(words.title(step.node), words.about_step(step), step_sections(step))

    def _show_next(self) -> None:
        """The node that can be edited: the selected one if it has not run, else the next."""
        words, snapshot = self._words, self._snapshot
        if words is None or snapshot is None:
            return
        following = snapshot.next
        waits = (
            self._selected is not None and self._selected in words.graph.plan[snapshot.position :]
        )
        node = self._selected if waits else following.node if following else None
        self.next_node.setVisible(node is not None)
        if node is None:
            return
        is_next = following is not None and following.node == node
        info = words.node(node)
        self.next_node.show_node(
            node,
            f"{'Next' if is_next else 'Waiting'}: {words.title(node)}",
            incoming_text(snapshot, node),
            [spec.shape for spec in info.outputs] if info else [()],
            [edit for edit in snapshot.edits if edit.node == node],
            following.problem if is_next and following else "",
            can_look=is_next,
        )

    def _show_next_values(self) -> None:
        words, following = self._words, self._snapshot.next if self._snapshot else None
        if words is None or following is None:
            return
        about = f"It runs next. {words.about(following.node)}"
        self._pane.show_node(words.title(following.node), about, next_sections(following))

    def _show_bar(self) -> None:
        position = self._snapshot.position if self._snapshot else 0
        plan = self._words.graph.plan if self._words else ()
        one_way = self._snapshot is not None and self._snapshot.real_engine
        can_run_to = self._selected is not None
        if one_way:
            can_run_to = self._selected in plan[position:]
        self._bar.show_position(position, len(plan), can_run_to, _ONE_WAY if one_way else ())

    def _move(self, move: str) -> None:
        target = self._selected if move == "to" and self._selected is not None else -1
        self.move_requested.emit(move, target)


class _Shares(QSplitter):
    """Asks for no more height than it needs: where height is short, the widgets above go first."""

    def sizeHint(self) -> QSize:
        return self.minimumSizeHint()
