"""The lists of a backward pass as tabs: `.grad`s, breakpoints, edits, pending gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QTabWidget,
    QWidget,
)

from engine.protocol import BackwardSnapshot
from widgets import make
from widgets.backward.breakpoint_list import BreakpointList
from widgets.backward.gradient_table import GradientTable
from widgets.backward.node_list import NodeList
from widgets.backward.words import gradients_text
from widgets.theme import GRID


class PassTabs(QTabWidget):
    """`node_chosen(node)` when a row is selected, `unedited(node)` to remove the node's edits."""

    node_chosen = Signal(int)
    unedited = Signal(int)
    again_requested = Signal()
    zero_requested = Signal(bool)
    """zero_grad with this set_to_none"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.table = GradientTable()
        self.table.setMinimumHeight(5 * GRID)  # Qt's own margin of 9 is too much for a low window
        self.breakpoints = BreakpointList()
        self.edits = NodeList(
            "edits",
            "Edits of gradients",
            ("node", "the gradient becomes"),
            ("The node whose gradient is edited", "Python of g, the incoming gradient"),
            "No edits. Change the incoming gradient of the next node, or at any node that you"
            " choose in the graph, by the pencil above.",
        )
        self.pending = NodeList(
            "pending",
            "Gradients on their way",
            ("node", "arrived", "so far"),
            (
                "A node that some gradient has reached",
                "How many of its contributions have come: a tensor that was used twice gets two",
                "2-norm of their sum, one for each output",
            ),
            "No gradient waits at any node.",
        )
        self.edits.chosen.connect(self.node_chosen)
        self.edits.removed.connect(self.unedited)
        self.pending.chosen.connect(self.node_chosen)
        pages = (
            (self._gradients_page(), "", "Every parameter and its .grad"),
            (self.breakpoints, "", "Where Run stops"),
            (self.edits, "", "Gradients that are changed on their way"),
            (self.pending, "", "Gradients that have arrived at nodes that wait"),
        )
        make.tabs("backward_tabs", pages, tabs=self)
        self.breakpoints.changed.connect(self._show_titles)
        self._counts = (0, 0)
        self._show_titles()

    def _gradients_page(self) -> QWidget:
        self._again = make.button(
            "backward_again",
            "Another pass",
            "mdi6.plus-circle-multiple-outline",
            self.again_requested,
            accessible="Another pass over the same graph",
        )
        self._again.setToolTip(
            "Once this pass is at its end: begin another over the same graph. What is in .grad"
            " stays, and the new gradients are added to it"
        )
        zero = make.tool_button("backward_zero_grad", text="zero_grad")
        zero.setAccessibleName("Empty every .grad")
        zero.setToolTip("Empty every .grad, as optimizer.zero_grad() does before the next pass")
        menu = make.menu(zero)
        for name, title, to_none in (
            ("none", "set_to_none=True: .grad becomes None", True),
            ("zeros", "set_to_none=False: .grad is filled with zeros", False),
        ):
            asked = partial(self.zero_requested.emit, to_none)
            make.action(menu, title, asked, name=f"backward_zero_{name}")
        row = make.row(self._again, make.STRETCH, zero)
        return make.page((self.table, 1), row, gap=GRID // 2, margins=(0, GRID // 2, 0, 0))

    def show_controls(self, shown: bool) -> None:
        """Show or hide all but the gradients."""
        for place in range(1, self.count()):
            self.setTabVisible(place, shown)
        self.tabBar().setVisible(shown)

    def show_backward(self, snapshot: BackwardSnapshot, title: Callable[[int], str]) -> None:
        """Show the lists; `title` names a node."""
        self.table.show_gradients(
            snapshot.gradients, snapshot.gradients_more, snapshot.create_graph
        )
        self.breakpoints.show_states(snapshot.breakpoints)
        self.edits.show_rows(
            [
                (
                    e.node,
                    (
                        title(e.node),
                        e.expression if not e.output else f"{e.output}: {e.expression}",
                    ),
                )
                for e in snapshot.edits
            ]
        )
        more = f"And {snapshot.pending_more:,} more nodes." if snapshot.pending_more else ""
        self.pending.show_rows(
            [
                (p.node, (title(p.node), f"{p.arrived} of {p.expected}", gradients_text(p)))
                for p in snapshot.pending
            ],
            more,
        )
        self._again.setEnabled(snapshot.next is None)
        self._counts = len(snapshot.edits), len(snapshot.pending) + snapshot.pending_more
        self._show_titles()

    def _show_titles(self) -> None:
        edits, pending = self._counts
        counted = (("Breakpoints", len(self.breakpoints.breakpoints)), ("Edits", edits))
        titles = [f"{name} {count}" if count else name for name, count in counted]
        for place, text in enumerate(["Gradients", *titles, f"Pending {pending}"]):
            self.setTabText(place, text if pending or place < 3 else "Pending")
