"""The Autograd workspace's page: the pass stepped through, and what lies beyond one pass."""

from __future__ import annotations

from PySide6.QtWidgets import QTabWidget, QWidget

from widgets.autograd.autograd_view import AutogradView
from widgets.autograd.mistakes_view import MistakesView
from widgets.derivatives.flow_view import FlowView
from widgets.derivatives.view import DerivativeView
from widgets.trace.view import TraceView


class AutogradPage(QTabWidget):
    """`steps` is the first tab: one pass forward and back. Rooms add theirs beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("autograd_page")
        self.setDocumentMode(True)
        self.steps = AutogradView()
        self.add_room(
            self.steps, "Step through", "One pass forward and backward, node by node on its graph."
        )
        self.trace = TraceView()
        self.add_room(
            self.trace,
            "Forward, op by op",
            "Every line of your code, and what torch ran in it or in the model, forth and back.",
        )
        self.derivatives = DerivativeView()
        self.add_room(
            self.derivatives,
            "Derivatives",
            "Jacobian, Hessian and their products of any function; gradcheck of its backward.",
        )
        self.flow = FlowView()
        self.add_room(
            self.flow,
            "Gradient flow",
            "The size of each layer's gradients while the model trains, from three beginnings.",
        )
        self.mistakes = MistakesView()
        self.add_room(
            self.mistakes,
            "Mistakes",
            "The usual mistakes with autograd: make them, see them on the graph, write it right.",
        )
        self.setFocusProxy(self.steps)

    def show_node(self, node: int) -> None:
        """Show a node of the graph of the pass under way."""
        self.setCurrentWidget(self.steps)
        self.steps.graph.select(node)

    def show_lesson(self, node: int, words: str) -> None:
        """Show a node of the graph that was just read, and say what is to be seen there."""
        self.show_node(node)
        self.steps.show_lesson(words)

    def show_code(self, source: str) -> None:
        """Trace this code."""
        self.setCurrentWidget(self.trace)
        self.trace.trace_code(source)

    def show_trace(self) -> None:
        """Show what is stepped through line by line."""
        self.setCurrentWidget(self.trace)

    def add_room(self, view: QWidget, title: str, tip: str) -> None:
        """Add a tab; `tip` says in a sentence what it shows."""
        self.setTabToolTip(self.addTab(view, title), tip)
